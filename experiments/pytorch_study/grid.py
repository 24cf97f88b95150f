"""The study's cells, which are trainings, the most telling first, and where their results are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
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
        text = (
            f"{self.task} {self.optimizer} {self.way} {self.strategy} every {self.every} stragglers {self.stragglers}"
        )
        return re.sub(r"[^a-zA-Z0-9]+", "-", f"{text} {self.workers}x{self.steps} seed {self.seed}")


def results(out: Path) -> JsonStore[Cell]:
    """The results in the study's folder: what `training.train` has measured."""
    return JsonStore(out / "trainings", VERSION)


STRATEGIES = ("bsp", "ssp:3", "asp", "quorum:3")
EVERY = (1, 8, 32)


@dataclass(frozen=True)
class Grid:
    """steps: of each worker's own optimizer."""

    tasks: tuple[str, ...] = ("fashion", "transformer")
    optimizers: tuple[str, ...] = ("sgd", "adamw")
    stragglers: tuple[str, ...] = ("none", "one slow", "random")
    seeds: tuple[int, ...] = (1, 2, 3)
    steps: int = 128
    workers: int = 4

    def ways(self) -> list[tuple[str, str, int]]:
        """Way, strategy and steps between exchanges."""
        shared = [(SHARED, strategy, every) for every in EVERY for strategy in STRATEGIES]
        return [(DDP, "bsp", 1), *((POST_LOCAL, "bsp", every) for every in EVERY if every > 1), *shared]

    def cells(self) -> list[Cell]:
        """All trainings, each once, by `_rank`."""
        every = [
            Cell(task, optimizer, way, strategy, steps_between, stragglers, seed, self.steps, self.workers)
            for task, seed, stragglers, (way, strategy, steps_between), optimizer in product(
                self.tasks, self.seeds, self.stragglers, self.ways(), self.optimizers
            )
        ]
        return sorted(every, key=self._rank)

    def _rank(self, cell: Cell) -> tuple[int, ...]:
        """One task after another, and one seed after another. Of these first several steps between exchanges, beside
        DDP; then shared training with an exchange after each step, which takes the most packets."""
        return (
            self.tasks.index(cell.task),
            self.seeds.index(cell.seed),
            int(cell.way == SHARED and cell.every == 1),
            self.stragglers.index(cell.stragglers),
        )
