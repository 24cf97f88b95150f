"""N workers around one switch. Also for Mininet's own command:

    sudo mn --custom topologies/star.py --topo star,4 --switch embedded --controller serene --test pingall

Worker w is host h(w + 1) at port w + 1, with address 10.0.0.(w + 1).
"""

from __future__ import annotations

import os
import sys
from typing import Any

# `mn --custom FILE` executes this file without __file__, so the code object's file name locates the package `serene`.
if "__file__" not in globals():
    _above = os.path.dirname(os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename)))  # may be `serene`
    sys.path.insert(0, _above if os.path.isdir(os.path.join(_above, "serene")) else os.path.dirname(_above))

from mininet.link import Intf
from mininet.topo import Topo

from serene.topologies.nodes import Bmv2Switch, EmbeddedSwitch, SereneController
from serene.topologies.processes import NotReady

MAX_HOSTS = 253  # in 10.0.0.0/24, where the switch is 10.0.0.254


class SwitchInterface(Intf):  # type: ignore[misc]
    """A switch's end of a link. It has no IPv6, so that the kernel sends no packets of its own. ``bw``: limit of its
    rate, in Mbit/s. ``burst``: tc's burst size. ``small_first``: whether packets of less than 128 bytes, such as
    acknowledgements, overtake waiting packets. Raises NotReady if tc cannot limit the rate."""

    def config(
        self, mtu: int | None = None, bw: float | None = None, *, burst: str = "15k", small_first: bool = False,
        **params: Any,
    ) -> Any:  # fmt: skip
        result = super().config(**params)
        self.cmd("sysctl -qw", f"net.ipv6.conf.{self.name}.disable_ipv6=1")
        if mtu is not None:
            self.cmd("ip link set dev", self, "mtu", str(mtu))
        if bw is not None:
            # Not Mininet's TCIntf, which sets neither quantum nor cburst. From about 20 Mbit/s, tc's default quantum
            # causes a warning. With its default cburst, the delay of the kernel's timer lowers the rate: at 1 Gbit/s by
            # 5 %.
            output = self.cmd("tc qdisc add dev", self, f"root handle 5: htb default {3 if small_first else 1}")
            output += self._class("parent 5: classid 5:1", bw, burst)
            if small_first:
                output += self._class("parent 5:1 classid 5:2", bw / 10, burst, f"ceil {bw}Mbit prio 0")
                output += self._class("parent 5:1 classid 5:3", bw * 9 / 10, burst, f"ceil {bw}Mbit prio 1")
                short = "u32 match u16 0x0000 0xff80 at 2"  # the length, in the IP header
                output += self.cmd("tc filter add dev", self, f"parent 5: protocol ip {short} flowid 5:2")
            if output.strip():
                raise NotReady(
                    f"cannot limit the rate of {self.name} to {bw:g} Mbit/s (no sch_htb here?): {output.strip()}"
                )
        return result

    def _class(self, where: str, bw: float, burst: str, more: str = "") -> str:
        rate = f"htb rate {bw}Mbit {more} burst {burst} cburst {burst} quantum 15000"
        return str(self.cmd("tc class add dev", self, where, rate))


class HostInterface(SwitchInterface):
    """A host's end of a link. Without ``offload`` the host computes checksums and segments packets itself, for a switch
    that forwards bytes unchanged."""

    def config(
        self,
        mtu: int | None = None,
        bw: float | None = None,
        offload: bool = False,
        **params: Any,
    ) -> Any:
        result = super().config(mtu, bw, **params)
        if not offload:
            self.cmd("ethtool -K", self, "tx off rx off tso off gso off gro off sg off")
        return result


class Star(Topo):  # type: ignore[misc]
    """One switch and a host for each worker. ``workers``: their number. ``link_mbit``: rate of each link in each
    direction; None: unlimited. ``mtu``: in bytes, by default the kernel's; 9000 for jumbo frames.

    ``offload``: whether hosts leave checksums and segmentation to the switch. The embedded switch and a Linux bridge
    accept large buffers with incomplete checksums; BMv2 and the shim do not. Raises NotReady.
    """

    def build(
        self,
        workers: int = 4,
        link_mbit: float | None = None,
        mtu: int | None = None,
        switch: str = "s1",
        offload: bool = False,
        **unknown: Any,
    ) -> None:
        if unknown:  # Mininet's own command would only show a TypeError of Python's
            raise NotReady(
                f"star has no option {', '.join(unknown)}: expected workers, link_mbit, mtu, switch or offload"
            )
        if not isinstance(workers, int) or not 1 <= workers <= MAX_HOSTS:
            raise NotReady(f"star of {workers}: expected 1 to {MAX_HOSTS} workers")
        self.addSwitch(switch)
        shaped = {"bw": link_mbit} if link_mbit else {}
        for worker in range(1, workers + 1):
            host = self.addHost(f"h{worker}", ip=f"10.0.0.{worker}/24", mac=f"02:00:00:00:00:{worker:02x}")
            self.addLink(
                host, switch, port2=worker, cls1=HostInterface, cls2=SwitchInterface,
                params1={"mtu": mtu, "offload": offload, **shaped}, params2={"mtu": mtu, **shaped},
            )  # fmt: skip


topos = {"star": Star}
switches = {"embedded": EmbeddedSwitch, "bmv2": Bmv2Switch}
controllers = {"serene": SereneController}
