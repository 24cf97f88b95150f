"""Faults as data: what a network does to packets, and what happens to the processes of a run.

One description serves every way to run the P4 program: in process and in virtual time, in Mininet on the embedded
switch, and on BMv2. docs/faults.md shows how to write one.

    faults = load("faults.toml")
    links = Links(faults)                                       # serene.faults.links: what becomes of each packet
    links.fate(packet, worker, Direction.TO_SWITCH, now)        # -> [(delay in seconds, packet), ...]
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from serene.errors import SereneError, choices
from serene.wire import Op


class BadFaults(SereneError):
    """A description of faults that makes no sense; the message names what would."""


class Direction(str, Enum):
    """Of a packet on a worker's link."""

    TO_SWITCH = "to_switch"
    TO_WORKER = "to_worker"


RELEASE = "RELEASE"  # an ANSWER that echoes no request
OTHER = "OTHER"  # whatever is not Serene's: ARP, ping
SERENE_KINDS = (*(op.name for op in Op), RELEASE)
KINDS = (*SERENE_KINDS, OTHER)


class Action(str, Enum):
    """What an event does."""

    PAUSE_WORKER = "pause worker"  # it stands still for a time, then goes on
    RESTART_WORKER = "restart worker"  # killed; a new process takes its place
    RESTART_CONTROLLER = "restart controller"
    RESTART_SWITCH = "restart switch"

    @property
    def of_worker(self) -> bool:
        return self in (Action.PAUSE_WORKER, Action.RESTART_WORKER)


def _check_probability(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadFaults(f"{name} {value:g}: a probability, expected 0 to 1")


def _check_time(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise BadFaults(f"{name} {value:g}: a time in seconds, expected 0 or more")


@dataclass(frozen=True)
class PacketFaults:
    """What becomes of some packets. The first description that a packet fits decides.

    Which: ``workers`` (none named: every link), ``direction`` (None: both), ``kinds`` (none named: all of Serene's
    packets, not other traffic), and only from ``start_s`` to ``end_s`` seconds after the beginning.
    What: probabilities of ``loss``, ``duplication`` and ``reordering``. A packet that is reordered, and the second copy
    of one that is duplicated, comes late by an exponential time of mean ``late_s``. Every packet takes ``delay_s``, and
    an exponential time of mean ``jitter_s`` more; jitter reorders, too. Times in seconds.
    """

    workers: tuple[int, ...] = ()
    direction: Direction | None = None
    kinds: tuple[str, ...] = ()
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    late_s: float = 0.02
    delay_s: float = 0.0
    jitter_s: float = 0.0
    start_s: float = 0.0
    end_s: float = math.inf

    def __post_init__(self) -> None:
        for name in ("loss", "duplication", "reordering"):
            _check_probability(name, getattr(self, name))
        for name in ("late_s", "delay_s", "jitter_s", "start_s"):
            _check_time(name, getattr(self, name))
        if not self.start_s < self.end_s:
            raise BadFaults(f"start_s {self.start_s:g} and end_s {self.end_s:g}: expected an end after the start")
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown:
            raise BadFaults(f"no kind of packet {choices(unknown)}; there are {choices(KINDS)}")

    def fits(self, worker: int, direction: Direction, kind: str) -> bool:
        """Whether it speaks of such packets, at some time."""
        return (
            (not self.workers or worker in self.workers)
            and self.direction in (None, direction)
            and kind in (self.kinds or SERENE_KINDS)
        )


@dataclass(frozen=True)
class Event:
    """Something that happens to a process.

    iteration: when the worker in question has done so many; for the controller and the switch, when every worker
    has. seconds: for how long it stands still or is away.
    """

    iteration: int
    action: Action
    worker: int | None = None
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.iteration < 0:
            raise BadFaults(f"iteration {self.iteration}: expected 0 or more")
        _check_time("seconds", self.seconds)
        if self.action.of_worker and self.worker is None:
            raise BadFaults(f"{self.action.value}: which one? Expected worker = 0, 1, ...")
        if not self.action.of_worker and self.worker is not None:
            raise BadFaults(f"{self.action.value}: worker {self.worker} has no part in it; leave it out")

    def __str__(self) -> str:
        name = self.action.value if self.worker is None else f"{self.action.value} {self.worker}"
        return f"{name} at iteration {self.iteration}, for {self.seconds:g} s"


@dataclass(frozen=True)
class Faults:
    """Everything that goes wrong in a run. Every random choice follows from ``seed``. text: of the file."""

    seed: int = 0
    packets: tuple[PacketFaults, ...] = ()
    events: tuple[Event, ...] = ()
    text: str | None = field(default=None, compare=False, repr=False)

    def check_workers(self, count: int) -> None:
        """Raises BadFaults when it names a worker that is not there."""
        named: Iterable[int] = {
            *(worker for faults in self.packets for worker in faults.workers),
            *(event.worker for event in self.events if event.worker is not None),
        }
        absent = sorted(worker for worker in named if not 0 <= worker < count)
        if absent:
            raise BadFaults(f"worker {choices(absent)} is not in the run; it has workers 0 to {count - 1}")

    def __str__(self) -> str:
        return f"{len(self.packets)} of packets, {len(self.events)} of processes, seed {self.seed}"
