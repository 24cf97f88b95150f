"""The networks of `make bench`: one around our switch, and one with the same hosts and links around a Linux bridge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mininet.net import Mininet

from serene.controller.http.client import ControllerClient
from serene.experiments.performance.parts import Json, Popen, run_parts
from serene.experiments.run.network import MininetNetwork
from serene.experiments.run.settings import check
from serene.process.interrupts import held
from serene.topologies.nodes import Bridge
from serene.topologies.processes import set_up_turn
from serene.topologies.star import Star


def in_hosts(net: Any) -> Popen:
    """Starts processes in the hosts of a Mininet network: worker w's in host h(w + 1)."""
    return lambda worker, command, **options: net[f"h{worker + 1}"].popen(list(command), **options)


@contextmanager
def started(topology: Any, switch: Any, controllers: Sequence[Any] = (), patience_s: float = 120.0) -> Iterator[Any]:
    """A Mininet network whose switches, of this kind, have started, until the end of the block. patience_s: while
    another network is set up. Raises NotReady."""
    net = Mininet(topo=topology, controller=None, build=False, switch=switch)
    try:
        with held(), set_up_turn(patience_s):  # a node that is interrupted in a command takes no other one
            net.build()
            for each in net.switches:
                each.start([*controllers])
        yield net
    finally:
        net.stop()


@contextmanager
def bridge_hosts(workers: int, link_mbit: float, program: str) -> Iterator[Popen]:
    """The hosts of a `Star` around a Linux bridge, for programs that exchange among themselves. program: with whose
    MTU."""
    mtu = check(workers=workers, link_mbit=link_mbit, program=program, out=Path("none")).mtu
    with started(Star(workers, link_mbit=link_mbit, mtu=mtu, switch="b1", offload=True), Bridge) as net:
        yield in_hosts(net)


def serene_network(target: str, program: str, workers: int, link_mbit: float | None, work: Path) -> MininetNetwork:
    """A run's network, without a run. work: a directory for logs. Raises SereneError."""
    settings = check(
        target=target, workers=workers, steps=1, link_mbit=link_mbit, compute_ms=0, program=program, out=work / "none"
    )
    return MininetNetwork(settings, work)


def with_job(
    network: MininetNetwork, parts: Mapping[int, tuple[str, Json]], work: Path, timeout_s: float
) -> list[Json]:
    """Creates a BSP job for all workers and runs their parts; see `run_parts`."""
    with ControllerClient(network.url) as controller:
        controller.create_job(network.settings.workers, network.settings.strategy)
        return run_parts(network.popen, parts, work, timeout_s)
