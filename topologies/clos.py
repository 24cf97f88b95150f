"""A Clos network of leaves and spines, with fewer spines for a lower bisection ratio. Also for Mininet's own command:

    sudo mn --custom topologies/clos.py --topo clos,8,4,0.5 --switch router --controller none --test pingall

Leaves have ``ports`` ports, half of them for hosts. Worker w is host h(w + 1) with address 10.0.0.(w + 1). It is at
port w mod (ports / 2) + 1 of leaf(w div (ports / 2) + 1). After the ports of its hosts, a leaf has a port for each
spine. A spine has a port for each leaf. Routes are static (D-mod-k): packets to worker w use spine(w mod spines + 1).
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

# `mn --custom FILE` executes this file without __file__, so the code object's file name locates the package `serene`.
if "__file__" not in globals():
    _above = os.path.dirname(os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename)))  # may be `serene`
    sys.path.insert(0, _above if os.path.isdir(os.path.join(_above, "serene")) else os.path.dirname(_above))

from mininet.topo import Topo

from serene.topologies.nodes import Router
from serene.topologies.processes import NotReady
from serene.topologies.star import HostInterface, SwitchInterface

LARGEST = 127  # most hosts: their addresses are in half of 10.0.0.0/24

Routes = list[tuple[str, int]]  # (destination's IP address, port)


def address(worker: int) -> str:
    """A worker's IP address."""
    return f"10.0.0.{worker + 1}"


def spines_of(ports: int, ratio: float) -> int:
    """The number of spines for a bisection ratio. ports: of each switch. Raises NotReady, which names the valid
    ratios."""
    if not isinstance(ports, int) or ports < 2 or ports % 2:
        raise NotReady(f"switches of {ports} ports: expected an even number")
    for spines in range(1, ports // 2 + 1):
        # With a tolerance, because on Mininet's command line 2/3 can only be written as a rounded decimal.
        if isinstance(ratio, (int, float)) and math.isclose(ratio, 2 * spines / ports, rel_tol=1e-5):
            return spines
    valid = ", ".join(f"{2 * spines / ports:g}" for spines in range(1, ports // 2 + 1))
    raise NotReady(f"bisection ratio {ratio} with {ports} ports: expected one of {valid}")


def leaf_routes(leaf: int, ports: int, leaves: int, spines: int) -> Routes:
    """A leaf's route to every host: its own hosts at their ports, the others through a spine's port."""
    half = ports // 2
    here = range(leaf * half, leaf * half + half)
    return [
        (address(worker), worker % half + 1 if worker in here else half + worker % spines + 1)
        for worker in range(leaves * half)
    ]


def spine_routes(ports: int, leaves: int) -> Routes:
    """A spine's route to every host: through the port of the host's leaf."""
    half = ports // 2
    return [(address(worker), worker // half + 1) for worker in range(leaves * half)]


class Clos(Topo):  # type: ignore[misc]
    """A Clos network. ``leaves``: their number; each has ``ports // 2`` hosts. ``ratio``: the bisection ratio, which
    determines the number of spines. ``link_mbit``: rate of every link in each direction; None: unlimited.
    ``small_first``: whether links send small packets first, see `SwitchInterface`. Raises NotReady."""

    def build(
        self, ports: int = 8, leaves: int = 4, ratio: float = 1.0, link_mbit: float | None = None,
        small_first: bool = False, **unknown: Any,
    ) -> None:  # fmt: skip
        if unknown:  # Mininet's own command would only show a TypeError of Python's
            valid = "ports, leaves, ratio, link_mbit or small_first"
            raise NotReady(f"clos has no option {', '.join(unknown)}: expected {valid}")
        spines, half = spines_of(ports, ratio), ports // 2
        if not isinstance(leaves, int) or not 1 <= leaves <= min(ports, LARGEST // half):
            raise NotReady(f"{leaves} leaves of {half} hosts: expected 1 to {min(ports, LARGEST // half)}")
        # The burst is small, two full frames, so that short transfers do not exceed the rate.
        shaped = {"bw": link_mbit, "burst": "3028", "small_first": small_first} if link_mbit else {}
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
