"""What accuracies training without a network reaches: a grid's targets are chosen by them.

``python -m serene.experiments.straggler_study.reachable --grid full`` trains as BSP does, in one process, with the
batches of all workers in every step. For each model, number of workers and seed it prints the accuracy over the steps,
and the step at which the target is reached. Every seed should reach the target well before the last step, because other
strategies may need more steps.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

from collections.abc import Iterator

import numpy as np
import torch
from rich.table import Table

from serene.arguments import Parser, command
from serene.errors import BadUsage, choices
from serene.experiments.shared import terminal
from serene.experiments.straggler_study import grid
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.measures import Curve
from serene.workers import data
from serene.workers.training import Trainer

SHOWN = 8  # how many accuracies are printed in a row


def plain(cell: Cell) -> Curve:
    """Trains a cell as BSP does, but with gradients that are not quantised. In the curve ``t`` is in steps, too. An
    accuracy is the mean of the last three evaluations, as everywhere in the study. Raises DataError."""
    trainers = [Trainer(cell.recipe, worker) for worker in range(cell.workers)]
    latest = [trainers[0].accuracy()] * 3
    steps, accuracies = [0.0], [latest[0]]
    for step in range(1, cell.steps + 1):
        total = np.sum([trainer.gradient(step)[0] for trainer in trainers], axis=0)
        for trainer in trainers:
            trainer.apply(total)
        if step % cell.eval_every == 0 or step == cell.steps:
            latest = [*latest[1:], trainers[0].accuracy()]
            steps.append(float(step))
            accuracies.append(float(np.mean(latest)))
    return Curve(np.array(steps), np.array(steps), np.array(accuracies))


def cells(chosen: grid.Grid) -> Iterator[Cell]:
    """A cell of the headline for each model, number of workers and seed: times and ways make no difference here."""
    yield from {(cell.model, cell.workers, cell.seed): cell for cell in chosen.headline}.values()


@command
def main() -> None:
    parser = Parser("Prints the accuracies that training without a network reaches; a grid's targets follow from them.")
    parser.add_argument("--grid", default="full", help=f"{choices(grid.GRIDS)} (default full)")
    options = parser.parse_args()
    if options.grid not in grid.GRIDS:
        raise BadUsage(f"--grid {options.grid}: expected {choices(grid.GRIDS)}")
    torch.set_num_threads(1)
    chosen, console = grid.GRIDS[options.grid](), terminal.console(highlight=False)
    data.keep(grid.DATASET)
    for model, workers in dict.fromkeys((cell.model, cell.workers) for cell in cells(chosen)):
        console.print(_table(chosen, model, workers))


def _table(chosen: grid.Grid, model: str, workers: int) -> Table:
    target, head, rows = chosen.targets[model], [], []
    for cell in (each for each in cells(chosen) if (each.model, each.workers) == (model, workers)):
        curve = plain(cell)
        at = np.unique(np.linspace(1, len(curve.steps) - 1, SHOWN).round().astype(int))
        head = ["seed", *(f"step {curve.steps[place]:.0f}" for place in at), "target at step"]
        reached = curve.reaches(target)
        accuracies = (f"{curve.accuracy[place]:.3f}" for place in at)
        rows.append([str(cell.seed), *accuracies, f"{reached[1]:.0f}" if reached else "never"])
    return terminal.table(head, rows, title=f"{model}, {workers} workers, target {target:.2f}")


if __name__ == "__main__":
    raise SystemExit(ended(main))
