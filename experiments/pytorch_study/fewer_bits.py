"""``python -m serene.experiments.pytorch_study.fewer_bits``: time to accuracy with 32, 16 and 8 bits.

Models learn Fashion-MNIST under BSP with gradients in 32, 16 and 8 bits, with error feedback and without, on 4, 8 and
32 workers. All workers of a training are in one process, with the sums that a pool would give, to the bit
(`one_process.py`). Time is computed, not measured: a step takes its compute time, which is set so that an exchange in
32 bits is a given share of a step, and the time of the exchange's bytes on a link. So one training serves for all
shares.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import argparse
import os
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from serene.arguments import Parser, whole
from serene.client.allreduce.blocks import BITS, Layout
from serene.experiments.pytorch_study.one_process import OneProcess
from serene.experiments.run.settings import computing_ms
from serene.experiments.shared import machine, page_tables, studies
from serene.experiments.shared.store import JsonStore
from serene.process import outputs
from serene.program import Program
from serene.workers import data
from serene.workers.training import Recipe, Trainer

VERSION = 1  # of results; to be raised when earlier ones are wrong
EVALUATE_EVERY = 10  # steps
TEST_PICTURES = 2000
LINK_MBIT = 100.0
SHARES = (0.3, 0.65)
TARGETS = (0.75, 0.8, 0.85)
ROOM = outputs.MB
STEP_S = {"mlp": 0.01, "cnn-large": 0.05}  # seconds of a worker's step on an Intel Xeon, with its share of evaluations


@dataclass(frozen=True)
class Training:
    """A training of the grid. feedback: whether there is error feedback."""

    model: str
    workers: int
    bits: int
    feedback: bool
    seed: int
    steps: int

    def __str__(self) -> str:
        how = "feedback" if self.feedback else "rounding"
        return f"{self.model}-{self.workers}-workers-{self.bits}-bits-{how}-{self.steps}-steps-seed-{self.seed}"


@dataclass(frozen=True)
class Grid:
    """All combinations of these, but for 32 bits with error feedback: they have nothing to hold back."""

    models: tuple[str, ...] = ("mlp", "cnn-large")
    workers: tuple[int, ...] = (4, 8, 32)
    bits: tuple[int, ...] = BITS
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    steps: int = 400

    def formats(self) -> list[tuple[int, bool]]:
        """Pairs of bits, and whether there is error feedback."""
        return [(bits, feedback) for bits in self.bits for feedback in ((False,) if bits == 32 else (False, True))]

    def trainings(self) -> list[Training]:
        """All trainings, those of one seed before those of the next."""
        return [
            Training(model, workers, bits, feedback, seed, self.steps)
            for seed, model, workers in product(self.seeds, self.models, self.workers)
            for bits, feedback in self.formats()
        ]


class Running:
    """A training that is done step by step."""

    def __init__(self, training: Training) -> None:
        recipe = Recipe(
            model=training.model, dataset="fashion-mnist", workers=training.workers, steps=training.steps,
            seed=training.seed,
        )  # fmt: skip
        data.keep(recipe.dataset)  # all workers use it, and so will this process's next trainings
        self.trainers = [Trainer(recipe, worker) for worker in range(training.workers)]
        layout = Layout(training.workers, Program.load("serene").lanes, training.bits)
        self.exchange = OneProcess(layout, self.trainers[0].size, feedback=training.feedback)
        self._done = 0

    def step(self) -> float:
        """Does a step; returns the mean of the workers' losses."""
        self._done += 1
        found = [trainer.gradient(self._done) for trainer in self.trainers]
        total = self.exchange.all_reduce([gradient for gradient, _ in found])
        for trainer in self.trainers:
            trainer.apply(total)
        return float(np.mean([loss for _, loss in found]))


def train(training: Training) -> dict[str, Any]:
    """Does a training. Returns ``losses`` of all steps, ``accuracies`` as [step, accuracy], ``bytes`` that an exchange
    puts on a worker's link, each way, ``values`` of the gradient, and ``engine_s`` that it took on this ``machine``."""
    began, running, losses, accuracies = time.perf_counter(), Running(training), [], []
    for step in range(1, training.steps + 1):
        losses.append(running.step())
        if step % EVALUATE_EVERY == 0 or step == training.steps:
            accuracies.append([step, running.trainers[0].accuracy(TEST_PICTURES)])
    return {
        "losses": losses,
        "accuracies": accuracies,
        "bytes": running.exchange.bytes_a_worker,
        "values": running.trainers[0].size,
        "engine_s": time.perf_counter() - began,
        "machine": machine.here(),
    }


def store(out: Path) -> JsonStore[Training]:
    """The results in a folder."""
    return JsonStore(out / "trainings", VERSION)


def expected_s(training: Training) -> float:
    """Seconds that a training takes, about."""
    return STEP_S[training.model] * training.workers * training.steps


def step_s(result: dict[str, Any], share: float) -> float:
    """Seconds of a step, with links of LINK_MBIT. result: of `train`. share: of the exchange in 32 bits in a step, 0 to
    1."""
    computing: float = computing_ms(share, LINK_MBIT, result["values"], Program.load("serene")) / 1e3
    return computing + 8 * int(result["bytes"]) / LINK_MBIT / 1e6


def seconds_to(result: dict[str, Any], target: float, share: float) -> float:
    """Seconds until an accuracy was first measured; infinite if it never was. Arguments as of `step_s`."""
    steps = next((step for step, accuracy in result["accuracies"] if accuracy >= target), np.inf)
    return float(steps * step_s(result, share))


def report(grid: Grid, kept: JsonStore[Training]) -> str:
    """A table in Markdown with a row for each model, number of workers and format, over all seeds."""
    reached = [*product(SHARES, TARGETS)]
    head = ["model", "workers", "bits", "rounded off", "accuracy at the end"]
    head += [f"s to {target:g} at {share:.0%}" for share, target in reached]
    lines = []
    for model, workers, (bits, feedback) in product(grid.models, grid.workers, grid.formats()):
        trainings = [Training(model, workers, bits, feedback, seed, grid.steps) for seed in grid.seeds]
        results = [result for training in trainings if (result := kept.get(training)) is not None]
        ends = np.array([result["accuracies"][-1][1] for result in results])
        spread = f" ± {ends.std(ddof=1):.4f}" if len(ends) > 1 else ""
        middles = [float(np.median([seconds_to(result, target, share) for result in results]))
                   for share, target in reached]  # fmt: skip
        how = "error feedback" if feedback else "at random" if bits != 32 else "to nearest"
        times = [f"{middle:.2f}" if np.isfinite(middle) else "never" for middle in middles]
        lines.append([model, str(workers), str(bits), how, f"{ends.mean():.4f}{spread}", *times])
    return page_tables.markdown(head, lines) + "\n"


def parser() -> Parser:
    result = Parser("Measures time to accuracy with 32, 16 and 8 bits.")
    result.add_argument("--out", type=Path, default=Path("runs/fewer-bits"), help="results and table (%(default)s)")
    result.add_argument("--seeds", type=whole(0), nargs="+", default=Grid.seeds, help="random seeds")
    result.add_argument("--models", nargs="+", default=Grid.models, choices=Grid.models, help="models to train")
    result.add_argument("--workers", type=int, nargs="+", default=Grid.workers, choices=Grid.workers, help="workers")
    result.add_argument("--steps", type=whole(1), default=Grid.steps, help="steps of each worker")
    return result


def run(options: argparse.Namespace, console: Console) -> None:
    """Does the trainings that are missing, and writes the table. Raises SereneError."""
    models, workers, seeds = (tuple(dict.fromkeys(each)) for each in (options.models, options.workers, options.seeds))
    grid = Grid(models, workers, BITS, seeds, options.steps)
    outputs.check_directory(options.out, ROOM)
    kept = store(options.out)
    with kept.alone():
        studies.complete("trainings", grid.trainings(), kept, train, console, expected_s,
                         lambda result: (result["engine_s"], result["machine"]), len(os.sched_getaffinity(0)),
                         preload=(Trainer.__module__,))  # fmt: skip
    table = report(grid, kept)
    outputs.write_text(options.out / "report.md", table)
    print(table)


def main() -> int:
    return studies.main(parser().parse_args(), run)


if __name__ == "__main__":
    # Run under its module's name, not as __main__: processes of the pool unpickle `train` and `Training` by that name.
    from serene.experiments.pytorch_study import fewer_bits

    raise SystemExit(fewer_bits.main())
