"""One emulated exchange, and the simulation of the same one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from experiments.network_study.cells import our_switch
from experiments.network_study.emulated import rules
from experiments.network_study.emulated.rules import BYTES, Flow
from experiments.network_study.exchange import Exchange
from experiments.network_study.flows import solver
from experiments.network_study.flows.clos import Clos
from experiments.network_study.flows.model import IDEAL, Model
from experiments.network_study.methods import METHODS, Origin, names

PORTS, LEAVES = 16, 4  # 32 hosts
AGGREGATION = "leaf-spine-aggregation"
EMULATED = (*names(lambda method: method.origin is Origin.PAPER), AGGREGATION)

# Of a full TCP segment, and with its headers as the link's limit counts them; one acknowledgement for two of them.
PAYLOAD, FRAME, ACKNOWLEDGEMENT = 1448, 1514, 66
TCP: Model = replace(
    IDEAL, name="TCP", bandwidth_factor=PAYLOAD / FRAME, cross_traffic=ACKNOWLEDGEMENT / (2 * FRAME)
)  # fmt: skip


@dataclass(frozen=True)
class Emulated:
    """``values`` float32 exchanged by a method over links of ``link_mbit``, at a bisection ratio. barrier: all hosts
    wait for each other after every step, as they do in the simulation; else only for their own transfers."""

    method: str
    ratio: float
    link_mbit: float
    values: int
    ports: int = PORTS
    leaves: int = LEAVES
    barrier: bool = False

    @property
    def network(self) -> Clos:
        """Switches of no latency: what the kernel takes to forward a packet is not put in."""
        return Clos(2, self.ports, self.leaves, self.ratio, bandwidth=self.link_mbit * 1e6 / 8, switch_latency=0.0)

    @property
    def exchange(self) -> Exchange:
        return Exchange(self.network, self.values * BYTES, our_switch())

    @property
    def addresses(self) -> list[str]:
        return [f"10.0.0.{host + 1}" for host in range(self.network.hosts)]

    def flows(self) -> list[list[Flow]] | None:
        """All hosts', step by step; None where switches add up."""
        method = METHODS[self.method]
        if method.in_network:
            return None
        steps = list(method.steps(self.exchange))
        return (rules.servers if method.servers else rules.butterfly)(steps, self.values)

    @property
    def workers(self) -> list[int]:
        """Hosts that contribute."""
        flows = self.flows()
        if flows is None or not METHODS[self.method].servers:
            return list(range(self.network.hosts))
        return sorted({flow.source for step in flows[: len(flows) // 2] for flow in step})

    def simulated_s(self) -> float:
        """Nothing is fitted: links and headers are what the emulation has."""
        method = METHODS[self.method]
        return solver.run(self.network, method.steps(self.exchange), IDEAL if method.in_network else TCP)
