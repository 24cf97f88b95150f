"""Measures exchanges on an emulated Clos network of Mininet hosts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from mininet.node import Switch

from serene.errors import SereneError
from serene.experiments.network_study.emulated.hosts import Meetings, exchanges
from serene.experiments.network_study.emulated.plan import EMULATED, Emulated
from serene.experiments.network_study.emulated.switch import forward
from serene.experiments.network_study.methods import METHODS
from serene.experiments.performance.networks import started
from serene.experiments.shared import together
from serene.experiments.shared.measurements import Row
from serene.process.interrupts import held
from serene.topologies.clos import Clos
from serene.topologies.nodes import Router

RATIOS = (1.0, 0.25)
LINK_MBIT = 4.0  # so low that two cores can carry what some 64 links do
VALUES = 125_000  # 500 kB, which take a link one second
REPEATS = 3
FLAT = "flat-butterfly"
READY_S = 240.0
# An exchange may take PATIENCE times the time that the simulation predicts, and PATIENCE_S more.
PATIENCE, PATIENCE_S = 20.0, 120.0


class Aggregating(Switch):  # type: ignore[misc]
    """A node for one of the switches that add up. Spines that are not needed for the tree do nothing."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **{**params, "inNamespace": True})

    def start(self, controllers: list[Any]) -> None:
        """Does nothing: `measure` starts the programs, when all nodes are there."""


def measure(emulated: Emulated, repeats: int = REPEATS) -> Row:
    """Builds the network, has its hosts exchange ``repeats`` times, and returns what was measured and simulated. Raises
    SereneError or NotReady."""
    adds_up = METHODS[emulated.method].in_network
    simulated_s = emulated.simulated_s()
    topology = Clos(emulated.ports, emulated.leaves, emulated.ratio, emulated.link_mbit, emulated.small_first)
    with started(topology, Aggregating if adds_up else Router, patience_s=READY_S) as net:
        racks: dict[str, int | None] = {f"leaf{leaf + 1}": leaf for leaf in range(emulated.leaves)} if adds_up else {}
        racks |= {"spine1": None} if adds_up else {}
        hosts = [f"h{host + 1}" for host in range(emulated.network.hosts)]
        meetings = Meetings(len(hosts), len(racks))
        calls: dict[str, Callable[[], Any]] = {
            name: partial(exchanges, emulated, host, net[name].pid, repeats, meetings)
            for host, name in enumerate(hosts)
        }
        for name, rack in racks.items():
            wanted = emulated.leaves if rack is None else emulated.ports // 2 + 1
            ports = {port: each.name for port, each in net[name].intfs.items() if 0 < port <= wanted}
            calls[name] = partial(forward, emulated, rack, net[name].pid, ports, meetings)
        with held():
            for name in hosts if adds_up else ():  # a default route, which leads to the switch's address
                net[name].cmd("ip route replace default dev", net[name].defaultIntf())
        found = together.results(calls, READY_S + (1 + repeats) * (PATIENCE_S + PATIENCE * simulated_s))
    if any(dropped := [found[name] for name in racks]):
        raise SereneError(f"switches have dropped packets: {dropped}")
    slowest = [max(each, key=lambda one: one.seconds) for each in zip(*(found[name] for name in hosts), strict=True)]
    seconds = [each.seconds for each in slowest]
    return {
        "hosts": len(hosts), "simulated_s": simulated_s, "emulated_s": median(seconds), "samples_s": seconds,
        "idle": min(each.idle for each in slowest),
        "waited_s": max(each.waited_s for name in hosts for each in found[name]),
    }  # fmt: skip


def questions() -> list[Emulated]:
    """What is measured: every method as hosts do it; and the flat butterfly, in which data goes both ways over every
    link, also with acknowledgements before data and with a barrier after each step, as the simulation has it."""
    asked = [(method, False, False) for method in EMULATED]
    asked += [(FLAT, True, False), (FLAT, True, True)]
    return [
        Emulated(method, ratio, LINK_MBIT, VALUES, small_first=small_first, barrier=barrier)
        for ratio in RATIOS
        for method, small_first, barrier in asked
    ]
