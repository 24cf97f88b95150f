"""Straggler profiles: which workers are slow, when, and by how much.

A delay depends only on seed, worker and iteration. So a run can be repeated, and a simulator has the same delays. A
profile is written as ``slow_worker``, with parameters as ``slow_worker:probability=0.3,workers=0+2``, or as
``trace:FILE``.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from serene.errors import SereneError, choices

# More than any study needs, and short enough for time.sleep.
MOST = 10**6  # times the mean compute time
LONGEST_PAUSE_S = 10**6


class BadStraggler(SereneError):
    """No profile has that name, or a parameter is unknown or out of range. The message names the valid choices."""


@dataclass(frozen=True)
class Straggler(ABC):
    """A straggler profile. Its fields are the parameters that ``parse`` accepts. Raises BadStraggler."""

    name: ClassVar[str]

    @abstractmethod
    def delay(self, worker: int, iteration: int, mean_s: float, seed: int) -> float:
        """Seconds that an iteration takes in addition to ``mean_s``, the mean compute time. iteration: from 1."""


def _random(seed: int, worker: int, iteration: int) -> np.random.Generator:
    # The constant keeps the delays independent of the batches, which are drawn by the same three numbers.
    return np.random.default_rng((seed, 0x57A6, worker, iteration))


def _check_range(name: str, low: float, high: float) -> None:
    if not 0 <= low <= high <= MOST:
        raise BadStraggler(f"{name}: low {low} and high {high}; expected 0 <= low <= high <= {MOST}")


@dataclass(frozen=True)
class NoStraggler(Straggler):
    """All workers compute at the same pace."""

    name: ClassVar[str] = "none"

    def delay(self, worker: int, iteration: int, mean_s: float, seed: int) -> float:
        return 0.0


@dataclass(frozen=True)
class SlowWorker(Straggler):
    """With this probability, an iteration of these workers takes ``low`` to ``high`` times the mean in addition."""

    probability: float = 0.15
    low: float = 0.5
    high: float = 2.0
    workers: tuple[int, ...] = ()  # empty: all workers
    name: ClassVar[str] = "slow_worker"

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise BadStraggler(f"slow_worker: probability {self.probability}; expected 0 to 1")
        _check_range(self.name, self.low, self.high)

    def delay(self, worker: int, iteration: int, mean_s: float, seed: int) -> float:
        if self.workers and worker not in self.workers:
            return 0.0
        random = _random(seed, worker, iteration)
        return mean_s * random.uniform(self.low, self.high) if random.random() < self.probability else 0.0


@dataclass(frozen=True)
class Heterogeneous(Straggler):
    """Iterations ``first`` to ``last`` (0: to the end) of these workers take ``factor`` times the mean."""

    factor: float = 2.0
    workers: tuple[int, ...] = (0,)
    first: int = 1
    last: int = 0
    name: ClassVar[str] = "heterogeneous"

    def __post_init__(self) -> None:
        if not 1 <= self.factor <= MOST:
            raise BadStraggler(f"heterogeneous: factor {self.factor}; expected at least 1, at most {MOST}")
        if self.first < 1 or (self.last and self.last < self.first):
            raise BadStraggler(f"heterogeneous: first {self.first} and last {self.last}; expected 1 <= first <= last")

    def delay(self, worker: int, iteration: int, mean_s: float, seed: int) -> float:
        slow = worker in self.workers and self.first <= iteration <= (self.last or iteration)
        return (self.factor - 1) * mean_s if slow else 0.0


@dataclass(frozen=True)
class Failure(Straggler):
    """One worker pauses once, for ``pause_s`` seconds, at one iteration."""

    worker: int = 0
    iteration: int = 50
    pause_s: float = 5.0
    name: ClassVar[str] = "failure"

    def __post_init__(self) -> None:
        if not 0 <= self.pause_s <= LONGEST_PAUSE_S or self.iteration < 1:
            raise BadStraggler(
                f"failure: pause_s {self.pause_s} at iteration {self.iteration}; expected a pause of 0 to "
                f"{LONGEST_PAUSE_S} s, at iteration 1 or later"
            )

    def delay(self, worker: int, iteration: int, mean_s: float, seed: int) -> float:
        return self.pause_s if (worker, iteration) == (self.worker, self.iteration) else 0.0


@dataclass(frozen=True)
class Recorded(Straggler):
    """Delays from a CSV file with the columns ``worker``, ``iteration`` and ``factor``. From that iteration until the
    worker's next row, an iteration takes ``factor`` times the mean. Before a worker's first row the factor is 1."""

    file: str
    name: ClassVar[str] = "trace"

    def __post_init__(self) -> None:
        _recorded(Path(self.file))

    @property
    def rows(self) -> Mapping[int, list[tuple[int, float]]]:
        """Iterations, ascending, and their factors, by worker."""
        return _recorded(Path(self.file))

    def rows_now(self) -> Mapping[int, list[tuple[int, float]]]:
        """As ``rows``, read again: the file may have changed."""
        return _recorded.__wrapped__(Path(self.file))

    @property
    def workers(self) -> tuple[int, ...]:
        """The workers in the file."""
        return tuple(self.rows)

    def delay(self, worker: int, iteration: int, mean_s: float, seed: int) -> float:
        rows = self.rows.get(worker, [])
        before = bisect_right(rows, iteration, key=lambda row: row[0])
        return (rows[before - 1][1] - 1) * mean_s if before else 0.0


@lru_cache(maxsize=8)
def _recorded(path: Path) -> Mapping[int, list[tuple[int, float]]]:
    """Iterations, ascending, and their factors, by worker. Raises BadStraggler."""
    found: dict[int, dict[int, float]] = {}
    expected = (
        f"expected a CSV file with the columns worker, iteration (from 1) and factor (1 to {MOST}), "
        "each iteration of a worker once"
    )
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets begin a file with a byte order mark
            for row in csv.DictReader(file):
                worker, iteration, factor = int(row["worker"]), int(row["iteration"]), float(row["factor"])
                rows = found.setdefault(worker, {})
                if worker < 0 or iteration < 1 or iteration in rows or not 1 <= factor <= MOST:
                    raise BadStraggler(
                        f"trace:{path}: worker {worker}, iteration {iteration}, factor {factor}; {expected}"
                    )
                rows[iteration] = factor
    except OSError as error:
        raise BadStraggler(f"trace:{path}: {error.strerror}; {expected}") from None
    except (KeyError, TypeError, ValueError, csv.Error):
        raise BadStraggler(f"trace:{path}: {expected}") from None
    if not found:
        raise BadStraggler(f"trace:{path}: no rows; {expected}")
    return {worker: sorted(rows.items()) for worker, rows in found.items()}


PROFILES: Mapping[str, type[Straggler]] = {
    cls.name: cls for cls in (NoStraggler, SlowWorker, Heterogeneous, Failure, Recorded)
}


def parse(text: str) -> Straggler:
    """The profile that a text names. Raises BadStraggler, which names the valid choices."""
    name, _, rest = text.strip().partition(":")
    if name not in PROFILES:
        raise BadStraggler(f"no straggler profile {name!r}; expected {choices(PROFILES)}")
    if name == Recorded.name:
        return Recorded(rest)
    cls = PROFILES[name]
    known = {field.name: field.default for field in fields(cls) if field.default is not MISSING}
    given: dict[str, object] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if key not in known or not equals:
            raise BadStraggler(f"{name}: no parameter {item!r}; expected {choices(known) or 'none'}, as key=value")
        try:
            default = known[key]
            if isinstance(default, tuple):
                given[key] = tuple(int(worker) for worker in value.split("+"))
            else:
                given[key] = type(default)(value)
        except ValueError:
            raise BadStraggler(f"{name}: {key}={value}; expected a value like {known[key]}") from None
    return cls(**given)


def check_workers(profile: Straggler, workers: int) -> None:
    """Raises BadStraggler if the profile names a worker that the job does not have. workers: their number in the
    job."""
    named = (profile.worker,) if isinstance(profile, Failure) else getattr(profile, "workers", ())
    for worker in named:
        if not 0 <= worker < workers:
            raise BadStraggler(f"{profile.name} names worker {worker}; there are workers 0 to {workers - 1}")
