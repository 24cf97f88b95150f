"""Jobs whose workers come and go, on each target: hosts that speak in whole frames, and the jobs' state machine.

What these tests cannot see: training; many joins and deaths at once (tests/dataplane/test_elastic_runs.py).
"""

from __future__ import annotations

import pytest

from serene.controller.http.client import ControllerClient
from serene.controller.jobs.elastic import elastic, evictions, is_deserted, starts_without
from serene.controller.jobs.errors import BadRequest
from serene.controller.jobs.job import Elastic, Job, JobState, WorkerState
from serene.entries import Endpoint
from serene.strategy import BSP
from serene.wire import Op
from tests.controller.hosts import Host
from tests.controller.processes import serenectl, started, until


def test_elastic_job_starts_with_workers_and_admits_later_ones(client: ControllerClient, hosts: list[Host]) -> None:
    client.create_job(2, BSP(), places=4)
    waits = hosts[2].ask(lambda: hosts[2].hello(0, 3, 5), Op.WAIT)
    assert waits.text == "job 0 waits for 1 more worker (4 places)"
    hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WELCOME)
    welcome = hosts[2].ask(lambda: hosts[2].hello(0, 3, 5), Op.WELCOME)
    assert (welcome["sync_mask"], welcome["quorum"], welcome["members"]) == (0b1001, 2, 2)
    session = welcome["session"]
    fields = {"session": session, "seq": 1}
    hosts[0].push(0, 0, [1], **fields, epoch=1)
    hosts[2].ask(lambda: hosts[2].push(0, 3, [2], **fields, epoch=1), Op.ANSWER)

    welcome = hosts[1].ask(lambda: hosts[1].hello(0, 1, 5), Op.WELCOME)
    assert (welcome["epoch"], welcome["sync_mask"], welcome["quorum"], welcome["members"]) == (2, 0b1011, 3, 3)
    read = hosts[1].ask(
        lambda: hosts[1].send(Op.PULL, 0, 1, bytes(1280), session=session, epoch=2, seq=2**31), Op.ANSWER
    )
    assert (int.from_bytes(read.body[:4], "big"), read["total"]) == (3, 2), "who comes begins with the sum of the rest"
    until(lambda: client.job(0).epoch == 2, "the controller has the third one on record")
    lines = serenectl("status", controller=client.url).stdout.splitlines()
    assert lines[1].startswith("job 0: running, BSP, 3 of 4 places, epoch 2, ")
    assert lines[5].split()[:2] == ["2", "free"]
    assert ("free", "worker 2: a free place") in [
        (explanation.state, explanation.text) for explanation in client.explain(0).workers
    ]


def test_free_place_does_not_keep_the_counts_of_an_earlier_job(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:2], BSP())
    hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1)
    hosts[1].ask(lambda: hosts[1].push(0, 1, [1], session=session, epoch=1, seq=1), Op.ANSWER)
    until(lambda: [worker.iteration for worker in client.job(0).workers] == [1, 1], "both rounds are counted")
    client.delete_job(0)

    client.create_job(1, BSP(), places=2)
    hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WELCOME)
    hosts[1].ask(lambda: hosts[1].hello(0, 1, 5), Op.WELCOME)  # a place that was free when the job began
    assert [worker.iteration for worker in client.job(0).workers] == [0, 0]


@pytest.mark.parametrize("asked", [(8, None, None), (None, 2, None), (None, None, 1.0)])
def test_coming_and_going_workers_are_refused_over_racks(
    asked: tuple[int | None, int | None, float | None],
) -> None:
    with pytest.raises(BadRequest, match="places, minimum and evict_after need a single switch: leave them out"):
        elastic(4, *asked, 32, 2)
    assert elastic(4, None, None, None, 32, 2) is None


def elastic_job(states: str, minimum: int = 1, evict_after: float = 5.0) -> Job:
    """states: a letter for each place: r running, e evicted for silence, m evicted by hand, l left, x evicted for
    silence and not heard since the session before was lost."""
    job = Job(0, 1, BSP(), 1, 1.0, JobState.RUNNING, elastic=Elastic(len(states), minimum, evict_after))
    known = {"r": WorkerState.RUNNING, "l": WorkerState.LEFT}
    for worker, letter in zip(job.workers, states, strict=True):
        worker.state = known.get(letter, WorkerState.EVICTED)
        at = Endpoint(worker.id + 1, "02:00:00:00:00:01", "10.0.0.1", 5000, 1)
        worker.endpoint = None if letter == "x" else at
    job.silenced = frozenset(place for place, letter in enumerate(states) if letter in "ex")
    return job


@pytest.mark.parametrize(
    ("states", "minimum", "silent", "evicted", "for_silence"),
    [
        ("rrr", 1, [6, 0, 0], {0}, {0}),
        ("rrr", 2, [6, 7, 0], {1}, {1}),
        ("rrr", 3, [7, 6, 0], set(), set()),
        ("rr", 1, [9, 8], {0}, {0}),
        ("rr", 1, [8, 9], {1}, {1}),
        ("re", 1, [0, 6], {1}, {1}),
        ("re", 1, [0, 1], set(), set()),
        ("rx", 1, [0, 0], {1}, {1}),
        ("rm", 1, [0, 1], {1}, set()),
        ("re", 1, [6, 1], {0}, {0}),
        ("rl", 1, [6, 6], set(), set()),
        ("rrll", 3, [6, 0, 9, 9], {0}, {0}),
    ],
)
def test_most_silent_workers_are_evicted_down_to_the_minimum(
    states: str, minimum: int, silent: list[float], evicted: set[int], for_silence: set[int]
) -> None:
    """The most silent come first, and `minimum` members stay. Workers evicted by hand are not readmitted."""
    job = elastic_job(states, minimum)
    assert evictions(job, dict(enumerate(silent))) == (frozenset(evicted), frozenset(for_silence))


def test_restoring_job_evicts_silent_workers_and_readmits_none() -> None:
    """Readmitting one is refused until the restoration ends, which waits for the silent worker's eviction."""
    job = elastic_job("rre")
    job.restoring = True
    assert evictions(job, {0: 6.0, 1: 0.0, 2: 1.0}) == (frozenset({0, 2}), frozenset({0, 2}))


@pytest.mark.parametrize(
    ("states", "silent", "deserted"),
    [("rl", [6, 0], True), ("rl", [4, 0], False), ("rr", [6, 6], False), ("rrl", [6, 0, 0], False)],
)
def test_job_is_deserted_if_runners_are_silent_and_leavers_wait(
    states: str, silent: list[float], deserted: bool
) -> None:
    assert is_deserted(elastic_job(states), dict(enumerate(silent))) is deserted


def test_lost_elastic_session_starts_without_dead_workers() -> None:
    """Only after all living workers had time to notice the loss, however short evict_after is."""
    job = elastic_job("rrr", minimum=2, evict_after=1.5)
    now = 100.0
    job.steady = lambda: now
    job.reset()
    job.workers[0].state = WorkerState.JOINED
    now = 200.0
    assert not starts_without(job), "fewer than the minimum are there"
    job.workers[1].state = WorkerState.JOINED
    now = 102.4
    assert not starts_without(job)
    now = 102.5
    assert starts_without(job)


def test_new_elastic_job_waits_for_all_its_workers() -> None:
    """However long: no session is lost, whose dead workers it would have to do without."""
    job = elastic_job("rr", minimum=1)
    job.state = JobState.WAITING
    job.workers[0].state = WorkerState.JOINED
    job.steady = lambda: 1e9
    assert not starts_without(job)


def test_lost_elastic_session_waits_for_evicted_as_for_members() -> None:
    """It does not wait for workers that were evicted for silence."""
    job = elastic_job("rrme", minimum=2, evict_after=1.5)
    now = 100.0
    job.steady = lambda: now
    job.reset(active=[2, 3])
    for worker in job.workers[:2]:
        worker.state = WorkerState.JOINED
    now = 102.4
    assert job.awaited() == (2,)
    now = 102.5
    assert job.awaited() == ()
