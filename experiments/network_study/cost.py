"""What networks cost: the paper's Table 1 (how many switches) and Figure 6 (what they are worth in 2x2 switches)."""

from __future__ import annotations

from experiments.network_study.flows.clos import RATIOS, SIZES, Clos


def switches(layers: int, ports: int, ratio: float) -> float:
    """Table 1 for a full network: k (1 + r / 2) switches of k ports for k^2 / 2 hosts on 2 layers, k^2 (1 + r / 4) for
    k^3 / 4 hosts on 3."""
    return ports * (1 + ratio / 2) if layers == 2 else ports**2 * (1 + ratio / 4)


def equivalents(switches: float, ports: int) -> float:
    """Figure 6: a switch of k ports has the crosspoints of (k / 2)^2 switches of 2 ports a side."""
    return switches * (ports / 2) ** 2


def table() -> list[dict[str, object]]:
    """Every network of the study: what it is made of, and what that is worth."""
    rows: list[dict[str, object]] = []
    for layers, hosts in SIZES:
        for ratio in RATIOS:
            network = Clos.of_size(hosts, ratio, layers=layers)
            rows.append(
                {
                    "layers": layers, "hosts": hosts, "ports": network.ports, "ratio": ratio, "leaves": network.leaves,
                    "middles": network.middles, "tops": network.top_switches, "switches": network.switches,
                    "equivalents": network.equivalents, "equivalents_per_host": network.equivalents / hosts,
                }
            )  # fmt: skip
    return rows
