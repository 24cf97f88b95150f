"""Workers in racks: a leaf switch for each rack, and one root above the leaves. Also for Mininet's own command:

    sudo mn --custom topologies/leaf_spine.py --topo leaf_spine,8,2 --switch embedded --controller serene --test pingall

The workers are divided among the racks in order and as evenly as possible (serene/racks.py). Worker w is host h(w + 1)
with address 10.0.0.(w + 1); from the 128th host on, addresses continue at 10.0.1.0. A worker with number i in its rack
is at port i + 1 of its leaf. A leaf's port 33 is the uplink. Rack r's leaf is leaf(r + 1), at port r + 1 of the root.
If there is a server, it is the host after the last worker, in the first rack.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

# `mn --custom FILE` executes this file without __file__, so the code object's file name locates the package `serene`.
if "__file__" not in globals():
    _above = os.path.dirname(os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename)))  # may be `serene`
    sys.path.insert(0, _above if os.path.isdir(os.path.join(_above, "serene")) else os.path.dirname(_above))

from mininet.topo import Topo

from serene.topologies.nodes import UPLINK, Bmv2Switch, Bridge, EmbeddedSwitch, SereneController
from serene.topologies.processes import NotReady
from serene.topologies.star import HostInterface, SwitchInterface

# The same as in serene/racks.py, which `mn` cannot import: the system's Python lacks its dependencies.
MAX_RACKS, RACK_WORKERS = 8, 32

SERVER = UPLINK + 1  # the leaf's port for the server's host
ROOT_DPID = "ff"  # Mininet would derive it from the number in a switch's name, but the root's name has none


def addresses(worker: int) -> tuple[str, str]:
    """A host's MAC and IP address. 10.0.0.128 to 255 are not used, because one of them is the switch's address."""
    high, low = (worker + 1) >> 7, (worker + 1) & 0x7F
    return f"02:00:00:00:{high:02x}:{low:02x}", f"10.0.{high}.{low}"


def links_at(sizes: Sequence[int], level: str) -> dict[int, str]:
    """The name of the link at each port of a switch in a fault file: a worker's number in the job, or ``rack0`` for an
    uplink. Empty for the root: an uplink's faults are injected at its leaf. sizes: workers in each rack. level: "root",
    "leaf1" and so on."""
    if level == "root":
        return {}
    rack = int(level.removeprefix("leaf")) - 1
    first = sum(sizes[:rack])
    return {number + 1: str(first + number) for number in range(sizes[rack])} | {UPLINK: f"rack{rack}"}


class LeafSpine(Topo):  # type: ignore[misc]
    """A tree of switches. ``workers``, ``racks``: their numbers; each worker has a host. ``link_mbit``,
    ``uplink_mbit``: rate of every host's link and of every uplink, in Mbit/s in each direction; None: unlimited.

    ``mtu`` and ``offload`` as in ``Star``. ``prefix``: begins the switches' names; the rest of a name is the switch's
    parameter ``level``. ``server``: whether the first rack has one more host, with a link like a worker's. Raises
    NotReady.
    """

    def build(
        self,
        workers: int = 8,
        racks: int = 2,
        link_mbit: float | None = None,
        uplink_mbit: float | None = None,
        mtu: int | None = None,
        offload: bool = False,
        prefix: str = "",
        server: bool = False,
        **unknown: Any,
    ) -> None:
        if unknown:  # Mininet's own command would only show a TypeError of Python's
            expected = "workers, racks, link_mbit, uplink_mbit, mtu, offload, prefix or server"
            raise NotReady(f"leaf_spine has no option {', '.join(unknown)}: expected {expected}")
        if not isinstance(racks, int) or not 1 <= racks <= MAX_RACKS:
            raise NotReady(f"{racks} racks: expected 1 to {MAX_RACKS}")
        if not isinstance(workers, int) or not racks <= workers <= racks * RACK_WORKERS:
            raise NotReady(f"{workers} workers in {racks} racks: expected {racks} to {racks * RACK_WORKERS}")
        host_rate, uplink_rate = ({"bw": rate} if rate else {} for rate in (link_mbit, uplink_mbit))
        root = self.addSwitch(f"{prefix}root", dpid=ROOT_DPID, level="root")
        worker = 0
        for rack in range(racks):
            size = workers // racks + (rack < workers % racks)
            leaf = self.addSwitch(f"{prefix}leaf{rack + 1}", level=f"leaf{rack + 1}")
            for port in range(1, size + 1):
                self._add_host(leaf, port, worker, mtu, offload, host_rate)
                worker += 1
            ends = {"mtu": mtu, **uplink_rate}
            self.addLink(
                leaf, root, port1=UPLINK, port2=rack + 1, cls1=SwitchInterface, cls2=SwitchInterface,
                params1=ends, params2=ends,
            )  # fmt: skip
        if server:
            self._add_host(f"{prefix}leaf1", SERVER, workers, mtu, offload, host_rate)

    def _add_host(
        self, leaf: str, port: int, number: int, mtu: int | None, offload: bool, rate: dict[str, float]
    ) -> None:
        mac, ip = addresses(number)
        host = self.addHost(f"h{number + 1}", ip=f"{ip}/16", mac=mac)
        self.addLink(
            host, leaf, port2=port, cls1=HostInterface, cls2=SwitchInterface,
            params1={"mtu": mtu, "offload": offload, **rate}, params2={"mtu": mtu, **rate},
        )  # fmt: skip


topos = {"leaf_spine": LeafSpine}
switches = {"embedded": EmbeddedSwitch, "bmv2": Bmv2Switch, "bridge": Bridge}
controllers = {"serene": SereneController}
