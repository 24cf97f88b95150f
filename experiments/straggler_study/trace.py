"""What a run leaves, whichever engine made it: a row for every step of every worker, the swaps, and a few sums."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from experiments.shared.machine import Conditions
from experiments.straggler_study.cell import Cell
from serene import outputs
from serene.errors import SereneError

# Times in seconds since training began. A step computes from `began` to `pushed`, and exchanges until `ended`;
# `waited` of that is for other workers. accuracy: on the test images, NaN where it was not measured.
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


class BadTrace(SereneError):
    """A file that is not a whole result."""


@dataclass(frozen=True)
class Swap:
    """A change of strategy: when, and to what; the first one is the job's beginning."""

    t: float
    strategy: str


@dataclass(frozen=True)
class Trace:
    """steps: STEP[n], by time of ending. staleness: float64[workers, 16], gradients by how many rounds old they were
    when the switch took them. facts: contributions sent and applied, packets, wall seconds, ... conditions: in which
    the run was made; what older results lack is not recorded."""

    cell: Cell
    steps: np.ndarray
    staleness: np.ndarray
    swaps: tuple[Swap, ...]
    initial_accuracy: float
    facts: dict[str, float] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)

    def save(self, path: Path) -> None:
        """Whole. Raises CannotWrite, which says where it is instead."""
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
        """Raises BadTrace if the file is missing, damaged or of something else."""
        try:
            with np.load(path, allow_pickle=False) as parts:
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
                _conditions(head),
            )
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise BadTrace(f"{path} is not a result: {error}") from error


def _conditions(head: Mapping[str, Any]) -> Conditions:
    """Those of emulated runs were once kept apart, by these names."""
    if "conditions" in head:
        return Conditions.of(head["conditions"])
    facts = head["facts"]
    stalled = facts.get("stalled", np.nan)
    return Conditions(head.get("machine") or None, facts.get("load"), None, None if np.isnan(stalled) else stalled)
