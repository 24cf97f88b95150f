"""Counts the packets between a leaf and the root, per slot and round, in the model: `python -m tests.tree.traffic`."""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import random
from collections.abc import Sequence

import numpy as np

from serene.arguments import Parser
from serene.experiments.correctness.virtual.clock import Clock
from serene.racks import LeafPolicy, compile_for_racks
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from tests.tree import simulation
from tests.tree.simulation import Simulation, Worker

RACKS, WORKERS, ROUNDS = 4, 8, 60
FREE = tuple(range(0, RACKS * WORKERS, 2))


class Undisturbed(Simulation):
    """One strategy, one slot, a good network, workers of the same mean pace."""

    def __init__(self, strategy: Strategy, flush_every: int) -> None:
        self.strategy: Strategy = BSP()
        super().__init__(1)
        everybody = range(RACKS * WORKERS)
        self.racks = [list(everybody[rack * WORKERS : (rack + 1) * WORKERS]) for rack in range(RACKS)]
        self.strategy, self.flush_every, self.places = strategy, flush_every, 1
        self.rng, self.loss, self.twice, self.late, self.swaps, self.restarts = random.Random(1), 0, 0, 0, 0, 0
        self.happened.clear()
        self.zero, self.active = np.zeros(len(everybody) + 1, np.uint32), set(everybody)
        Clock.__init__(self)  # without what has begun above
        self.begin(lambda number, rack: Worker(self, number, rack, ROUNDS, 1.0))

    def _pick(self) -> tuple[list[LeafPolicy], PolicyFields]:
        return compile_for_racks(self.strategy, self.racks, self.flush_every)

    def leave(self, worker: Worker) -> None:
        """Does nothing: all workers have the same number of rounds, so nobody waits for one that has left."""

    def packets(self) -> dict[str, float]:
        self._until_done()
        return {name: self.happened[name] / RACKS / ROUNDS for name in ("UP", "DOWN", "GRANT")}


CASES: Sequence[tuple[Strategy, int]] = (
    (BSP(), 1), (SSP(3), 1), (SSP(3), 8), (SSP(3), 1 << 20), (ASP(), 1), (ASP(), 8), (Mixed(FREE), 1),
    (Mixed(FREE, 3), 8), (Quorum(30), 1), (Quorum(16), 1),
)  # fmt: skip


def main() -> None:
    Parser("Counts the packets between a leaf and the root, per slot and round, in the model.").parse_args()
    simulation.TIMEOUT, simulation.TRANSIT = 1e6, 0.005  # nothing is lost, so no request is ever repeated
    print(f"{RACKS} leaves of {WORKERS} workers; without combining {2 * WORKERS}")
    for strategy, flush_every in CASES:
        each = Undisturbed(strategy, flush_every).packets()
        parts = ", ".join(f"{name} {count:.1f}" for name, count in each.items())
        print(f"{str(strategy)[:24]:24} n = {flush_every:7}: {sum(each.values()):5.1f} ({parts})")


if __name__ == "__main__":
    raise SystemExit(ended(main))
