"""One emulated exchange: which values its flows carry, so that every host has the sum at the end; and the simulation of
the same exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from serene.experiments.network_study.cells import our_switch
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.flows.solver import IDEAL, Model, Step
from serene.experiments.network_study.methods import METHODS, Origin, names
from serene.experiments.shared.measurements import Row

FOLDER = "clos"  # in the study's
NETWORKS = {"clos": "clos.json", "racks": "leaf-spine.json"}  # the files of measurements in it
PORTS, LEAVES = 16, 4  # 32 hosts
AGGREGATION = "leaf-spine-aggregation"
EMULATED = (*names(lambda method: method.origin is Origin.PAPER), AGGREGATION)

# Bytes of a full TCP segment: without headers; with them, as tc counts it; and of the acknowledgement of two segments.
PAYLOAD, FRAME, ACKNOWLEDGEMENT = 1448, 1514, 66
TCP: Model = replace(
    IDEAL, name="TCP", bandwidth_factor=PAYLOAD / FRAME, cross_traffic=ACKNOWLEDGEMENT / (2 * FRAME)
)  # fmt: skip


@dataclass(frozen=True)
class Emulated:
    """An exchange of so many ``values``, float32, by a method. ``ratio``: bisection ratio. ``barrier``: whether all
    hosts wait for each other after every step, as in the simulation, or only for the flows to them and from them.
    ``small_first``: whether acknowledgements pass before data that waits for a link, as they cost nothing there in the
    simulation."""

    method: str
    ratio: float
    link_mbit: float
    values: int
    ports: int = PORTS
    leaves: int = LEAVES
    barrier: bool = False
    small_first: bool = False

    @property
    def network(self) -> Clos:
        """The network, for the simulation. Its switches have no latency: the kernel's is not known, and not fitted."""
        return Clos(2, self.ports, self.leaves, self.ratio, bandwidth=self.link_mbit * 1e6 / 8, switch_latency=0.0)

    @property
    def exchange(self) -> Exchange:
        """The exchange, for the simulation."""
        return Exchange(self.network, self.values * BYTES, our_switch())

    @property
    def addresses(self) -> list[str]:
        """The hosts' IP addresses."""
        return [f"10.0.0.{host + 1}" for host in range(self.network.hosts)]

    def flows(self) -> list[list[Flow]] | None:
        """The flows of all hosts, step by step; None where switches add up."""
        method = METHODS[self.method]
        if method.in_network:
            return None
        steps = list(method.steps(self.exchange))
        return (servers if method.servers else butterfly)(steps, self.values)

    @property
    def workers(self) -> list[int]:
        """The hosts that contribute: all but servers."""
        flows = self.flows()
        if flows is None or not METHODS[self.method].servers:
            return list(range(self.network.hosts))
        return sorted({flow.source for step in flows[: len(flows) // 2] for flow in step})

    def simulated_s(self) -> float:
        """Seconds in the simulation, with the emulation's links and headers, and no fitted constants."""
        method = METHODS[self.method]
        return solver.run(self.network, method.steps(self.exchange), IDEAL if method.in_network else TCP)


def title(row: Row) -> str:
    """The method of a measurement, and what is other than on a plain network."""
    others = {"small_first": "acknowledgements first", "barrier": "a barrier after each step"}
    return ", ".join([str(row["method"]), *(text for name, text in others.items() if row.get(name))])


BYTES = 4  # of a float32


@dataclass(frozen=True)
class Flow:
    """A flow from one host to another. ``first``, ``count``: which values it carries. ``whole``: whether these are sums
    over all workers, which replace what the receiver has; else they are added to it."""

    source: int
    target: int
    first: int
    count: int
    whole: bool


def butterfly(steps: Sequence[Step], values: int) -> list[list[Flow]]:
    """The flows of a butterfly, step by step: a sender sends all values that it has, as they were before the step."""
    hosts = {int(host) for step in steps for host in (*step.source, *step.target)}
    have = {host: {host} for host in hosts}
    played = []
    for step in steps:
        before = {host: set(contributors) for host, contributors in have.items()}
        flows = []
        for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
            whole = before[source] == hosts
            flows.append(Flow(source, target, 0, values, whole))
            have[target] = have[target] | before[source]
        played.append(flows)
    return played


def servers(steps: Sequence[Step], values: int) -> list[list[Flow]]:
    """The flows of parameter servers, step by step: in the first half of the steps workers push, in the second they
    pull. Each server has a part of the vector."""
    pushes = len(steps) // 2
    of_server = {host: part for part, host in enumerate(np.unique(np.concatenate([s.target for s in steps[:pushes]])))}
    each = -(-values // len(of_server))
    played = []
    for number, step in enumerate(steps):
        pull = number >= pushes
        flows = []
        for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
            first = each * of_server[source if pull else target]
            flows.append(Flow(source, target, first, min(each, values - first), pull))
        played.append(flows)
    return played
