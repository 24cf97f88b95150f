"""Texts that explain why a worker waits: for which workers, in which round of which epoch, and how to end the wait.

They are computed from a status: the switch's counters and the workers' reports. A worker reports at most five times a
second, also while it waits, so its "present" state may be that old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.status.model import (
    AutomaticStatus,
    Explanation,
    JobStatus,
    NamedSwitchStatus,
    Status,
    SwitchStatus,
    WorkerStatus,
    workers,
)
from serene.errors import SereneError, numbers, one_line
from serene.racks import Racks
from serene.report import Facts, doing, values, whole
from serene.strategy import BSP, MAX_STALENESS, PolicyFields
from serene.wire import UNBOUNDED

SILENT_S = 3.0  # after this a worker counts as silent: even a waiting one sends twice a second
LONGEST_NAME = 300  # shown characters of an automatic strategy's name
WAITING = "waiting"  # a state that workers report


class NoSuchWorker(SereneError):
    """The job has no worker of this number."""


def explain(status: Status, job_id: int, worker_id: int | None = None) -> list[Explanation]:
    """The explanation of each worker of a job, or of one of them. The job has to be in the status. Raises
    NoSuchWorker."""
    job = next(job for job in status.jobs if job.job == job_id)
    ids = [worker.worker for worker in job.workers]
    if worker_id is not None and worker_id not in ids:
        raise NoSuchWorker(f"job {job_id} has no worker {worker_id}: expected {numbers(ids)}")
    view = _Job(job)
    return [view.explain(worker) for worker in job.workers if worker_id in (None, worker.worker)]


def headline(status: Status, job_id: int) -> str:
    """The job in one line: the strategy in force, or what the whole job waits for. The job has to be in the status."""
    job = next(job for job in status.jobs if job.job == job_id)
    strategy, racks = job.strategy, Racks(tuple(job.racks))
    if not status.switch.connected and len(racks.sizes) > 1:
        away = [f"{_level(switch)} {switch.name} ({switch.trouble})" for switch in status.switches if switch.trouble]
        return f"job {job_id}: {' and '.join(away)} unreachable; the following is outdated"
    if not status.switch.connected:
        trouble = f"{status.switch.trouble}{remedy(status.switch)}"
        return f"job {job_id}: the switch is unreachable ({trouble}); the following is outdated"
    if job.state is JobState.WAITING:
        missing = [worker.worker for worker in job.workers if worker.state is WorkerState.EXPECTED]
        evicted = [worker for worker in job.workers if worker.state is WorkerState.EVICTED]
        coming = [worker.worker for worker in evicted if worker.port is None]
        if coming and not missing:
            return f"job {job_id} waits a few seconds for evicted {workers(coming, racks.name)}, then starts"
        if not missing:
            return f"job {job_id} is about to start under {strategy}: all workers have joined"
        again = "again " if job.lost_sessions else ""
        return f"job {job_id} waits for {workers(missing, racks.name)} to join {again}before it starts under {strategy}"
    if job.state is JobState.FINISHED:
        return f"job {job_id} has finished: every worker has left"
    if job.restoring:
        return f"job {job_id}: the switch lost its state; workers restore their sums under BSP, then {strategy} resumes"
    automatic = f", {automatic_in_words(job.automatic, racks)}" if job.automatic else ""
    slow = f"; {job.slow.text}" if job.slow is not None else ""
    return f"job {job_id} runs under {strategy}{automatic}, epoch {job.epoch}{slow}"


def remedy(switch: SwitchStatus) -> str:
    """What helps if the switch is unreachable, as the end of a sentence. Only ``serenectl up --local`` makes ports of
    shared memory."""
    return "; if it has ended, 'serenectl up --local' starts it again" if switch.shm_ports else ""


def _level(switch: NamedSwitchStatus) -> str:
    return "the root" if switch.rack is None else f"the leaf of rack {switch.rack}"


def automatic_in_words(automatic: AutomaticStatus, racks: Racks) -> str:
    """A text: whether an automatic strategy decides, or why it does not."""
    name = one_line(automatic.name, LONGEST_NAME)  # of a file
    if automatic.trouble:
        return f"automatic strategy {name} was stopped ({automatic.trouble})"
    if automatic.blind_to:
        return (
            f"{name} is blind to {workers(automatic.blind_to, racks.name)} "
            f"(no reports of {' and '.join(automatic.needs)})"
        )
    return f"automatic strategy {name}{f' ({automatic.reason})' if automatic.reason else ''}"


@dataclass(frozen=True)
class _Position:
    """A worker's position by its latest report: round, epoch, and whether it has contributed to that round."""

    epoch: int
    round: int
    contributed: bool

    def has_contributed_to(self, epoch: int, round_: int) -> bool:
        """Whether it has contributed to that round, or is in a later epoch."""
        if self.epoch != epoch:
            return self.epoch > epoch
        return self.round > round_ or (self.round == round_ and self.contributed)


class _Job:
    """A job's policy and its workers' positions."""

    def __init__(self, job: JobStatus) -> None:
        self.id = job.job
        self.pool = job.pool
        # An automatic strategy ends when its user chooses another one.
        self.cost = "" if job.automatic is None or job.automatic.trouble else ", and end the automatic strategy"
        self.racks = Racks(tuple(job.racks))
        self.workers = {worker.worker: worker for worker in job.workers}
        waited_for = [worker for worker in job.workers if worker.state is WorkerState.RUNNING or _restores(job, worker)]
        self.members = [worker.worker for worker in waited_for]
        self.elastic, self.evict_after = job.places is not None, job.evict_after
        self.policy = _policy(job, self.members)

    def explain(self, worker: WorkerStatus) -> Explanation:
        number, name, position = worker.worker, self.racks.name(worker.worker), _position(worker)
        if worker.state is not WorkerState.RUNNING:
            state, text, advice = self._not_running(worker, name)
            return _explanation(number, state, f"worker {name}{text}", advice)
        state = doing(worker.report) or "not reporting"
        at = "" if position is None else f" in round {position.round} of epoch {position.epoch}"
        if worker.silent_s > SILENT_S:
            text = f"worker {name} has been silent for {worker.silent_s:.0f} s; before that it was {state}{at}"
            advice = f"if it is dead: restart it, or 'serenectl evict --job {self.id} --worker {name}'"
            if self.pool:
                advice = "if it is dead: start all ranks again; a process group's job cannot continue with fewer ranks"
            return _explanation(number, "silent", text, advice, position=position)
        if state == WAITING and position is not None and self.policy is not None:
            return self._waiting(number, position)
        return _explanation(number, state, f"worker {name} is {state}{at}{_copying(worker.report)}", position=position)

    def _not_running(self, worker: WorkerStatus, name: str) -> tuple[str, str, str | None]:
        """The state, the text after the worker's name, and advice."""
        state = worker.state.value
        if worker.state is WorkerState.EXPECTED:
            return state, " has not joined yet", "start it, or see its log"
        if worker.state is WorkerState.JOINED:
            return state, " has joined and waits for the job to start", None
        if worker.state is WorkerState.LEFT:
            return (
                ("free", ": a free place", None) if self.elastic and worker.port is None else (state, " has left", None)
            )
        if worker.worker in self.members:
            return state, " is evicted; it votes in the restoration", None
        if worker.port is None:
            return state, " is evicted, and has not joined since the switch lost its state", None
        sends = f"silent for {worker.silent_s:.0f} s" if worker.silent_s > SILENT_S else "it still sends"
        back = f"'serenectl readmit --job {self.id} --worker {name}' makes the barrier wait for it again"
        if self.evict_after is not None and worker.silent_s > self.evict_after:
            back = "if it is dead: restart it; a new process gets a free place"
        return state, f" is evicted: nobody waits for it ({sends})", back

    def _waiting(self, number: int, position: _Position) -> Explanation:
        policy = self.policy
        assert policy is not None
        who = f"worker {self.racks.name(number)} waits in round {position.round} of epoch {position.epoch}"
        needed = position.round - policy.staleness  # the round that has to complete
        counted = [other for other in self.members if policy.sync_mask >> other & 1 and other != number]
        positions = {other: _position(self.workers[other]) for other in counted}
        awaited = tuple(
            other
            for other, there in positions.items()
            if there is None or not there.has_contributed_to(position.epoch, needed)
        )
        missing = policy.quorum - (1 + len(counted) - len(awaited))
        if not policy.sync_mask >> number & 1 or missing <= 0:
            return _explanation(number, WAITING, f"{who} for an answer in flight", position=position)
        some = f"{missing} of " if missing < len(awaited) else ""
        details = "; ".join(self._state_of(other, positions[other], position) for other in awaited)
        what = f"round {needed}" if policy.staleness else "its round"
        names = workers(awaited, self.racks.name)
        explained = _explanation(
            number, WAITING, f"{who} for {some}{names} to contribute to {what} ({details})",
            self._advice(position, positions, awaited), awaited, position,
        )  # fmt: skip
        return explained if len(self.racks.sizes) < 2 else self._by_rack(explained)

    def _by_rack(self, explained: Explanation) -> Explanation:
        """Adds the racks of the awaited workers: its leaf waits for contributions of its own rack, the root for those
        of other racks."""
        own = self.racks.place(explained.worker)[0]
        racks = sorted({self.racks.place(other)[0] for other in explained.waits_for})
        elsewhere = [rack for rack in racks if rack != own]
        where = [f"at the leaf of its own rack {own}"] if own in racks else []
        if elsewhere:
            where.append(f"at the root for {'racks' if elsewhere[1:] else 'rack'} {', '.join(map(str, elsewhere))}")
        text = f"{explained.text}; {' and '.join(where)}"
        return explained.model_copy(update={"text": text, "racks": racks, "level": "root" if elsewhere else "leaf"})

    def _state_of(self, other: int, there: _Position | None, position: _Position) -> str:
        silent = self.workers[other].silent_s
        state = doing(self.workers[other].report) or "not reporting"
        if there is not None and there.epoch == position.epoch:
            state += f" in round {there.round}"
        return f"{self.racks.name(other)} is {state}, last packet {silent:.1f} s ago"

    def _advice(self, position: _Position, positions: dict[int, _Position | None], awaited: tuple[int, ...]) -> str:
        if self.pool:
            return "no swap would help: the job belongs to a process group, which stays under BSP"
        silent = [other for other in awaited if self.workers[other].silent_s > SILENT_S]
        if len(silent) == len(awaited) == 1:
            return f"'serenectl evict --job {self.id} --worker {self.racks.name(silent[0])}' would end the wait"
        lead = 0
        for other in awaited:
            there = positions[other]
            same = there is not None and there.epoch == position.epoch
            reached = there.round - (not there.contributed) if there is not None and same else -1
            lead = max(lead, position.round - reached)
        swap = "asp" if lead > MAX_STALENESS else "ssp"
        bound = "" if lead > MAX_STALENESS else f" --staleness {lead}"
        return f"'serenectl sync {swap} --job {self.id}{bound}' would end the wait{self.cost}"


def _copying(report: Facts | None) -> str:
    """The time that a worker with tensors on a device has waited for copies, and for sums."""
    copying, *sums = values(report, "copying_s", "network_s", "waiting_s")
    if copying is None:
        return ""
    summing = sum(seconds or 0.0 for seconds in sums)
    return f"; so far it waited {copying:.1f} s for copies from and to its device, and {summing:.1f} s for sums"


def _restores(job: JobStatus, worker: WorkerStatus) -> bool:
    """Whether an evicted worker takes part in restoring the sums. Then the others wait for it."""
    return job.restoring and worker.state is WorkerState.EVICTED and worker.port is not None


def _position(worker: WorkerStatus) -> _Position | None:
    epoch, round_ = whole(worker.report, "at_epoch"), whole(worker.report, "at_round")
    if epoch is None or round_ is None:
        return None
    return _Position(epoch, round_, doing(worker.report) in (WAITING, "exchanging"))


def _policy(job: JobStatus, members: list[int]) -> PolicyFields | None:
    """The policy in force, compiled again; None if none is in force, or if no worker waits under it."""
    if job.state is not JobState.RUNNING or not members:
        return None
    try:
        fields = (BSP() if job.restoring else job.strategy).compile(members)
    except SereneError:
        return None  # some of the workers for which it was chosen have left
    return None if fields.staleness == UNBOUNDED else fields


def _explanation(
    number: int,
    state: str,
    text: str,
    advice: str | None = None,
    waits_for: Sequence[int] = (),
    position: _Position | None = None,
) -> Explanation:
    there: dict[str, Any] = {"round": position.round, "epoch": position.epoch} if position else {}
    return Explanation(worker=number, state=state, text=text, advice=advice, waits_for=list(waits_for), **there)
