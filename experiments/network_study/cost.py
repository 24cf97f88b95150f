"""The cost of networks: the paper's Table 1, how many switches they have, and Figure 6, their worth in 2x2 switches."""

from __future__ import annotations

import math
from collections.abc import Iterator

from serene.experiments.network_study.flows.clos import RATIOS, SIZES, Clos

# Ports of the switches of Figure 6's networks: full ones, which can be thinned to an eighth of the links up.
PORTS = {2: (16, 32, 48, 64, 80, 96, 128), 3: (16, 32, 48)}  # by layers


def switches(layers: int, ports: float, ratio: float) -> float:
    """Table 1: the number of switches in a full network of switches with k ports. With 2 layers it has k (1 + r / 2)
    switches for k^2 / 2 hosts, with 3 layers k^2 (1 + r / 4) for k^3 / 4."""
    return ports * (1 + ratio / 2) if layers == 2 else ports**2 * (1 + ratio / 4)


def equivalents(switches: float, ports: float) -> float:
    """Figure 6: the worth of switches in 2x2 switches. A switch with k ports has the crosspoints of (k / 2)^2 of
    them."""
    return switches * (ports / 2) ** 2


def ports_for(layers: int, hosts: float) -> float:
    """How many ports the switches of a full network for so many hosts have; only even numbers can be built."""
    return math.sqrt(2 * hosts) if layers == 2 else math.pow(4 * hosts, 1 / 3)


def worth(layers: int, hosts: float, ratio: float) -> float:
    """The worth of a full network for so many hosts, in 2x2 switches."""
    ports = ports_for(layers, hosts)
    return equivalents(switches(layers, ports, ratio), ports)


def sizes_of_networks() -> Iterator[tuple[int, float, float, float]]:
    """(hosts, r, worth on 2 layers, worth on 3 layers): the paper's sizes, and smaller ones."""
    for hosts in (16, 32, 64, *sorted({hosts for _, hosts in SIZES})):
        for ratio in RATIOS:
            yield hosts, ratio, worth(2, hosts, ratio), worth(3, hosts, ratio)


def break_even(ratio: float) -> float:
    """The number of hosts N from which 3 layers are worth less than 2: (2 N)^(3/2) (1 + r/2) = (4 N)^(4/3) (1 +
    r/4)."""
    return math.pow(2, 7) * ((1 + ratio / 4) / (1 + ratio / 2)) ** 6


def comparison() -> list[list[str]]:
    """Table 1 for both networks: formulas for switches with k ports, and for 16 ports the numbers as they are
    counted."""
    two, three = (Clos(layers, 16, 16) for layers in (2, 3))
    thin_two, thin_three = (Clos(layers, 16, 16, 0.125) for layers in (2, 3))

    def counted(what: str) -> list[str]:
        return [f"{getattr(network, what):,}" for network in (two, thin_two, three, thin_three)]

    return [
        ["hosts", "k² / 2", *counted("hosts")[:2], "k³ / 4", *counted("hosts")[2:]],
        ["edge switches", "k", *counted("leaves")[:2], "k² / 2", *counted("leaves")[2:]],
        ["aggregation switches", "", "", "", "k² / 2", *counted("middles")[2:]],
        ["root switches", "r k / 2", *counted("top_switches")[:2], "r k² / 4", *counted("top_switches")[2:]],
        ["switches", "k (1 + r / 2)", *counted("switches")[:2], "k² (1 + r / 4)", *counted("switches")[2:]],
        ["worth in 2x2 switches", "k³ (1 + r / 2) / 4", *counted("equivalents")[:2], "k⁴ (1 + r / 4) / 4",
         *counted("equivalents")[2:]],
        ["switches on the longest way", "3", "3", "3", "5", "5", "5"],
    ]  # fmt: skip
