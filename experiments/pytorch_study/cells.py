"""The study's cells, which are trainings, and where their results are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from serene.experiments.shared.store import JsonStore

SHARED, DDP, POST_LOCAL = "shared training", "DDP, gloo", "PostLocalSGD, gloo"
VERSION = 2  # of results; to be raised when earlier ones are wrong


@dataclass(frozen=True)
class Cell:
    """One training. task: of `tasks.TASKS`. optimizer: of `training.OPTIMIZERS`. way: SHARED, DDP or POST_LOCAL.
    strategy: of shared training, as `serene.strategy.parse` takes it; of the others ``bsp``. every: steps of the
    worker's own optimizer from one exchange to the next. stragglers: of `training.STRAGGLERS`."""

    task: str
    optimizer: str
    way: str
    strategy: str = "bsp"
    every: int = 1
    stragglers: str = "none"
    seed: int = 1
    steps: int = 128
    workers: int = 4

    def __str__(self) -> str:
        said = (
            f"{self.task} {self.optimizer} {self.way} {self.strategy} every {self.every} stragglers {self.stragglers}"
        )
        return re.sub(r"[^a-zA-Z0-9]+", "-", f"{said} {self.workers}x{self.steps} seed {self.seed}")


def results(out: Path) -> JsonStore[Cell]:
    """The results in the study's folder: what `training.train` has measured."""
    return JsonStore(out / "trainings", VERSION)
