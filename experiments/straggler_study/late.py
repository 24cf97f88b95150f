"""Why k-of-n may beat BSP where nobody is slow: ``python -m serene.experiments.straggler_study.late``.

Trains softmax regression on digits on 16 workers in step, without any network: once with all gradients in the step in
which they were computed, once with those of a quarter of the workers a step late, as k-of-n has them. Every gradient is
counted once, with the same weight. Prints the mean accuracy of three seeds.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

from collections.abc import Sequence

import numpy as np

from serene.arguments import Parser
from serene.experiments.straggler_study.cell import SOFTMAX, Cell
from serene.experiments.straggler_study.learners import Softmax

WORKERS, SEEDS, RATES, STEPS = 16, (101, 102, 103), (0.5, 3.0), (5, 10, 20, 30, 60)


def accuracies(rate: float, late: int, seed: int, steps: int) -> np.ndarray:
    """The accuracy after each step, float64[steps], when so many workers' gradients are a step late."""
    workers = [
        Softmax(Cell(model=SOFTMAX, workers=WORKERS, learning_rate=rate, seed=seed), worker)
        for worker in range(WORKERS)
    ]
    before = np.zeros(workers[0].size, np.float32)
    found = []
    for step in range(1, steps + 1):
        gradients = [worker.gradient(step)[0] for worker in workers]
        in_time = np.sum(gradients[: WORKERS - late], axis=0) + before
        before = np.sum(gradients[WORKERS - late :], axis=0) if late else np.zeros_like(before)
        for worker in workers:
            worker.apply(in_time)
        found.append(workers[0].accuracy())
    return np.array(found)


def row(rate: float, late: int, seeds: Sequence[int] = SEEDS) -> np.ndarray:
    """The mean accuracy of the seeds after STEPS, float64[len(STEPS)]."""
    means = np.mean([accuracies(rate, late, seed, STEPS[-1]) for seed in seeds], axis=0)
    return np.asarray(means[np.array(STEPS) - 1])


def main() -> None:
    Parser("Prints accuracies of training with and without late gradients.").parse_args()
    print(f"rate  late of {WORKERS}  accuracy after steps {', '.join(map(str, STEPS))}")
    for rate in RATES:
        for late in (0, WORKERS // 4):
            print(f"{rate:4}  {late:10}  {'  '.join(f'{accuracy:.3f}' for accuracy in row(rate, late))}")


if __name__ == "__main__":
    raise SystemExit(ended(main))
