"""The study's grids: which questions it asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from serene.experiments.network_study.cells import Cell, ExchangeCell, NetworkCell, TrainingCell
from serene.experiments.network_study.flows.clos import RATIOS, SIZES
from serene.experiments.network_study.methods import MAIN, VARIANTS, Origin, names
from serene.experiments.network_study.training import SERVERS, SWITCH

LINKS = ((4.0, 0.2), (1.0, 0.2), (4.0, 1.0), (1.0, 1.0))  # GB/s and us
SLOW = (3, 1024)  # the network of the paper's Figure 9
GRADIENTS_MB = (1.0, 10.0, 100.0, 1000.0)
PAPER = names(lambda method: method.origin is Origin.PAPER)
FAST = names(lambda method: method.origin is not Origin.VARIANT and not method.servers)

STRATEGIES = ("bsp", "ssp:3", "ssp:10", "quorum", "asp")
STRAGGLERS = ("none", "slow_worker", "heterogeneous", "failure:iteration=10")
LOCK_STEP = ("layered-butterfly", "ring")  # methods for which training is simulated in lock step
TRAINING_RATIO = 0.25


@dataclass(frozen=True)
class Grid:
    """Questions, with networks as (layers, hosts). ``others``: networks on which link speeds and routings are varied.
    ``training``: networks on which training is simulated, with so many ``iterations`` and these ``seeds``."""

    name: str
    others: tuple[tuple[int, int], ...]
    training: tuple[tuple[int, int], ...]
    iterations: int
    seeds: tuple[int, ...]

    def networks(self) -> list[tuple[int, int]]:
        return list(SIZES)

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
        networks = [NetworkCell(layers, hosts, TRAINING_RATIO) for layers, hosts in self.training]
        return [
            TrainingCell(network, how, strategy, straggler, iterations=self.iterations, seed=seed)
            for network, straggler, seed in product(networks, STRAGGLERS, self.seeds)
            for how, strategy in [*product((SWITCH, SERVERS), STRATEGIES), *((how, "bsp") for how in LOCK_STEP)]
        ]

    def cells(self) -> Iterator[Cell]:
        """All questions; some come more than once."""
        yield from self.main()
        yield from self.links()
        yield from self.slow_links()
        yield from self.gradients()
        yield from self.routings()
        yield from self.trainings()


GRIDS = {
    "quick": Grid("quick", ((2, 128), (3, 256)), ((2, 128), (3, 1024)), 20, (1,)),
    "full": Grid("full", ((2, 128), (2, 512), (3, 256)), ((2, 128), (2, 512), (3, 1024)), 60, (1, 2, 3)),
}


def ratio_name(ratio: float) -> str:
    """A bisection ratio as text: 1, or 1/2 and so on."""
    return "1" if ratio == 1 else f"1/{round(1 / ratio)}"
