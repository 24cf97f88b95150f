"""Why a worker waits, in words: for whom, in which round of which epoch, and what would let it go on.

Reads a status as `controller.status.snapshot` makes it: the switch's counters and the workers' reports.
A worker reports at most five times a second, and as often while it waits, so "now" is as old as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from serene.errors import SereneError, choices
from serene.strategy import MAX_STALENESS, PolicyFields, strategy_from_dict
from serene.wire import UNBOUNDED

Json = dict[str, Any]

SILENT_S = 3.0  # a worker that waits is heard twice a second
WAITING = "waiting"


class NoSuchWorker(SereneError):
    """A worker id that the job has not got."""


@dataclass(frozen=True)
class Explanation:
    """One worker's state. waits_for: the workers it waits for; round, epoch: where it is, None when unknown."""

    worker: int
    state: str  # expected, joined, left, evicted, silent, or what the worker reports: computing, waiting, ...
    text: str
    advice: str | None = None
    waits_for: tuple[int, ...] = ()
    round: int | None = None
    epoch: int | None = None


def explain(status: Json, job_id: int, worker_id: int | None = None) -> list[Explanation]:
    """Each worker of a job, or one of them. Raises NoSuchWorker; the job must be in the status."""
    job = next(job for job in status["jobs"] if job["job"] == job_id)
    ids = [worker["worker"] for worker in job["workers"]]
    if worker_id is not None and worker_id not in ids:
        raise NoSuchWorker(f"job {job_id} has no worker {worker_id}: expected {choices(ids)}")
    view = _Job(job)
    return [view.explain(worker) for worker in job["workers"] if worker_id in (None, worker["worker"])]


def headline(status: Json, job_id: int) -> str:
    """The job in one line: what is in force, and what holds it up as a whole."""
    job = next(job for job in status["jobs"] if job["job"] == job_id)
    strategy = strategy_from_dict(job["strategy"])
    if not status["switch"]["connected"]:
        return f"job {job_id}: the switch is unreachable ({status['switch']['trouble']}); what follows is older"
    if job["state"] == "waiting":
        missing = [worker["worker"] for worker in job["workers"] if worker["state"] == "expected"]
        again = "again " if job["lost_sessions"] else ""
        return f"job {job_id} waits for {workers(missing)} to join {again}before it starts under {strategy}"
    if job["state"] == "finished":
        return f"job {job_id} has finished: every worker has left"
    if job["restoring"]:
        return (
            f"job {job_id}: the switch lost its state; the workers are restoring their sums under BSP, "
            f"then {strategy} follows"
        )
    automatic = f", {automatic_in_words(job['automatic'])}" if job["automatic"] else ""
    return f"job {job_id} runs under {strategy}{automatic}, epoch {job['epoch']}"


def automatic_in_words(automatic: Json) -> str:
    """Whether an automatic strategy decides, and if not, why."""
    if automatic["trouble"]:
        return f"{automatic['name']} no longer decides ({automatic['trouble']})"
    if automatic["blind_to"]:
        return (
            f"{automatic['name']} is blind to {workers(automatic['blind_to'])} "
            f"(no reports to tell {' and '.join(automatic['needs'])} by)"
        )
    return f"{automatic['name']} decides"


@dataclass(frozen=True)
class _Place:
    """Where a worker is, as it said last: in which round of which epoch, and whether it has contributed to it."""

    epoch: int
    round: int
    contributed: bool

    def has_contributed_to(self, epoch: int, round_: int) -> bool:
        """Whether its gradient of that round is in, or it is in a later epoch anyway."""
        if self.epoch != epoch:
            return self.epoch > epoch
        return self.round > round_ or (self.round == round_ and self.contributed)


class _Job:
    """A job's policy and where its workers are."""

    def __init__(self, job: Json) -> None:
        self.id = job["job"]
        self.workers = {worker["worker"]: worker for worker in job["workers"]}
        self.members = [worker["worker"] for worker in job["workers"] if worker["state"] == "running"]
        self.policy = _policy(job, self.members)

    def explain(self, worker: Json) -> Explanation:
        number, state, silent = worker["worker"], worker["state"], worker["silent_s"]
        who = f"worker {number}"
        if state == "expected":
            return Explanation(number, state, f"{who} has not joined yet", "start it, or see its log")
        if state == "joined":
            return Explanation(number, state, f"{who} has joined and waits for the job to start")
        if state == "left":
            return Explanation(number, state, f"{who} has left")
        if state == "evicted":
            heard = f"not heard for {silent:.0f} s" if silent > SILENT_S else "it is heard"
            back = f"'serenectl readmit --job {self.id} --worker {number}' makes the barrier wait for it again"
            return Explanation(number, state, f"{who} is evicted: nobody waits for it ({heard})", back)
        doing, place = str((worker["report"] or {}).get("state") or "not reporting"), _place(worker)
        at = "" if place is None else f" in round {place.round} of epoch {place.epoch}"
        where = (None, None) if place is None else (place.round, place.epoch)
        if silent > SILENT_S:
            dead = f"if it is dead: restart it, or 'serenectl evict --job {self.id} --worker {number}'"
            return Explanation(
                number, "silent", f"{who} has not been heard for {silent:.0f} s; it was {doing}{at}", dead, (), *where
            )
        if doing != WAITING or place is None or self.policy is None:
            return Explanation(number, doing, f"{who} is {doing}{at}", None, (), *where)
        return self._waiting(number, place)

    def _waiting(self, number: int, place: _Place) -> Explanation:
        policy = self.policy
        assert policy is not None
        who = f"worker {number} waits in round {place.round} of epoch {place.epoch}"
        needed = place.round - policy.staleness  # the round that has to be complete
        counted = [other for other in self.members if policy.sync_mask >> other & 1 and other != number]
        places = {other: _place(self.workers[other]) for other in counted}
        holding = tuple(
            other
            for other, there in places.items()
            if there is None or not there.has_contributed_to(place.epoch, needed)
        )
        missing = policy.quorum - (1 + len(counted) - len(holding))
        if not policy.sync_mask >> number & 1 or missing <= 0:
            return Explanation(number, WAITING, f"{who} for an answer that is on its way", None, (), *_of(place))
        some = f"{missing} of " if missing < len(holding) else ""
        details = "; ".join(self._lagging(other, places[other], place) for other in holding)
        what = f"round {needed}" if policy.staleness else "its round"
        return Explanation(
            number, WAITING, f"{who} for {some}{workers(holding)} to contribute to {what} ({details})",
            self._advice(place, places, holding), holding, *_of(place),
        )  # fmt: skip

    def _lagging(self, other: int, there: _Place | None, place: _Place) -> str:
        report, silent = self.workers[other]["report"] or {}, self.workers[other]["silent_s"]
        doing = str(report.get("state") or "not reporting")
        if there is not None and there.epoch == place.epoch:
            doing += f" in round {there.round}"
        return f"{other} is {doing}, heard {silent:.1f} s ago"

    def _advice(self, place: _Place, places: dict[int, _Place | None], holding: tuple[int, ...]) -> str:
        silent = [other for other in holding if self.workers[other]["silent_s"] > SILENT_S]
        if len(silent) == len(holding) == 1:
            return f"'serenectl evict --job {self.id} --worker {silent[0]}' would let it go on"
        lead = 0
        for other in holding:
            there = places[other]
            same = there is not None and there.epoch == place.epoch
            reached = there.round - (not there.contributed) if there is not None and same else -1
            lead = max(lead, place.round - reached)
        if lead <= MAX_STALENESS:
            return f"'serenectl sync ssp --job {self.id} --staleness {lead}' would let it go on"
        return f"'serenectl sync asp --job {self.id}' would let it go on"


def _place(worker: Json) -> _Place | None:
    report = worker["report"] or {}
    epoch, round_ = report.get("at_epoch"), report.get("at_round")
    if not isinstance(epoch, int) or not isinstance(round_, int):
        return None
    return _Place(epoch, round_, report.get("state") in (WAITING, "exchanging"))


def _of(place: _Place) -> tuple[int, int]:
    return place.round, place.epoch


def _policy(job: Json, members: list[int]) -> PolicyFields | None:
    """The policy in force, compiled anew; None when nothing is in force."""
    if job["state"] != "running" or not members:
        return None
    strategy = {"name": "bsp"} if job["restoring"] else job["strategy"]
    try:
        fields = strategy_from_dict(strategy).compile(members)
    except SereneError:
        return None  # it was meant for workers that have left
    return None if fields.staleness == UNBOUNDED else fields


def workers(ids: Sequence[int]) -> str:
    """``worker 2``, or ``workers 0, 1 and 3``."""
    names = [str(number) for number in ids]
    return f"worker {names[0]}" if len(names) == 1 else f"workers {', '.join(names[:-1])} and {names[-1]}"
