"""The study's grids: which questions it asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from serene.experiments.network_study.cells import Cell, ExchangeCell, NetworkCell, TrainingCell
from serene.experiments.network_study.flows.clos import RATIOS, SIZES
from serene.experiments.network_study.methods import MAIN, VARIANTS, Origin, names
from serene.experiments.network_study.training import PACKED, SERVERS, SWITCH

LINKS = ((4.0, 0.2), (1.0, 0.2), (4.0, 1.0), (1.0, 1.0))  # GB/s and us
SLOW = (3, 1024)  # the network of the paper's Figure 9
GRADIENTS_MB = (1.0, 10.0, 100.0, 1000.0)
PAPER = names(lambda method: method.origin is Origin.PAPER)
FAST = names(lambda method: method.origin is not Origin.VARIANT and not method.servers)

STRATEGIES = ("bsp", "ssp:3", "ssp:10", "quorum", "asp")
STRAGGLERS = ("none", "slow_worker", "heterogeneous", "failure:iteration=10")
THINNED = ("bsp", "ssp:3", "ssp:10", "asp")  # strategies that are simulated at every bisection ratio
EXCHANGES = (SWITCH, SERVERS, PACKED)  # by which training is simulated under every strategy
LOCK_STEP = ("flat-butterfly", "layered-butterfly", "ring", "hierarchical-ring")  # and those in lock step
TRAINING_RATIO = 0.25  # at which every strategy and straggler is simulated
BASE_MS = 100.0  # computing of an iteration
LONG_MS = 1000.0  # computing of an iteration in which the exchange is a small part, on the smallest network


@dataclass(frozen=True)
class Grid:
    """Questions, with networks as (layers, hosts). ``others``: networks on which link speeds and routings are varied.
    ``training``: networks on which training is simulated, each with so many ``iterations``, and these ``seeds``."""

    name: str
    others: tuple[tuple[int, int], ...]
    training: tuple[tuple[int, int], ...]
    iterations: tuple[int, ...]
    seeds: tuple[int, ...]

    @property
    def compared(self) -> tuple[tuple[int, int], ...]:
        """The networks on which all strategies are compared at TRAINING_RATIO: with one seed, the smallest alone."""
        return self.training if len(self.seeds) > 1 else self.training[:1]

    def main(self) -> list[ExchangeCell]:
        """Every method on every network, and the variants."""
        return [
            ExchangeCell(NetworkCell(layers, hosts, ratio), name)
            for (layers, hosts), ratio, name in product(SIZES, RATIOS, (*MAIN, *VARIANTS))
        ]

    def links(self) -> list[ExchangeCell]:
        """Every main method with other bandwidths and latencies."""
        return [
            ExchangeCell(NetworkCell(layers, hosts, ratio, bandwidth, latency), name)
            for (layers, hosts), ratio, (bandwidth, latency), name in product(self.others, (1.0, 0.125), LINKS, MAIN)
        ]

    def slow_links(self) -> list[ExchangeCell]:
        """The paper's Figure 9."""
        return [
            ExchangeCell(NetworkCell(*SLOW, ratio, bandwidth_gb=1.0), name) for ratio, name in product(RATIOS, PAPER)
        ]

    def speeds(self) -> list[tuple[ExchangeCell, ExchangeCell]]:
        """Pairs of the same exchange on fast links and on slow ones, for the paper's methods."""
        slow = [cell for cell in (*self.links(), *self.slow_links()) if cell.method in PAPER]
        return [
            (replace(cell, network=replace(cell.network, bandwidth_gb=4.0)), cell)
            for cell in dict.fromkeys(slow)
            if cell.network.bandwidth_gb == 1.0
        ]

    def gradients(self) -> list[ExchangeCell]:
        """Methods without servers, with gradients of other sizes."""
        return [
            ExchangeCell(NetworkCell(layers, hosts, 0.25), name, gradient)
            for (layers, hosts), gradient, name in product(SIZES, GRADIENTS_MB, FAST)
        ]

    def routings(self) -> list[ExchangeCell]:
        """Every main method with routes by a hash."""
        return [
            ExchangeCell(NetworkCell(layers, hosts, ratio, routing="ecmp"), name)
            for (layers, hosts), ratio, name in product(self.others, RATIOS, MAIN)
        ]

    def trainings(self) -> list[TrainingCell]:
        """Training by each exchange, under each strategy that it can do and each straggler profile."""
        asked = [cell for size in self.training for cell in self.thinned(size)]
        asked += self.thinned(self.training[0], LONG_MS)
        for size, iterations, seed in [
            (*each, seed) for each in zip(self.compared, self.iterations, strict=False) for seed in self.seeds
        ]:
            network = NetworkCell(*size, TRAINING_RATIO)
            ways = [*product((SWITCH, SERVERS), STRATEGIES), *((how, "bsp") for how in LOCK_STEP)]
            asked += [
                TrainingCell(network, how, strategy, straggler, iterations=iterations, seed=seed)
                for (how, strategy), straggler in product(ways, STRAGGLERS)
            ]
        return list(dict.fromkeys(asked))

    def thinned(self, size: tuple[int, int], compute_ms: float = BASE_MS) -> list[TrainingCell]:
        """Training on one network at every bisection ratio, for `thinness`, with the first seed: on the smallest
        network under every strategy in THINNED and with stragglers, on larger ones without, under BSP and ASP."""
        smallest = size == self.training[0]
        ways = [*product(EXCHANGES, THINNED if smallest else ("bsp", "asp")), *((how, "bsp") for how in LOCK_STEP)]
        return [
            TrainingCell(
                NetworkCell(*size, ratio), how, strategy, straggler, compute_ms=compute_ms,
                iterations=self.iterations[self.training.index(size)], seed=self.seeds[0],
            )
            for ratio, straggler, (how, strategy) in product(RATIOS, STRAGGLERS[: 3 if smallest else 1], ways)
        ]  # fmt: skip

    def cells(self) -> Iterator[Cell]:
        """All questions; some come more than once."""
        yield from self.main()
        yield from self.links()
        yield from self.slow_links()
        yield from self.gradients()
        yield from self.routings()
        yield from self.trainings()


GRIDS = {
    "quick": Grid("quick", ((2, 128), (3, 256)), ((2, 128), (3, 1024)), (30, 20), (1,)),
    "full": Grid("full", ((2, 128), (2, 512), (3, 256)), ((2, 128), (2, 512), (3, 1024)), (60, 60, 60), (1, 2, 3)),
}


def ratio_name(ratio: float) -> str:
    """A bisection ratio as text: 1, or 1/2 and so on."""
    return "1" if ratio == 1 else f"1/{round(1 / ratio)}"
