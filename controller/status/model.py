"""What the controller says about itself: the one definition of the JSON that its HTTP interface sends.

The server makes these, `controller.http.client` reads them back, and views, explanations, metrics and experiments take
their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator
from pydantic_core import PydanticKnownError

from controller.jobs.job import JobState, Report, WorkerState
from controller.settings import ShmPort, UdpPort
from controller.switch.counters import Counters
from serene.strategy import Strategy, strategy_from_dict, to_dict


def _strategy(given: object) -> Strategy:
    if isinstance(given, Strategy):
        return given
    if not isinstance(given, dict):
        raise PydanticKnownError("dict_type")
    return strategy_from_dict(given)


StrategyField = Annotated[Strategy, PlainValidator(_strategy), PlainSerializer(to_dict)]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


class Listening(Model):
    """Where the controller listens: HOST:PORT, and the path of a Unix socket, or empty."""

    http: str
    socket: str


class SwitchStatus(Model):
    """``trouble``: why it is not connected. ``drops``: packets dropped, by reason. ``totals``: of all listed workers.
    ``requests_overlooked``: requests of workers for which there was no room."""

    address: str
    device_id: int
    ip: str  # to which workers send
    udp_ports: Sequence[UdpPort]  # where it is on this machine, and its ports are UDP sockets of loopback
    shm_ports: Sequence[ShmPort] = ()  # or its ports are memory shared with processes
    election_id: int
    connected: bool
    trouble: str | None
    program: str
    lanes: int
    slots: int
    drops: dict[str, int]
    totals: Counters
    requests_overlooked: int


class NamedSwitchStatus(Model):
    """One of the switches that are commanded. level: switch (the only one), root or leaf; rack: a leaf's."""

    name: str
    level: Literal["switch", "root", "leaf"]
    rack: int | None
    address: str
    connected: bool
    trouble: str | None
    program: str
    drops: dict[str, int]


class WorkerStatus(Counters):
    """One worker, number ``place`` of its rack (one switch is rack 0); an iteration is a contribution to every slot of
    the job. ``staleness``: contributions that were 0, 1, ... 14, and 15 or more rounds old when they arrived.
    ``contributions_sent``: packets, as it said when it left."""

    worker: int
    rack: int
    place: int
    state: WorkerState
    port: int | None
    ip: str | None
    mac: str | None
    udp_port: int | None
    incarnation: int | None
    iteration: int
    staleness: list[int]
    silent_s: float
    contributions_sent: int | None
    report: Report | None


class AutomaticStatus(Model):
    """An automatic strategy of a job. ``trouble``: why it no longer decides. ``blind_to``: workers whose reports do not
    tell what it ``needs``."""

    name: str
    parameters: dict[str, object]
    decisions: int
    changes: int
    trouble: str | None
    needs: list[str]
    blind_to: list[int]


class EpochStatus(Model):
    """An epoch's beginning; ``t`` in Unix seconds."""

    t: float
    session: int
    epoch: int
    strategy: StrategyField
    reason: str


class JobStatus(Model):
    """One job. ``slots`` is what it needs, ``first_slot`` where they are while it holds them; ``history`` has the
    latest of all ``epochs_begun``. ``strategy`` is the wanted one: while ``restoring``, BSP is in force."""

    job: int
    state: JobState
    session: int
    epoch: int
    strategy: StrategyField
    pool: bool  # a process group's: BSP, and nobody is replaced
    automatic: AutomaticStatus | None
    lost_sessions: int
    restoring: bool
    workers_expected: int
    racks: list[int]  # workers in each
    first_slot: int | None
    slots: int
    vector_length: int
    scale: int
    limit: float
    workers: list[WorkerStatus]
    epochs_begun: int
    history: list[EpochStatus]


class Status(Model):
    """Everything."""

    listening: Listening
    switch: SwitchStatus  # of several: as one, at the root's address
    switches: list[NamedSwitchStatus]
    jobs: list[JobStatus]


class SwapStatus(Model):
    """A swap that was asked for: its epoch (0 while the job waits), the strategy before, how long the switch took, and
    of this over racks how long to prepare the leaves, and then to put it in force at the root.
    Not ``changed``: the strategy was in force already, and no epoch has begun."""

    epoch: int
    strategy: StrategyField
    t: float
    before: StrategyField
    write_ms: float
    prepare_ms: float | None = None
    flip_ms: float | None = None
    changed: bool


class Explanation(Model):
    """One worker's state. waits_for: the workers it waits for; round, epoch: where it is, None when unknown. Over racks
    ``racks``: where those are whom it waits for, and ``level``: the switch that lacks their contributions, its leaf
    or, if they are in other racks, too, the root."""

    worker: int
    state: str  # expected, joined, left, evicted, silent, or what the worker reports: computing, waiting, ...
    text: str
    advice: str | None = None
    waits_for: list[int] = []
    racks: list[int] = []
    level: Literal["leaf", "root"] | None = None
    round: int | None = None
    epoch: int | None = None


class JobExplanation(Model):
    """The job in one line, and each of its workers that was asked for."""

    headline: str
    workers: list[Explanation]


class WorkerTimeline(Model):
    """What a worker did. ``turns``: when it began (Unix seconds) to do what, by its number in `recorder.STATES`. The
    other lists have an element for each BIN_S seconds from number ``first`` (of Unix time) on: shares of that time in
    per cent, and what was reported last in it, None where nothing was."""

    worker: int
    turns: list[tuple[float, int]]
    first: int
    computing: list[int]
    sending: list[int]
    waiting: list[int]
    loss: list[float | None]
    accuracy: list[float | None]


class JobTimeline(Model):
    """What a job's workers did after a moment. ``recording`` changes when the controller forgets what was before."""

    job: int
    recording: float
    workers: list[WorkerTimeline]


class Event(Model):
    """Something that happened at ``t`` (Unix seconds): ``event`` is its name for programs, ``text`` a line for people.
    What the event is not about is None, and absent in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: str
    t: float
    text: str
    job: int
    session: int | None = None
    worker: int | None = None
    workers: list[int] | None = None
    epoch: int | None = None
    strategy: StrategyField | None = None
    automatic: AutomaticStatus | None = None


class Snapshot(Model):
    """In the live stream, about five times a second."""

    event: Literal["status"] = "status"
    status: Status


class Live(Model):
    """What a page shows at ``t`` (Unix seconds): the status and the reasons, job by job, and what happened since the
    moment that was asked for."""

    t: float
    status: Status
    explanations: list[JobExplanation]
    timelines: list[JobTimeline]
    events: list[Event]


class Parameter(Model):
    """Of an automatic strategy; ``kind``: bool, int or float."""

    name: str
    kind: str
    default: bool | int | float


class AutomaticChoice(Model):
    """An automatic strategy that is shipped; ``about``: what it does, in a line."""

    name: str
    about: str
    parameters: list[Parameter]


class Choices(Model):
    """What may be chosen. ``colours``: of strategies by their text, of what workers do by its name."""

    max_staleness: int
    max_workers: int
    max_jobs: int
    automatic: list[AutomaticChoice]
    colours: dict[str, str]


def workers(ids: Sequence[int], name: Callable[[int], str] = str) -> str:
    """``worker 2``, or ``workers 0, 1 and 3``; over racks ``Racks.name`` says how one is called."""
    names = [name(number) for number in ids]
    return f"worker {names[0]}" if len(names) == 1 else f"workers {', '.join(names[:-1])} and {names[-1]}"
