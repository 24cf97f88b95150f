"""How the command line shows the controller's status: tables for a terminal, one plain block for a pipe."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controller.jobs.job import Fact, JobState, Report, WorkerState
from controller.status.explain import automatic_in_words
from controller.status.model import JobExplanation, JobStatus, Status, SwapStatus, SwitchStatus
from serene.racks import Racks

NOT_YET = "-"


def whole(status: Status) -> RenderableType:
    """The switch, every job with a line per worker, and the drops. Jobs that go on come last, next to the prompt."""
    parts: list[RenderableType] = [Text(line) for line in switch_lines(status)]
    if not status.jobs:
        parts.append(Text("no jobs; 'serenectl jobs create --workers N' makes one"))
    for job in sorted(status.jobs, key=lambda job: job.state is not JobState.FINISHED):
        parts += [Text(job_line(job), style="bold"), workers_table(job)]
    parts.append(Text(drops_line(status.switch)))
    return Group(*parts)


def switch_lines(status: Status) -> list[str]:
    """The switch; over racks also each switch, with its level."""
    if len(status.switches) == 1:
        return [switch_line(status.switch)]
    lines = [f"{len(status.switches) - 1} racks: {status.switch.slots} slots of {status.switch.lanes} values"]
    for switch in status.switches:
        state = "connected" if switch.connected else f"NOT connected: {switch.trouble}"
        rack = "" if switch.rack is None else f" of rack {switch.rack}"
        lines.append(f"  {switch.level}{rack} {switch.name} {switch.address}, program {switch.program}; {state}")
    return lines


def fabric_line(status: Status) -> str:
    """In one line: the switch, or how many there are and which are not connected."""
    if len(status.switches) == 1:
        return switch_line(status.switch)
    away = [f"{switch.name} NOT connected: {switch.trouble}" for switch in status.switches if not switch.connected]
    return f"root and {len(status.switches) - 1} racks: {'; '.join(away) or 'all connected'}"


def switch_line(switch: SwitchStatus) -> str:
    state = "connected" if switch.connected else f"NOT connected: {switch.trouble}"
    return (
        f"switch {switch.address} (device {switch.device_id}), program {switch.program}: "
        f"{switch.slots} slots of {switch.lanes} values; {state}"
    )


def job_line(job: JobStatus) -> str:
    line = f"job {job.job}: {job.state.value}, {job.strategy}"
    if job.state is JobState.WAITING:
        here = sum(worker.state is not WorkerState.EXPECTED for worker in job.workers)
        return f"{line}, {here} of {job.workers_expected} workers here"
    line += f", epoch {job.epoch}, {job.vector_length} values in {job.slots} slots"
    return f"{line}; {automatic_in_words(job.automatic, Racks(tuple(job.racks)))}" if job.automatic else line


def drops_line(switch: SwitchStatus) -> str:
    dropped = [f"{reason.replace('_', ' ')} {packets}" for reason, packets in switch.drops.items() if packets]
    return "dropped packets: " + (", ".join(dropped) or "none")


def workers_table(job: JobStatus) -> Table:
    """A line per worker: what it said last, and what the switch counted. It fits 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in (
        "worker",
        "state",
        "iteration",
        "round",
        "loss",
        "accuracy",
        "waiting",
        "blocked",
        "repeats",
    ):
        table.add_column(heading, justify="left" if heading == "state" else "right")
    racks = Racks(tuple(job.racks))
    for worker in job.workers:
        report = worker.report or {}
        table.add_row(
            racks.name(worker.worker),
            shown(report.get("state") if worker.state is WorkerState.RUNNING and report else worker.state.value),
            str(worker.iteration),
            shown(report.get("round")),
            shown(report.get("loss"), ".4f"),
            shown(report.get("accuracy"), ".3f"),
            waiting_share(report),
            str(worker.blocked),
            str(worker.repeats),
        )
    return table


def jobs_table(jobs: list[JobStatus]) -> Table:
    """A line per job."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("job", "state", "strategy", "epoch", "workers", "values", "slots"):
        table.add_column(heading, justify="left" if heading in ("state", "strategy") else "right")
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
    """``job 0: BSP -> SSP(3), epoch 4 (12 ms)``."""
    if not swap.changed:
        return f"job {job}: {swap.strategy} already, nothing changes"
    line = f"job {job}: {swap.before} -> {swap.strategy}"
    if swap.epoch == 0:
        return f"{line}, when it starts"
    return f"{line}, epoch {swap.epoch} ({swap.write_ms:.0f} ms)"


def waiting_share(report: Report) -> str:
    """Of the time a worker has reported, the share in which it waited at the barrier."""
    parts = [report.get(part) for part in ("waiting_s", "compute_s", "network_s")]
    seconds = [float(part) for part in parts if isinstance(part, int | float) and part >= 0]
    total = sum(seconds)
    return f"{seconds[0] / total:.0%}" if len(seconds) == len(parts) and total else NOT_YET


def shown(value: Fact, form: str = "") -> Text:
    """What a worker said is shown whatever it is, and is no markup."""
    if value is None:
        return Text(NOT_YET)
    return Text(format(value, form) if isinstance(value, int | float) else str(value))


def explanation(told: JobExplanation) -> RenderableType:
    """The job's headline, and a line or two a worker."""
    lines = [Text(told.headline, style="bold")]
    for worker in told.workers:
        lines.append(Text(f"  {worker.text}", style="yellow" if worker.waits_for else ""))
        if worker.advice:
            lines.append(Text(f"    {worker.advice}", style="dim"))
    return Group(*lines)
