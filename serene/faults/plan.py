"""Faults as data: faults of packets in a network, and faults of a run's processes.

The same description works in virtual time and in Mininet, with the embedded switch and with BMv2. docs/faults.md shows
how to write one.

    faults = load("faults.toml")
    links = Links(faults)                                       # serene.faults.links: decides about each packet
    links.fate(packet, worker, Direction.TO_SWITCH, now)        # -> [(delay in seconds, packet), ...]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from serene.errors import SereneError, choices
from serene.wire import Op


class BadFaults(SereneError):
    """A description of faults is wrong. The message names the valid choices."""


class Direction(str, Enum):
    """A packet's direction on a worker's link. On a rack's uplink, from the leaf to the root and back."""

    TO_SWITCH = "to_switch"
    TO_WORKER = "to_worker"


RELEASE = "RELEASE"  # an ANSWER that echoes no seq
OTHER = "OTHER"  # not a packet of Serene, such as ARP or ping
SERENE_KINDS = (*(op.name for op in Op), RELEASE)
KINDS = (*SERENE_KINDS, OTHER)
ON_UPLINKS = (Op.UP.name, Op.DOWN.name, Op.GRANT.name, OTHER)
ON_WORKERS_LINKS = tuple(kind for kind in KINDS if kind == OTHER or kind not in ON_UPLINKS)


class Action(str, Enum):
    """The effect of an event."""

    PAUSE_WORKER = "pause worker"  # the process is stopped for a time, then continues
    RESTART_WORKER = "restart worker"  # the process is killed and replaced by a new one
    RESTART_CONTROLLER = "restart controller"
    RESTART_SWITCH = "restart switch"
    RESTART_LEAF = "restart leaf"
    RESTART_ROOT = "restart root"

    @property
    def of_worker(self) -> bool:
        return self in (Action.PAUSE_WORKER, Action.RESTART_WORKER)

    @property
    def of_switch(self) -> bool:
        return self in (Action.RESTART_SWITCH, Action.RESTART_LEAF, Action.RESTART_ROOT)


def uplink(rack: int) -> int:
    """The number of a rack's link to the root; other links have their worker's number."""
    return -1 - rack


def _check_probability(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadFaults(f"{name} {value:g}: a probability, expected 0 to 1")


def _check_time(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise BadFaults(f"{name} {value:g}: a time in seconds, expected 0 or more")


def _check_numbers(where: str, what: str, named: Iterable[int], count: int) -> None:
    """what: "worker" or "rack". count: their number in the run."""
    absent = sorted({number for number in named if not 0 <= number < count})
    if absent:
        raise BadFaults(f"{where}: {what} {choices(absent)} is not in the run; it has {what}s 0 to {count - 1}")


@dataclass(frozen=True)
class PacketFaults:
    """Faults of some of the packets. If several descriptions match a packet, the first one applies.

    Which packets: those on the links of ``workers`` and the uplinks of ``racks``; if both are empty, on every link. In
    ``direction`` (None: both), and of ``kinds`` (empty: all of Serene's packets, not other traffic). Only from
    ``start_s`` to ``end_s`` seconds after the beginning.
    Which faults: ``loss``, ``duplication`` and ``reordering`` are probabilities. A reordered packet, and the second
    copy of a duplicated one, is delayed by an exponential time of mean ``late_s``. Every packet is delayed by
    ``delay_s`` and an exponential time of mean ``jitter_s``. Jitter reorders packets, too. Times in seconds.
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
    racks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("loss", "duplication", "reordering"):
            _check_probability(name, getattr(self, name))
        for name in ("late_s", "delay_s", "jitter_s", "start_s"):
            _check_time(name, getattr(self, name))
        if not self.start_s < self.end_s:
            raise BadFaults(f"start_s {self.start_s:g} and end_s {self.end_s:g}: expected an end after the start")
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown:
            raise BadFaults(f"no kind of packet {choices(unknown)}; expected {choices(KINDS)}")
        if self.links:
            self.check_kinds((*(ON_WORKERS_LINKS if self.workers else ()), *(ON_UPLINKS if self.racks else ())))

    @property
    def links(self) -> set[int]:
        """The numbers of the links: workers, and ``uplink`` of racks."""
        return {*self.workers, *map(uplink, self.racks)}

    def check_kinds(self, there: Sequence[str], where: str = "") -> None:
        """Raises BadFaults if it names a kind of packet that its links never carry. there: the kinds on these links.
        where: the place in the file, for the message."""
        absent = [kind for kind in self.kinds if kind not in there]
        if absent:
            link = "an uplink" if self.racks else "a worker's link"
            raise BadFaults(
                f"{f'{where}: ' if where else ''}{choices(absent)} is never on {link}; expected {choices(there)}"
            )

    def fits(self, link: int, direction: Direction, kind: str) -> bool:
        """Whether this description covers such packets, at any time."""
        return (
            (not self.links or link in self.links)
            and self.direction in (None, direction)
            and kind in (self.kinds or SERENE_KINDS)
        )


@dataclass(frozen=True)
class Event:
    """A fault of a process.

    iteration: the event happens when this worker has done this number of iterations; for the controller or a switch,
    when every worker has. seconds: the time for which the process is stopped or absent. rack: of the leaf.
    """

    iteration: int
    action: Action
    worker: int | None = None
    seconds: float = 1.0
    rack: int | None = None

    def __post_init__(self) -> None:
        if self.iteration < 0:
            raise BadFaults(f"iteration {self.iteration}: expected 0 or more")
        _check_time("seconds", self.seconds)
        if self.action.of_worker and self.worker is None:
            raise BadFaults(f"{self.action.value} needs worker = 0, 1, ...")
        if not self.action.of_worker and self.worker is not None:
            raise BadFaults(f"{self.action.value} takes no worker: remove worker = {self.worker}")
        if (self.action is Action.RESTART_LEAF) != (self.rack is not None):
            expected = "needs rack = 0, 1, ..." if self.rack is None else f"takes no rack: remove rack = {self.rack}"
            raise BadFaults(f"{self.action.value} {expected}")

    def __str__(self) -> str:
        name = self.action.value if self.worker is None else f"{self.action.value} {self.worker}"
        if self.rack is not None:
            name = f"{name} of rack {self.rack}"
        return f"{name} at iteration {self.iteration}, for {self.seconds:g} s"


@dataclass(frozen=True)
class Faults:
    """All faults of a run. Every random choice depends only on ``seed``. text: the file's text; path: the file's
    path."""

    seed: int = 0
    packets: tuple[PacketFaults, ...] = ()
    events: tuple[Event, ...] = ()
    text: str | None = field(default=None, compare=False, repr=False)
    path: str | Path | None = field(default=None, compare=False, repr=False)

    def check(self, workers: int, racks: int = 1) -> None:
        """Raises BadFaults if it names a worker, rack, switch or kind of packet that the run does not have. The message
        names the place in the file. racks: 1 for one switch."""
        file = f"{self.path}: " if self.path is not None else ""
        switches = {Action.RESTART_SWITCH} if racks == 1 else {Action.RESTART_LEAF, Action.RESTART_ROOT}
        for number, event in enumerate(self.events, 1):
            where = f"{file}[[events]] number {number}"
            if event.action.of_switch and event.action not in switches:
                expected = choices(sorted(action.value for action in switches))
                raise BadFaults(
                    f"{where}: {event.action.value} is not possible "
                    f"{'with one switch' if racks == 1 else 'over racks'}; expected {expected}"
                )
            _check_numbers(where, "worker", [event.worker] if event.worker is not None else (), workers)
            _check_numbers(where, "rack", [event.rack] if event.rack is not None else (), racks)
        for number, faults in enumerate(self.packets, 1):
            where = f"{file}[[packets]] number {number}"
            _check_numbers(where, "worker", faults.workers, workers)
            if faults.racks and racks == 1:
                raise BadFaults(f"{where}: rack {choices(faults.racks)} is not in the run; it has one switch")
            _check_numbers(where, "rack", faults.racks, racks)
            if racks == 1:
                faults.check_kinds(ON_WORKERS_LINKS, where)

    def __str__(self) -> str:
        return f"{len(self.packets)} of packets, {len(self.events)} of processes, seed {self.seed}"
