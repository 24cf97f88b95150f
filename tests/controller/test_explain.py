"""Explanations of why a worker waits, for made-up states. A real one: test_controller_end_to_end.py."""

from __future__ import annotations

from typing import Any

import pytest

from serene.controller.commands.view import switch_line, whole
from serene.controller.settings import ShmPort
from serene.controller.status.explain import explain, headline
from serene.controller.status.model import AutomaticStatus, SlowWorker, Status, WorkerStatus
from serene.report import Facts
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from tests.controller.statuses import job_status, printed, status_of, worker_status


def worker(
    number: int, doing: str = "computing", at: tuple[int, int] | None = (1, 5), **fields: object
) -> WorkerStatus:
    report: Facts | None = None if at is None else {"state": doing, "at_epoch": at[0], "at_round": at[1]}
    return worker_status(number, report, **fields)


def status(*workers: WorkerStatus, strategy: Strategy = BSP(), **job: object) -> Status:
    return status_of(job_status(*workers, strategy=strategy, **job))


def explained_to(of: int, *workers: WorkerStatus, strategy: Strategy = BSP(), **job: object) -> tuple[str, str | None]:
    (explanation,) = explain(status(*workers, strategy=strategy, **job), 0, of)
    return explanation.text, explanation.advice


DSSP = AutomaticStatus(
    name="dssp", parameters={}, decisions=0, changes=0, trouble=None, needs=["compute_s"], blind_to=[]
)
WAITS = worker(0, "waiting")
SILENT = [WAITS, worker(1, silent_s=8.0)]
AWAY = worker(1, state="evicted", port=None)
VOTES = worker(1, "exchanging", (1, 0), state="evicted")
OUT = worker(0, state="evicted", silent_s=9.0)
EXPLAINED: list[tuple[str, int, list[WorkerStatus], dict[str, Any], str, str]] = [
    # case, whose explanation, workers, the job's fields, and what text and advice have in them
    ("BSP", 0, [WAITS, worker(1), worker(2, "exchanging"), worker(3, "waiting")], {},
     "worker 0 waits in round 5 of epoch 1 for worker 1 to contribute to its round (1 is computing in round 5, last "
     "packet 0.2 s ago)", "'serenectl sync ssp --job 0 --staleness 1' would end the wait"),
    ("an automatic strategy", 0, [WAITS, worker(1)], {"automatic": DSSP},
     "worker 0 waits", "--staleness 1' would end the wait, and end the automatic strategy"),
    ("a process group's job", 0, [WAITS, worker(1), worker(2, "waiting")], {"pool": True},
     "worker 0 waits in round 5 of epoch 1 for worker 1", "no swap would help: the job belongs to a process group"),
    ("SSP", 0, [worker(0, "waiting", (1, 9)), worker(1, at=(1, 6)), worker(2, at=(1, 7))], {"strategy": SSP(3)},
     "waits in round 9 of epoch 1 for worker 1 to contribute to round 6 (1 is computing in round 6",
     "'serenectl sync ssp --job 0 --staleness 4' would end the wait"),
    ("no bound suffices", 0, [worker(0, "waiting", (1, 40)), worker(1, at=(1, 20))], {"strategy": SSP(15)},
     "waits in round 40", "'serenectl sync asp --job 0' would end the wait"),
    ("a quorum", 0, [WAITS, worker(1), worker(2), worker(3)], {"strategy": Quorum(3)},
     "for 2 of workers 1, 2 and 3 to contribute", ""),
    ("earlier epochs only", 0, [worker(0, "waiting", (3, 0)), worker(1, at=(2, 40)), worker(2, at=(4, 0))], {},
     "for worker 1 to contribute to its round (1 is computing, last packet", ""),
    ("asynchronous", 0, [WAITS, worker(1), worker(2)], {"strategy": ASP()}, "worker 0 is waiting in round 5", ""),
    ("itself asynchronous", 0, [WAITS, worker(1), worker(2)], {"strategy": Mixed((0,))}, "for an answer in flight", ""),
    ("another one asynchronous", 0, [WAITS, worker(1), worker(2)], {"strategy": Mixed((1,))}, "for worker 2 to", ""),
    ("waits for a silent one", 0, SILENT, {}, "for worker 1",
     "'serenectl evict --job 0 --worker 1' would end the wait"),
    ("silent", 1, SILENT, {}, "worker 1 has been silent for 8 s; before that it was computing in round 5 of epoch 1",
     "if it is dead: restart it, or 'serenectl evict --job 0 --worker 1'"),
    ("a silent rank", 1, SILENT, {"pool": True}, "worker 1 has been silent for 8 s",
     "if it is dead: start all ranks again; a process group's job cannot continue with fewer ranks"),
    ("evicted, of a job whose workers come and go", 0, [OUT, worker(1)], {"places": 2, "evict_after": 5.0}, "worker 0",
     "if it is dead: restart it; a new process gets a free place"),
    ("evicted", 0, [OUT, worker(1)], {}, "worker 0", "'serenectl readmit --job 0 --worker 0'"),
    ("evicted, and not back", 1, [worker(0), AWAY], {},
     "worker 1 is evicted, and has not joined since the switch lost its state", ""),
    ("evicted, and votes", 1, [worker(0, "waiting", (1, 1)), VOTES], {"restoring": True},
     "worker 1 is evicted; it votes in the restoration", ""),
    ("waits for a vote", 0, [worker(0, "waiting", (1, 1)), VOTES], {"restoring": True},
     "waits in round 1 of epoch 1 for worker 1 to contribute to its round", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "of", "workers", "job", "text", "advice"), EXPLAINED, ids=[case for case, *_ in EXPLAINED]
)
def test_explanation_names_whom_a_worker_waits_for_and_what_helps(
    case: str, of: int, workers: list[WorkerStatus], job: dict[str, Any], text: str, advice: str
) -> None:
    explained, advised = explained_to(of, *workers, **job)
    assert text in explained and advice in (advised or ""), case


def test_headline_names_the_slow_worker() -> None:
    slow = SlowWorker(worker=1, since=0.0, lateness_s=0.1, step_s=0.2, where="network", why="", text="worker 1 is slow")
    assert headline(status(worker(0), worker(1), slow=slow), 0) == "job 0 runs under BSP, epoch 1; worker 1 is slow"


def test_explanation_separates_device_copies_from_sums() -> None:
    report: Facts = {"state": "computing", "at_epoch": 1, "at_round": 5, "copying_s": 1.25, "network_s": 2.0}
    text, _ = explained_to(0, worker_status(0, {**report, "waiting_s": 1.5}))
    assert text.endswith("; so far it waited 1.2 s for copies from and to its device, and 3.5 s for sums")
    assert "copies" not in explained_to(0, worker_status(0, {**report, "copying_s": "many"}))[0]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (worker(0, "exchanging"), "worker 0 is exchanging in round 5 of epoch 1"),
        (worker(0, at=None), "worker 0 is not reporting"),
        (worker(0, state="expected"), "worker 0 has not joined yet"),
        (worker(0, state="joined"), "worker 0 has joined and waits for the job to start"),
        (worker(0, state="left"), "worker 0 has left"),
        (worker(0, state="evicted"), "worker 0 is evicted: nobody waits for it (it still sends)"),
        (worker(0, "waiting"), "worker 0 waits in round 5 of epoch 1 for an answer in flight"),
    ],
)
def test_explain_gives_state_of_worker_that_awaits_no_other(one: WorkerStatus, text: str) -> None:
    assert explained_to(0, one, worker(1, "exchanging"))[0] == text


def test_headlines_describe_each_state_of_a_job() -> None:
    assert headline(status(worker(0), automatic=DSSP), 0) == "job 0 runs under BSP, automatic strategy dssp, epoch 1"
    blind = DSSP.model_copy(update={"blind_to": [0, 1], "needs": ["compute_s", "slowest_s"]})
    seen_by_nobody = status(worker(0), worker(1), automatic=blind)
    message = "dssp is blind to workers 0 and 1 (no reports of compute_s and slowest_s)"
    assert message in headline(seen_by_nobody, 0) and message in " ".join(printed(whole(seen_by_nobody), 200).split())
    waiting = status(worker(0, state="joined"), worker(1, state="expected"), state="waiting")
    assert headline(waiting, 0) == "job 0 waits for worker 1 to join before it starts under BSP"
    starting = status(worker(0, state="joined"), worker(1, state="joined"), state="waiting")
    assert headline(starting, 0) == "job 0 is about to start under BSP: all workers have joined"
    again = status(worker(1, state="expected"), state="waiting", lost_sessions=1)
    assert headline(again, 0) == "job 0 waits for worker 1 to join again before it starts under BSP"
    assert "workers restore their sums under BSP, then SSP(3) resumes" in headline(
        status(worker(0), restoring=True, strategy=SSP(3)), 0
    )
    away = status(worker(0, state="joined"), worker(1, state="evicted", port=None), state="waiting")
    assert headline(away, 0) == "job 0 waits a few seconds for evicted worker 1, then starts"
    assert headline(status(worker(0), state="finished"), 0) == "job 0 has finished: every worker has left"
    away = status_of(job_status(worker(0)), trouble="closed")
    assert headline(away, 0) == "job 0: the switch is unreachable (closed); the following is outdated"
    local = status_of(job_status(worker(0)), trouble="closed", shm_ports=[ShmPort(1, "/run/port1")])
    explained_to = "closed; if it has ended, 'serenectl up --local' starts it again"
    assert headline(local, 0) == f"job 0: the switch is unreachable ({explained_to}); the following is outdated"
    assert switch_line(local.switch).endswith(f"NOT connected: {explained_to}")
