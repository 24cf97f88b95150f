"""The models of the JSON of the controller's HTTP interface. They are defined only here.

The server makes them, `serene.controller.http.client` parses them, and views, explanations, metrics and experiments use
their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator
from pydantic_core import PydanticKnownError

from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.settings import ShmPort, UdpPort
from serene.controller.switch.counters import Counters
from serene.report import Facts
from serene.strategy import Strategy, strategy_from_dict, to_dict


def _strategy(given: object) -> Strategy:
    if isinstance(given, Strategy):
        return given
    if not isinstance(given, dict):
        raise PydanticKnownError("dict_type")
    return strategy_from_dict(given)


M = TypeVar("M", bound=BaseModel)

StrategyField = Annotated[Strategy, PlainValidator(_strategy), PlainSerializer(to_dict)]


class Model(BaseModel):
    """The base of all models, which are immutable."""

    model_config = ConfigDict(frozen=True, defer_build=True)


def of(kind: type[M], *sources: object, **rest: Any) -> M:
    """A model whose fields are attributes of the sources, each of the first source that has it; and the rest."""
    for name in kind.model_fields:
        for source in sources:
            if name not in rest and hasattr(source, name):
                rest[name] = getattr(source, name)
    return kind(**rest)


class Listening(Model):
    """The controller's addresses. http: HOST:PORT; socket: the path of a Unix socket, empty for none."""

    http: str
    socket: str


class SwitchStatus(Model):
    """The switch that the controller commands. trouble: why it is not connected. drops: packets dropped, by reason.
    totals: counters of all workers together. requests_overlooked: the number of workers' requests for which there was
    no room."""

    address: str
    device_id: int
    ip: str  # the address to which workers send
    udp_ports: Sequence[UdpPort]  # its ports that are UDP sockets on loopback, if it is on this machine
    shm_ports: Sequence[ShmPort] = ()  # its ports that are memory shared with processes
    election_id: int
    connected: bool
    trouble: str | None
    program: str
    lanes: int
    slots: int
    bytes_per_slot: int | None = None  # of the switch's memory; None if the compiled program does not have that number
    drops: dict[str, int]
    totals: Counters
    requests_overlooked: int


class NamedSwitchStatus(Model):
    """One of the switches that the controller commands. level: "switch" is the only one; rack: a leaf's."""

    name: str
    level: Literal["switch", "root", "leaf"]
    rack: int | None
    address: str
    connected: bool
    trouble: str | None
    program: str
    drops: dict[str, int]


class WorkerStatus(Counters):
    """One worker. worker: its number in the job; place: its number in its rack, which is rack 0 with one switch.
    iteration: the number of times that it has contributed to every slot of the job. staleness: the numbers of
    contributions with a staleness of 0, 1, ... 14, and 15 or more rounds. silent_s: seconds since its last packet or
    report. contributions_sent: packets, from its LEAVE. report: its latest."""

    worker: int
    rack: int
    place: int
    state: WorkerState
    port: int | None = None
    ip: str | None = None
    mac: str | None = None
    udp_port: int | None = None
    incarnation: int | None = None
    iteration: int
    staleness: list[int]
    silent_s: float
    contributions_sent: int | None
    report: Facts | None


class AutomaticStatus(Model):
    """An automatic strategy of a job that has not finished. decisions: their number; changes: the number of these that
    made a swap. reason: of its last decision, or empty. trouble: the error that ended it. needs: the fields of a
    WorkerView without which it cannot decide; blind_to: the workers whose reports lack them."""

    name: str
    parameters: dict[str, object]
    decisions: int
    changes: int
    reason: str = ""
    trouble: str | None
    needs: list[str]
    blind_to: list[int]


class EpochStatus(Model):
    """The beginning of an epoch. t: in Unix seconds."""

    t: float
    session: int
    epoch: int
    strategy: StrategyField
    reason: str


class SlowWorker(Model):
    """The worker that the others of a job under BSP wait for in nearly every step (`serene.controller.status.slow`).
    since: in Unix seconds. lateness_s: the time by which a step would be shorter without it; step_s: a step's time.
    where: its slow part. why: a text; text: the same with the worker's name."""

    worker: int
    since: float
    lateness_s: float
    step_s: float
    where: Literal["computing", "network"]
    why: str
    text: str


class JobStatus(Model):
    """One job. name: by which its processes find it, if it has one. strategy: the wanted one; while the sums are being
    restored (``restoring``), BSP is in force. slots: the number that it needs; first_slot: the first of them, None
    while it has none. scale: fixed-point units in 1.0; limit: the largest |value| of a contribution. epochs_begun:
    their number in all its sessions; history: the latest epochs."""

    job: int
    name: str | None = None
    state: JobState
    session: int
    epoch: int
    strategy: StrategyField
    pool: bool  # a process group's job, which always uses BSP and keeps its first workers
    precision: int  # bits of a pool's gradients' values; 32 for other jobs
    automatic: AutomaticStatus | None
    slow: SlowWorker | None = None
    lost_sessions: int
    restoring: bool
    workers_expected: int
    places: int | None = None  # of a job whose workers come and go: most workers at a time
    minimum: int | None = None  # members that eviction for silence leaves
    evict_after: float | None = None  # seconds of silence before a worker is evicted
    racks: list[int]  # workers in each rack
    first_slot: int | None
    slots: int
    vector_length: int
    scale: int
    limit: float
    workers: list[WorkerStatus]
    epochs_begun: int
    history: list[EpochStatus]


class PlaceStatus(Model):
    """The place of a process in a job that it named. job: its id; worker: its number in the job; rack, place: its rack
    and its number there. These are None if it has no place yet. Then it has to ask again, and ``waits`` has the
    reason."""

    job: int | None = None
    worker: int | None = None
    rack: int | None = None
    place: int | None = None
    waits: str = ""


class GatheringStatus(Model):
    """Processes that have named a job which is not made yet. name: the job's. processes: their number. waits: a text of
    what they wait for."""

    name: str
    processes: int
    waits: str


class Status(Model):
    """The status of the controller, its switches and its jobs. gathering: processes of jobs that are not made yet."""

    listening: Listening
    switch: SwitchStatus  # several switches as one, at the root's address
    switches: list[NamedSwitchStatus]
    jobs: list[JobStatus]
    gathering: list[GatheringStatus] = []


class SwapStatus(Model):
    """The result of a requested swap. epoch: the new one, 0 while the job waits. t: in Unix seconds. before: the
    strategy until then. write_ms: the switch's time; over racks also prepare_ms, to prepare the leaves, and flip_ms, to
    put it in force at the root. changed: False if the strategy was in force already, and no epoch began.
    automatic_ended: the name of the automatic strategy that the swap has ended."""

    epoch: int
    strategy: StrategyField
    t: float
    before: StrategyField
    write_ms: float
    prepare_ms: float | None = None
    flip_ms: float | None = None
    changed: bool
    automatic_ended: str | None = None


class PrecisionStatus(Model):
    """The result of a requested change of precision. epoch: the new one. precision, before: bits from then on, and
    until then. write_ms: the switch's time. changed: False if the precision was in force already, and no epoch
    began."""

    epoch: int
    precision: int
    before: int
    write_ms: float
    changed: bool


class Explanation(Model):
    """An explanation of one worker's state. text: for people. advice: a command that would end its wait. waits_for: the
    workers that it waits for. round, epoch: its own, None when unknown. Over racks also racks: of the awaited workers;
    and level: the switch that waits for their contributions. That is the worker's leaf, or the root if some are in
    other racks."""

    worker: int
    state: str  # expected, joined, free, left, evicted, silent, or the reported one: computing, waiting, ...
    text: str
    advice: str | None = None
    waits_for: list[int] = []
    racks: list[int] = []
    level: Literal["leaf", "root"] | None = None
    round: int | None = None
    epoch: int | None = None


class JobExplanation(Model):
    """headline: the job in one line. workers: the requested ones."""

    headline: str
    workers: list[Explanation]


class WorkerTimeline(Model):
    """A worker's states over time. turns: pairs of a state's beginning (Unix seconds) and its index in
    `recorder.STATES`. The other lists have an element for each bin of BIN_S seconds, from bin number ``first`` of Unix
    time on. computing, sending and waiting are shares of its time in per cent. loss and accuracy are the last reported
    values in the bin, or None."""

    worker: int
    turns: list[tuple[float, int]]
    first: int
    computing: list[int]
    sending: list[int]
    waiting: list[int]
    loss: list[float | None]
    accuracy: list[float | None]


class JobTimeline(Model):
    """The timelines of a job's workers after a given time. recording: the beginning of the recording (Unix seconds). If
    it changes, the controller has forgotten everything before."""

    job: int
    recording: float
    workers: list[WorkerTimeline]


class Event(Model):
    """An event. t: in Unix seconds. event: its name, for programs; text: a line for people. Fields that an event does
    not have are None, and absent in JSON."""

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
    """The status in the live stream, about five times a second."""

    event: Literal["status"] = "status"
    status: Status


class Live(Model):
    """The page's data at ``t`` (Unix seconds): the status; explanations and timelines, an element for each job; and the
    events since the requested time."""

    t: float
    status: Status
    explanations: list[JobExplanation]
    timelines: list[JobTimeline]
    events: list[Event]


class Parameter(Model):
    """A parameter of an automatic strategy. kind: bool, int or float."""

    name: str
    kind: str
    default: bool | int | float


class AutomaticChoice(Model):
    """A shipped automatic strategy. about: a description in one line."""

    name: str
    about: str
    parameters: list[Parameter]


class Choices(Model):
    """The page's choices. colours: of strategies and of workers' states, by name."""

    max_staleness: int
    max_workers: int
    max_jobs: int
    automatic: list[AutomaticChoice]
    colours: dict[str, str]


def workers(ids: Sequence[int], name: Callable[[int], str] = str) -> str:
    """``worker 2``, or ``workers 0, 1 and 3``. name: returns a worker's name, over racks `Racks.name`."""
    names = [name(number) for number in ids]
    return f"worker {names[0]}" if len(names) == 1 else f"workers {', '.join(names[:-1])} and {names[-1]}"
