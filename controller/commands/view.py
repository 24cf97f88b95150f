"""The controller's answers as lines and tables for the command line."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.status.explain import LONGEST_NAME, automatic_in_words, remedy
from serene.controller.status.model import (
    JobExplanation,
    JobStatus,
    PrecisionStatus,
    Status,
    SwapStatus,
    SwitchStatus,
    WorkerStatus,
)
from serene.errors import one_line, plural
from serene.racks import Racks
from serene.report import Fact, Facts, values

NOT_YET = "-"
LONGEST_LINE = 500  # characters of texts that processes send
LATEST = 3  # finished jobs that are shown
# A PyTorch program makes its own job. A job by 'jobs create' would be a second one, which it does not use.
MADE_BY = "a PyTorch program or 'serenectl jobs create --workers N'"


def whole(status: Status, finished: int | None = LATEST) -> RenderableType:
    """The switch, the jobs with a line for each worker, and the drops. Finished jobs come first, so that the others are
    next to the prompt. finished: at most this number of them, the latest; None: all."""
    parts: list[RenderableType] = [Text(line) for line in switch_lines(status)]
    if line := no_jobs_line(status):
        parts.append(Text(line))
    over, older = latest_finished(status, finished)
    if older:
        parts.append(Text(f"{older_line(older)}: 'serenectl status --all'"))
    for job in [*over, *(job for job in status.jobs if job.state is not JobState.FINISHED)]:
        parts += [Text(job_line(job), style="bold"), workers_table(job)]
    parts += [Text(line, style="bold") for line in gathering_lines(status)]
    parts.append(Text(drops_line(status.switch)))
    return Group(*parts)


def no_jobs_line(status: Status) -> str:
    """Advice if there is no job; "" if there is one."""
    return "" if status.jobs or status.gathering else f"no jobs; create one with {MADE_BY}"


def gathering_lines(status: Status) -> list[str]:
    """``not started yet: 1 of 2 processes of job 'gpt' are here``, a line for each job that processes wait for."""
    return [f"not started yet: {one_line(waiting.waits, LONGEST_LINE)}" for waiting in status.gathering]


def latest_finished(status: Status, most: int | None = LATEST) -> tuple[list[JobStatus], int]:
    """The finished jobs that began last, ``most`` of them or all, the latest at the end; and the number of others."""
    finished = sorted((job for job in status.jobs if job.state is JobState.FINISHED), key=lambda job: job.session)
    older = 0 if most is None else max(len(finished) - most, 0)
    return finished[older:], older


def older_line(older: int) -> str:
    """``7 more jobs have finished``."""
    return f"{plural(older, 'more job')} {'has' if older == 1 else 'have'} finished"


def switch_lines(status: Status) -> list[str]:
    """The switch in a line; over racks a line for all, and one for each switch."""
    if len(status.switches) == 1:
        return [switch_line(status.switch)]
    lines = [f"{len(status.switches) - 1} racks: {status.switch.slots} slots of {status.switch.lanes} values"]
    for switch in status.switches:
        state = "connected" if switch.connected else f"NOT connected: {switch.trouble}"
        rack = "" if switch.rack is None else f" (leaf of rack {switch.rack})"
        lines.append(f"  {switch.name}{rack} {switch.address}, program {switch.program}; {state}")
    return lines


def ports_line(switch: SwitchStatus) -> str:
    """The number and kind of ports for programs on this machine; "" if the switch is elsewhere."""
    for ports, kind in ((switch.shm_ports, "shared memory"), (switch.udp_ports, "UDP on loopback")):
        if ports:
            return f"{len(ports)} ports for programs on this machine: {kind}"
    return ""


def room_line(switch: SwitchStatus) -> str:
    """``room for 11,200,000 values, 9.7 bytes of memory each (108 MB)``; "" if the size of a slot is unknown. Over
    racks: a leaf's memory."""
    if switch.bytes_per_slot is None:
        return ""
    each, whole = switch.bytes_per_slot / switch.lanes, switch.bytes_per_slot * switch.slots
    return f"room for {switch.slots * switch.lanes:,} values, {each:.1f} bytes of memory each ({whole / 1e6:,.0f} MB)"


def fabric_line(status: Status) -> str:
    """One line: the switch, or the number of racks and the switches that are not connected."""
    if len(status.switches) == 1:
        return switch_line(status.switch)
    away = [f"{switch.name} NOT connected: {switch.trouble}" for switch in status.switches if not switch.connected]
    return f"root and {len(status.switches) - 1} racks: {'; '.join(away) or 'all connected'}"


def switch_line(switch: SwitchStatus) -> str:
    """``switch 127.0.0.1:9559 (device 0), program serene: 8192 slots of 320 values; connected``."""
    state = "connected" if switch.connected else f"NOT connected: {switch.trouble}{remedy(switch)}"
    return (
        f"switch {switch.address} (device {switch.device_id}), program {switch.program}: "
        f"{switch.slots} slots of {switch.lanes} values; {state}"
    )


def job_line(job: JobStatus) -> str:
    """``job 0: running, SSP(3), epoch 2, 79510 values in 249 slots``."""
    named = f" ({job.name})" if job.name else ""
    line = f"job {job.job}{named}: {job.state.value}, {job.strategy}"
    if job.state is JobState.WAITING:
        here = sum(worker.state is not WorkerState.EXPECTED for worker in job.workers)
        places = f", {job.places} places" if job.places is not None else ""
        return f"{line}, {here} of {job.workers_expected} workers here{places}"
    if job.places is not None:
        line += f", {sum(worker.state is WorkerState.RUNNING for worker in job.workers)} of {job.places} places"
    bits = f" in {job.precision} bits" if job.pool else ""
    line += f"{bits}, epoch {job.epoch}, {job.vector_length} values in {job.slots} slots"
    if job.automatic:
        line += f"; {automatic_in_words(job.automatic, Racks(tuple(job.racks)))}"
    return f"{line}; {job.slow.text}" if job.slow is not None else line


def drops_line(switch: SwitchStatus) -> str:
    """``dropped packets: wrong round 3``, or ``none``."""
    dropped = [f"{reason.replace('_', ' ')} {packets}" for reason, packets in switch.drops.items() if packets]
    return "dropped packets: " + (", ".join(dropped) or "none")


def workers_table(job: JobStatus) -> Table:
    """A row for each worker: its latest report, and the switch's counters. It fits 80 columns."""
    head = ("worker", "state", "iteration", "round", "loss", "accuracy", "waiting", "blocked", "repeats")
    table, racks = _table(head, gap=1), Racks(tuple(job.racks))
    for worker in job.workers:
        report = worker.report or {}
        table.add_row(
            racks.name(worker.worker),
            _state(job, worker),
            str(worker.iteration),
            shown(report.get("round")),
            shown(report.get("loss"), ".4f"),
            shown(report.get("accuracy"), ".3f"),
            waiting_share(report),
            str(worker.blocked),
            str(worker.repeats),
        )
    return table


def _table(head: Iterable[str], gap: int) -> Table:
    """A table without rows. gap: columns of the terminal between two of its columns."""
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for heading in head:
        table.add_column(heading, justify="left" if heading in ("state", "strategy") else "right")
    return table


def _state(job: JobStatus, worker: WorkerStatus) -> Text | str:
    """A worker's reported state, or its state in the job; ``free`` for a place that no process has had."""
    if worker.state is WorkerState.RUNNING and worker.report:
        return shown(worker.report.get("state"))
    if job.places is not None and worker.state is WorkerState.LEFT and worker.port is None:
        return "free"
    return worker.state.value


def jobs_table(jobs: list[JobStatus]) -> Table:
    """A row for each job."""
    table = _table(("job", "state", "strategy", "epoch", "workers", "values", "slots"), gap=2)
    for job in jobs:
        table.add_row(
            str(job.job),
            job.state.value,
            str(job.strategy),
            str(job.epoch or NOT_YET),
            str(job.workers_expected),
            str(job.vector_length or NOT_YET),
            str(job.slots or NOT_YET),
        )
    return table


def swap_line(job: int, swap: SwapStatus) -> str:
    """``job 0: BSP -> SSP(3), epoch 4 (12 ms)``, and the automatic strategy that it has ended."""
    if not swap.changed:
        line = f"job {job}: already {swap.strategy}, no change"
    elif swap.epoch == 0:
        line = f"job {job}: {swap.before} -> {swap.strategy}, when it starts"
    else:
        line = f"job {job}: {swap.before} -> {swap.strategy}, epoch {swap.epoch} ({swap.write_ms:.0f} ms)"
    ended = swap.automatic_ended
    return line if ended is None else f"{line}; automatic strategy {one_line(ended, LONGEST_NAME)} is off"


def precision_line(job: int, change: PrecisionStatus) -> str:
    """``job 0: 32 -> 8 bits, epoch 2 (1 ms)``."""
    if not change.changed:
        return f"job {job}: already {change.precision} bits, no change"
    return f"job {job}: {change.before} -> {change.precision} bits, epoch {change.epoch} ({change.write_ms:.0f} ms)"


def waiting_share(report: Facts) -> str:
    """The share of a worker's time, by its report, in which it waited for others."""
    parts = values(report, "waiting_s", "compute_s", "network_s")
    seconds = [part for part in parts if part is not None and part >= 0]
    total = sum(seconds)
    return f"{seconds[0] / total:.0%}" if len(seconds) == len(parts) and total else NOT_YET


def shown(value: Fact, form: str = "") -> Text:
    """Any value that a worker reported, as text without markup. form: a format for numbers."""
    if value is None:
        return Text(NOT_YET)
    return Text(format(value, form) if isinstance(value, int | float) else str(value))


def explanation(job: JobExplanation) -> RenderableType:
    """The job's headline, a line for each worker, and a second line for advice."""
    lines = [Text(job.headline, style="bold")]
    for worker in job.workers:
        lines.append(Text(f"  {worker.text}", style="yellow" if worker.waits_for else ""))
        if worker.advice:
            lines.append(Text(f"    {worker.advice}", style="dim"))
    return Group(*lines)
