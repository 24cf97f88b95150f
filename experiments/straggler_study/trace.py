"""The result of a run, by whichever engine: a row for every step of every worker, the swaps, and some sums."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np

from serene.errors import SereneError
from serene.experiments.shared import store
from serene.experiments.shared.machine import Conditions
from serene.experiments.shared.store import DAMAGED, BadResult, contents
from serene.experiments.straggler_study.cell import Cell
from serene.process import outputs

# A step of a worker. Times are in seconds since training began: it computes from `began` to `pushed` and exchanges
# until `ended`; `waited` is how long of that it waited for other workers. accuracy: NaN if it was not evaluated.
STEP = np.dtype(
    [
        ("worker", np.int16),
        ("step", np.int32),
        ("began", np.float64),
        ("pushed", np.float64),
        ("ended", np.float64),
        ("waited", np.float64),
        ("epoch", np.int32),
        ("contributions", np.int32),
        ("loss", np.float32),
        ("accuracy", np.float32),
    ]
)

# The RuntimeErrors: of methods, versions and encryptions that damaged headers name, and that zipfile does not know. The
# last two: of NumPy, of an array's header that does not end, or that names a size.
DAMAGED_ZIP = (OSError, EOFError, BadZipFile, zlib.error, RuntimeError, TokenError, MemoryError)


class BadTrace(BadResult):
    """A file is missing, or is no complete result."""


@dataclass(frozen=True)
class Swap:
    """A change of strategy. t: seconds since training began. The first one is the strategy that the job began with."""

    t: float
    strategy: str


@dataclass(frozen=True)
class Trace:
    """A run's result. steps: STEP[n], in the order of ``ended``. staleness: how many of each worker's gradients had
    each staleness when the switch accepted them, float64[workers, 16]: 0 to 14 rounds, and 15 or more. facts: sums,
    such as contributions sent and applied, and seconds that the engine took. conditions: in which the run was made."""

    cell: Cell
    steps: np.ndarray
    staleness: np.ndarray
    swaps: tuple[Swap, ...]
    initial_accuracy: float
    facts: dict[str, float] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)

    def save(self, path: Path) -> None:
        """Writes a file, which appears when it is complete. Raises CannotWrite; the message states where it is
        instead."""
        head = np.array(json.dumps(self._head()))
        outputs.write(
            path, lambda file: np.savez_compressed(file, steps=self.steps, staleness=self.staleness, head=head)
        )

    def _head(self) -> dict[str, Any]:
        return {
            "cell": self.cell.to_dict(),
            "swaps": [asdict(swap) for swap in self.swaps],
            "initial_accuracy": self.initial_accuracy,
            "facts": self.facts,
            "conditions": self.conditions.to_dict(),
        }

    @classmethod
    def load(cls, path: Path) -> Trace:
        """Reads a file. Raises BadTrace if it is missing, damaged, or something else; CannotRead."""
        try:
            with np.load(BytesIO(contents(path)), allow_pickle=False) as parts:
                head, steps, staleness = json.loads(str(parts["head"])), parts["steps"], parts["staleness"]
            if steps.dtype != STEP:
                raise ValueError("other columns")
            return cls(
                Cell.from_dict(head["cell"]),
                steps,
                staleness,
                tuple(Swap(**swap) for swap in head["swaps"]),
                head["initial_accuracy"],
                head["facts"],
                Conditions.of(head["conditions"]),
            )
        except (*DAMAGED, *DAMAGED_ZIP, BadResult) as error:
            raise BadTrace(f"{path} is not a result: {error}") from error


class Store(store.Store[Cell, Trace]):
    """A directory of traces."""

    suffix = ".npz"

    def name(self, cell: Cell) -> str:
        return cell.digest

    def get(self, cell: Cell) -> Trace | None:
        """As for all stores. A file with another cell's result, copied or renamed, counts as damaged."""
        found = super().get(cell)
        if found is None or found.cell == cell:
            return found
        with suppress(OSError):  # as for a damaged one
            self.path(cell).unlink()
        return None

    def read(self, path: Path) -> Trace:
        return Trace.load(path)

    def write(self, path: Path, cell: Cell, result: Trace) -> None:
        if result.cell != cell:  # two processes answer where a strategy's program has forked
            raise SereneError(f"a process answered {cell} with the result of {result.cell}: rerun")
        result.save(path)
