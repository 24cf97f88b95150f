"""The study's grid: which trainings it has."""

from __future__ import annotations

from dataclasses import dataclass, field

from serene.experiments.pytorch_study.cells import BACKENDS, EXAMPLES, GLOO, MAGNITUDES, SERENE, Cell
from serene.experiments.pytorch_study.mirrored import BACKEND as MIRRORED

OPTIMISERS = ("sgd", "adam")
FEWER_BITS = (16, 8)


@dataclass(frozen=True)
class Grid:
    """steps: of an example's training. task_steps: of each task's. seeds: of the tasks'."""

    ranks: int = 4
    steps: int = 200
    task_steps: dict[str, int] = field(default_factory=lambda: {"transformer": 120, "resnet": 80})
    seeds: tuple[int, ...] = (1, 2, 3)

    def example(self, what: str, optimiser: str, backend: str, die_at: int = 0) -> Cell:
        """The training of an example."""
        return Cell(what, backend, optimiser, steps=self.steps, ranks=self.ranks, die_at=die_at)

    def killed(self, optimiser: str) -> Cell:
        """The restarted example through the switch, with a rank that is killed when three fifths are done."""
        return self.example("restarts", optimiser, SERENE, die_at=self.steps * 3 // 5)

    def task(self, what: str, backend: str, seed: int, bits: int = 32) -> Cell:
        """The training of a task."""
        optimiser = "sgd" if what == "resnet" else "adam"
        return Cell(what, backend, optimiser, seed, self.task_steps[what], self.ranks, bits=bits)

    def magnitudes(self, backend: str) -> Cell:
        """The sums of gradients of many magnitudes (magnitudes.py)."""
        return Cell(MAGNITUDES, backend, steps=1, ranks=self.ranks)

    def cells(self) -> list[Cell]:
        """All trainings. With gloo mirrored, one seed of each task is enough to show how fast rounding errors grow."""
        cells = [self.magnitudes(backend) for backend in (SERENE, GLOO)]
        for what in EXAMPLES:
            for optimiser in OPTIMISERS:
                cells += [self.example(what, optimiser, backend) for backend in BACKENDS]
        cells += [self.killed(optimiser) for optimiser in OPTIMISERS]
        for what in self.task_steps:
            cells += [self.task(what, backend, seed) for seed in self.seeds for backend in (SERENE, GLOO)]
            cells.append(self.task(what, MIRRORED, self.seeds[0]))
        for what in self.task_steps:
            cells += [self.task(what, SERENE, seed, bits) for seed in self.seeds for bits in FEWER_BITS]
        return cells
