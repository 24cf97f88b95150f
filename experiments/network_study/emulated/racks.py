"""Measures all-reduces over racks of Mininet hosts, and compares them with the simulation of the same network.

Three methods: our leaf and root programs with our controller; the root alone, above bridges; and gloo's ring over
bridges. The last two depend on the uplinks, which carry either all that a rack's hosts can send together, or a quarter.
The simulation has the same links and headers, and no fitted constants.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from serene.experiments.network_study.cells import our_switch
from serene.experiments.network_study.emulated.plan import TCP
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.flows.solver import IDEAL, Model, Step
from serene.experiments.network_study.schedules import leaf_spine_aggregation, ring
from serene.experiments.performance.racks import Measured, Question, combining, gloo, relaying
from serene.experiments.shared.measurements import Row

RACKS = (2, 4, 6)
HOSTS = 4  # in each rack: of a leaf with eight ports
RATIOS = (1.0, 0.25)
LINK_MBIT = 20.0  # so low that two cores can run 24 hosts and their switches
VALUES = 100_000
REPEATS, SERIES = 5, 2
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Case:
    """What to measure: a method with so many ``racks`` of HOSTS. ``ratio``: an uplink's rate, relative to what a rack's
    hosts can send together."""

    racks: int
    ratio: float
    method: str

    @property
    def question(self) -> Question:
        """The exchange as the emulation's question."""
        uplink = self.ratio * HOSTS * LINK_MBIT
        return Question(self.racks, HOSTS, LINK_MBIT, VALUES, REPEATS, SERIES, PATIENCE_S, uplink_mbit=uplink)

    @property
    def network(self) -> Clos:
        """The same for the simulation: as many spines, with links like a host's, as have the uplink's rate together."""
        return Clos(2, 2 * HOSTS, self.racks, self.ratio, bandwidth=LINK_MBIT * 1e6 / 8, switch_latency=0.0)

    def simulated_s(self) -> float:
        """Seconds of an all-reduce in the simulation."""
        _, schedule, model = METHODS[self.method]
        return solver.run(self.network, schedule(Exchange(self.network, 4 * VALUES, our_switch())), model)


def root_aggregation(exchange: Exchange) -> Iterator[Step]:
    """The schedule of the root alone: every worker's vector goes up to the root, and the sum comes back to each. What
    one uplink carries in the emulation is spread over the links to all spines."""
    network = exchange.network
    size = exchange.size * exchange.switch.overhead
    lower, upper = network.ends()
    sizes = np.where(network.levels == 0, size, size * network.half / network.up)
    links = network.longest
    yield Step(
        np.concatenate([lower, upper]), np.concatenate([upper, lower]), np.concatenate([sizes, sizes]),
        delay=exchange.switch.round_trip(network, links, links - 1),
    )  # fmt: skip


Method = tuple[Callable[[Question], Measured], Callable[[Exchange], Iterator[Step]], Model]
METHODS: dict[str, Method] = {
    "aggregation in leaves and root": (combining, leaf_spine_aggregation, IDEAL),
    "aggregation in the root alone": (relaying, root_aggregation, IDEAL),
    "ring (gloo)": (gloo, ring, TCP),
}


def cases() -> list[Case]:
    return [Case(count, ratio, method) for count in RACKS for ratio in RATIOS for method in METHODS]


def measure(case: Case) -> Row:
    """Measures a case, and simulates it. Raises SereneError or NotReady."""
    found = METHODS[case.method][0](case.question)
    return {
        "hosts": HOSTS * case.racks, "link_mbit": LINK_MBIT, "values": VALUES,
        "emulated_s": statistics.median(found.seconds), "samples_s": list(found.seconds),
        "simulated_s": case.simulated_s(),
    }  # fmt: skip
