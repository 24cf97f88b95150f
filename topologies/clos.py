"""A Clos network of two layers, thinned to a bisection ratio by leaving out spines. Also for Mininet's own command:

    sudo mn --custom topologies/clos.py --topo clos,8,4,0.5 --switch router --controller none --test pingall

Leaves have ``ports`` ports, half of them for hosts. Worker w is host h(w + 1), with address 10.0.0.(w + 1), at port
w mod (ports / 2) + 1 of leaf(w div (ports / 2) + 1); behind its hosts' ports a leaf has one for each spine, and a spine
has one for each leaf. Routes are static: a packet to worker w goes up to spine(w mod spines + 1), as D-mod-k has it.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

# `mn` runs this file with exec, without a name or a place: its own argument tells where we are.
if "__file__" not in globals():
    _named = next(
        (
            argument.partition("=")[2] or sys.argv[at + 1]
            for at, argument in enumerate(sys.argv)
            if argument == "--custom" or argument.startswith("--custom=")
        ),
        "topologies/clos.py",
    )
    _ours = next((path for path in _named.split(",") if path.endswith("clos.py")), _named)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(_ours))))

from mininet.topo import Topo

from topologies.nodes import Router
from topologies.processes import NotReady
from topologies.star import HostInterface, SwitchInterface

LARGEST = 127  # hosts that have an address

Routes = list[tuple[str, int]]


def address(worker: int) -> str:
    return f"10.0.0.{worker + 1}"


def spines_of(ports: int, ratio: float) -> int:
    """How many spines a bisection ratio leaves. Raises NotReady."""
    if not isinstance(ports, int) or ports < 2 or ports % 2:
        raise NotReady(f"switches of {ports} ports: expected an even number")
    for spines in range(1, ports // 2 + 1):
        # Mininet's own command can pass decimals only.
        if isinstance(ratio, (int, float)) and math.isclose(ratio, 2 * spines / ports, rel_tol=1e-5):
            return spines
    valid = ", ".join(f"{2 * spines / ports:g}" for spines in range(1, ports // 2 + 1))
    raise NotReady(f"bisection ratio {ratio} with {ports} ports: expected one of {valid}")


def leaf_routes(leaf: int, ports: int, leaves: int, spines: int) -> Routes:
    """Every host, and the leaf's port that it is behind."""
    half = ports // 2
    here = range(leaf * half, leaf * half + half)
    return [
        (address(worker), worker % half + 1 if worker in here else half + worker % spines + 1)
        for worker in range(leaves * half)
    ]


def spine_routes(ports: int, leaves: int) -> Routes:
    half = ports // 2
    return [(address(worker), worker // half + 1) for worker in range(leaves * half)]


class Clos(Topo):  # type: ignore[misc]
    """``leaves`` of ``ports // 2`` hosts each. ``link_mbit`` limits every link, each way."""

    def build(
        self, ports: int = 8, leaves: int = 4, ratio: float = 1.0, link_mbit: float | None = None, **unknown: Any
    ) -> None:
        if unknown:  # Mininet's own command would only show a TypeError of Python's
            raise NotReady(f"clos has no option {', '.join(unknown)}: expected ports, leaves, ratio or link_mbit")
        spines, half = spines_of(ports, ratio), ports // 2
        if not isinstance(leaves, int) or not 1 <= leaves <= min(ports, LARGEST // half):
            raise NotReady(f"{leaves} leaves of {half} hosts: expected 1 to {min(ports, LARGEST // half)}")
        # As little as possible passes unlimited after a pause: two full frames.
        shaped = {"bw": link_mbit, "burst": "3028"} if link_mbit else {}
        ends = {"cls1": HostInterface, "cls2": SwitchInterface, "params1": shaped, "params2": shaped}
        for spine in range(spines):
            self.addSwitch(f"spine{spine + 1}", routes=spine_routes(ports, leaves))
        for leaf in range(leaves):
            name = self.addSwitch(f"leaf{leaf + 1}", routes=leaf_routes(leaf, ports, leaves, spines))
            for worker in range(leaf * half, leaf * half + half):
                host = self.addHost(
                    f"h{worker + 1}", ip=f"{address(worker)}/32", mac=f"02:00:00:00:00:{worker + 1:02x}"
                )
                self.addLink(host, name, port2=worker % half + 1, **ends)
            for spine in range(spines):
                between = {**ends, "cls1": SwitchInterface}
                self.addLink(name, f"spine{spine + 1}", port1=half + spine + 1, port2=leaf + 1, **between)


topos = {"clos": Clos}
switches = {"router": Router}
