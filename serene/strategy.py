"""Synchronisation strategies as values, compiled to the fields of the switch's policy entry.

SSP(3).compile([0, 1, 2, 3])    # PolicyFields(0b1111, sync_mask=0b1111, staleness=3, quorum=4, read_mode=LATEST)
parse("mixed:3,5")              # Mixed(async_workers=(3, 5))
to_text(SSP(3))                 # ssp:3
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass
from typing import Any, ClassVar

from serene.errors import SereneError, choices, numbers
from serene.wire import UNBOUNDED, ReadMode, members_field

MAX_STALENESS = 15  # the switch's ring of round counters has 16 places
NAMES = ("bsp", "ssp:S", "asp", "quorum:K", "mixed:W,W,...[:S]")


class BadStrategy(SereneError):
    """The strategy is not valid, or not valid for this job's workers."""


@dataclass(frozen=True)
class PolicyFields:
    """The fields of the switch's policy entry, for the workers in member_mask. precision: bits of a pool's values in
    packets, independent of the strategy."""

    member_mask: int
    sync_mask: int
    staleness: int
    quorum: int
    read_mode: ReadMode
    precision: int = 32

    @property
    def members(self) -> int:
        """The number of members."""
        return self.member_mask.bit_count()

    @property
    def members_field(self) -> int:
        """The field `members` of the entry and of answers (`serene.wire.members_field`)."""
        return members_field(self.members, self.precision)


def _bitmap(workers: Sequence[int]) -> int:
    return sum(1 << worker for worker in set(workers))


def _check_staleness(staleness: int) -> None:
    if not 0 <= staleness <= MAX_STALENESS:
        raise BadStrategy(f"staleness {staleness}: expected 0 to {MAX_STALENESS}")


class Strategy(ABC):
    """A synchronisation strategy: it decides when a worker may continue."""

    name: ClassVar[str]

    @abstractmethod
    def compile(self, members: Sequence[int]) -> PolicyFields:
        """The policy for these workers. members: their ids. Raises BadStrategy if the strategy is not valid for
        them."""


@dataclass(frozen=True)
class BSP(Strategy):
    """Bulk synchronous: in every round, all workers wait for each other."""

    name: ClassVar[str] = "bsp"

    def compile(self, members: Sequence[int]) -> PolicyFields:
        mask = _bitmap(members)
        return PolicyFields(mask, mask, 0, mask.bit_count(), ReadMode.SNAPSHOT)

    def __str__(self) -> str:
        return "BSP"


@dataclass(frozen=True)
class SSP(Strategy):
    """Stale synchronous: no worker gets more than ``staleness`` rounds ahead of the slowest."""

    staleness: int
    name: ClassVar[str] = "ssp"

    def __post_init__(self) -> None:
        _check_staleness(self.staleness)

    def compile(self, members: Sequence[int]) -> PolicyFields:
        mask = _bitmap(members)
        return PolicyFields(mask, mask, self.staleness, mask.bit_count(), ReadMode.LATEST)

    def __str__(self) -> str:
        return f"SSP({self.staleness})"


@dataclass(frozen=True)
class ASP(Strategy):
    """Asynchronous: no worker waits."""

    name: ClassVar[str] = "asp"

    def compile(self, members: Sequence[int]) -> PolicyFields:
        return PolicyFields(_bitmap(members), 0, UNBOUNDED, 0, ReadMode.LATEST)

    def __str__(self) -> str:
        return "ASP"


@dataclass(frozen=True)
class Quorum(Strategy):
    """A round is complete when k workers have contributed. Later gradients of the others are still added."""

    k: int
    name: ClassVar[str] = "quorum"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise BadStrategy(f"a quorum of {self.k}: expected at least 1")

    def compile(self, members: Sequence[int]) -> PolicyFields:
        count = len(set(members))
        if self.k > count:
            raise BadStrategy(f"a quorum of {self.k} of {count} workers: expected 1 to {count}")
        mask = _bitmap(members)
        return PolicyFields(mask, mask, 0, self.k, ReadMode.SNAPSHOT)

    def __str__(self) -> str:
        return f"{self.k}-of-n"


@dataclass(frozen=True)
class Mixed(Strategy):
    """Some workers are asynchronous; the others use BSP, or SSP, among themselves."""

    async_workers: tuple[int, ...]
    staleness: int = 0
    name: ClassVar[str] = "mixed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "async_workers", tuple(sorted(set(self.async_workers))))
        _check_staleness(self.staleness)
        if not self.async_workers:
            raise BadStrategy("mixed without asynchronous workers: name at least one, or use bsp or ssp")

    def compile(self, members: Sequence[int]) -> PolicyFields:
        unknown = [worker for worker in self.async_workers if worker not in members]
        if unknown:
            raise BadStrategy(f"asynchronous worker {choices(unknown)} is not in the job; it has {numbers(members)}")
        synchronous = sorted(set(members) - set(self.async_workers))
        if not synchronous:
            raise BadStrategy("mixed with asynchronous workers only: use asp")
        read_mode = ReadMode.LATEST if self.staleness else ReadMode.SNAPSHOT
        return PolicyFields(_bitmap(members), _bitmap(synchronous), self.staleness, len(synchronous), read_mode)

    def __str__(self) -> str:
        bound = f", staleness {self.staleness}" if self.staleness else ""
        return f"Mixed(asynchronous {', '.join(map(str, self.async_workers))}{bound})"


def shrunk(strategy: Strategy, members: Sequence[int]) -> Strategy:
    """The same strategy for fewer workers, so that the barrier does not wait for a worker that has left."""
    if isinstance(strategy, Quorum):
        return Quorum(min(strategy.k, len(members)))
    if isinstance(strategy, Mixed):
        asynchronous = tuple(worker for worker in strategy.async_workers if worker in members)
        return (
            Mixed(asynchronous, strategy.staleness)
            if 0 < len(asynchronous) < len(members)
            else (ASP() if asynchronous else SSP(strategy.staleness) if strategy.staleness else BSP())
        )
    return strategy


STRATEGIES: Mapping[str, type[Strategy]] = {cls.name: cls for cls in (BSP, SSP, ASP, Quorum, Mixed)}


def to_dict(strategy: Strategy) -> dict[str, Any]:
    """The strategy as JSON: {"name": "ssp", "staleness": 3}."""
    fields = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(strategy).items()}  # type: ignore[call-overload]
    return {"name": strategy.name, **fields}


def strategy_from_dict(data: Mapping[str, Any]) -> Strategy:
    """The inverse of ``to_dict``. Raises BadStrategy, which names what is wrong and what is valid."""
    given = data.get("name") if isinstance(data, Mapping) else data
    if not isinstance(data, Mapping) or not isinstance(given, str) or given not in STRATEGIES:
        raise BadStrategy(f"no strategy {given!r}; expected {choices(STRATEGIES)}")
    cls = STRATEGIES[data["name"]]
    parameters = {key: value for key, value in data.items() if key != "name"}
    known = {name: field for name, field in cls.__dataclass_fields__.items() if name != "name"}  # type: ignore[attr-defined]
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise BadStrategy(f"{cls.name} has no parameter {choices(unknown)}; it has {choices(known) or 'none'}")
    for key, value in parameters.items():
        whole = [value] if key != "async_workers" else value
        if not isinstance(whole, (list, tuple)) or not all(type(number) is int for number in whole):
            kind = "a list of worker ids" if key == "async_workers" else "a whole number"
            raise BadStrategy(f"{cls.name}: {key} is {kind}, not {value!r}")
    if "async_workers" in parameters:
        parameters["async_workers"] = tuple(parameters["async_workers"])
    missing = [name for name, field in known.items() if field.default is MISSING and name not in parameters]
    if missing:
        raise BadStrategy(f"{cls.name} needs {choices(missing)}")
    return cls(**parameters)


def parse(text: str, worker: Callable[[str], int] = int, also: Sequence[str] = ()) -> Strategy:
    """A strategy from its text on a command line: bsp, ssp:3, asp, quorum:3, mixed:3,5 or mixed:3,5:2. worker: returns
    a worker's number by its name, as `serene.racks.Racks.worker`. also: other texts that the caller accepts, for the
    error. Raises BadStrategy, and the errors of ``worker``."""
    name, _, rest = text.strip().lower().partition(":")
    try:
        if name in ("bsp", "asp") and not rest:
            return STRATEGIES[name]()
        if name == "ssp":
            return SSP(int(rest))
        if name == "quorum":
            return Quorum(int(rest))
        if name == "mixed":
            workers, _, staleness = rest.partition(":")
            return Mixed(tuple(worker(each) for each in workers.split(",")), int(staleness or 0))
    except ValueError:
        pass
    raise BadStrategy(f"no strategy {text!r}; expected {choices((*NAMES, *also))}")


def to_text(strategy: Strategy) -> str:
    """The inverse of ``parse``, with workers' numbers."""
    if isinstance(strategy, Mixed):
        bound = f":{strategy.staleness}" if strategy.staleness else ""
        return f"mixed:{','.join(map(str, strategy.async_workers))}{bound}"
    return ":".join(map(str, to_dict(strategy).values()))
