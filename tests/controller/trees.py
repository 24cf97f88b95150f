"""Trees of real switches, for tests of the controller: leaves, a root, and the links between them."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from serene.client import Client
from serene.client.session import leaving, session
from serene.client.transport.transport import FrameTransport
from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import JobState
from serene.controller.switch.tree import Tree as Fabric
from serene.racks import Racks
from serene.strategy import BSP
from serene.topologies.processes import bmv2
from tests.controller.coordinating import commanding, until
from tests.controller.hosts import FrameLink, Host, udp_end
from tests.controller.processes import ControllerProcess, Switch, embedded, own_network
from tests.ports import some_port, some_ports

UPLINK = 33
VALUES = 700  # of a worker's gradient

T = TypeVar("T")


class UdpSwitch(Switch):
    """An embedded switch. ports, peers: as for `embedded`."""

    def __init__(self, log: Path, ports: dict[int, int], peers: dict[int, int]) -> None:
        self.ports, self.peers = ports, peers
        super().__init__(embedded(ports, peers), f"127.0.0.1:{some_port()}", log, warm=True)


class Tree:
    """A leaf for each rack, with a port for each of its workers, and the root."""

    def __init__(self, folder: Path, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self._members: list[Client] = []
        ports = iter(some_ports(2 * sum(sizes) + 2 * len(sizes), socket.SOCK_DGRAM))
        downlinks = {rack + 1: next(ports) for rack in range(len(sizes))}
        uplinks = {rack + 1: next(ports) for rack in range(len(sizes))}
        self.root = UdpSwitch(folder / "root.log", downlinks, uplinks)
        self.leaves: list[UdpSwitch] = []
        try:
            for rack, size in enumerate(sizes):
                here = {port: next(ports) for port in range(1, size + 1)} | {UPLINK: uplinks[rack + 1]}
                peers = {port: next(ports) for port in range(1, size + 1)} | {UPLINK: downlinks[rack + 1]}
                self.leaves.append(UdpSwitch(folder / f"leaf{rack + 1}.log", here, peers))
        except BaseException:
            self.stop()
            raise

    @property
    def switches(self) -> list[UdpSwitch]:
        return [self.root, *self.leaves]

    @property
    def option(self) -> str:
        """The value of ``--switch`` of ``serenectl up``."""
        leaves = [f"leaf{rack + 1}={leaf.grpc}" for rack, leaf in enumerate(self.leaves)]
        return ",".join([f"root={self.root.grpc}", *leaves])

    def host(self, rack: int, place: int) -> Host:
        """A host at the port of a worker. Only one at a time can have it."""
        leaf = self.leaves[rack]
        link = FrameLink(udp_end(leaf.peers[place + 1], leaf.ports[place + 1]))
        return Host(
            32 * rack + place, link, ip=f"10.0.{rack}.{place + 1}", mac=f"02:00:00:00:{rack:02x}:{place + 1:02x}"
        )

    def transport(self, rack: int, place: int, lane: int = 0) -> FrameTransport:
        """A worker's transport, at its port. lane: another number after a restart, for another UDP port."""
        leaf = self.leaves[rack]
        here, there = ("127.0.0.1", leaf.peers[place + 1]), ("127.0.0.1", leaf.ports[place + 1])
        number = sum(self.sizes[:rack]) + place
        return FrameTransport(number, local=here, switch=there, udp_port=41000 + number + 1000 * lane)

    def client(
        self, rack: int, place: int, vector_length: int, job: int = 0, claims: int | None = None, lane: int = 0
    ) -> Client:
        """Returns a worker's client. claims: the rack that its HELLO names, None for none."""
        return Client(self.transport(rack, place, lane), job, place, vector_length, rack=claims)

    def members(self, vector_length: int) -> list[Client]:
        """The clients of a job that has all places; they are closed when the tree stops."""
        places = [Racks(self.sizes).place(number) for number in range(sum(self.sizes))]
        made = [self.client(*place, vector_length) for place in places]
        self._members += made
        return made

    def stop(self) -> None:
        for member in self._members:
            member.close()
        for switch in self.switches:
            switch.kill()


@contextmanager
def bmv2_tree(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """A tree of BMv2's switches with veth pairs, until the end of the block. Yields the value of ``--switch`` of
    ``serenectl up``. Hosts are numbered through all racks, with interfaces h1, h2 and so on."""
    with ExitStack() as stack:
        stack.enter_context(own_network())
        hosts = iter(range(1, sum(sizes) + 1))
        interfaces: dict[str, dict[int, str]] = {"root": {}}
        for rack, size in enumerate(sizes):
            down, up = f"d{rack + 1}", f"u{rack + 1}"
            subprocess.run(["ip", "link", "add", down, "type", "veth", "peer", "name", up], check=True)
            for end in (down, up):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                subprocess.run(["ip", "link", "set", end, "up"], check=True)
            interfaces["root"][rack + 1] = down
            interfaces[f"leaf{rack + 1}"] = {place + 1: f"s{next(hosts)}" for place in range(size)} | {UPLINK: up}
        named = []
        for name, ports in interfaces.items():
            address = f"127.0.0.1:{some_port()}"
            command = bmv2(some_port()) + [f"-i{port}@{interface}" for port, interface in ports.items()]
            stack.callback(Switch(command, address, folder / f"{name}.log", warm=False).kill)
            named.append(f"{name}={address}")
        yield ",".join(named)


def controller(tree: Tree, log: Path, *options: str) -> ControllerProcess:
    """``serenectl up`` over a tree."""
    return ControllerProcess.of(tree.option, log, "--ports", f"1-{max(tree.sizes)}", *options)


def adding_to(total: np.ndarray) -> Callable[[np.ndarray], None]:
    """Returns a function for `Session` that adds each read to ``total``, float32[V]."""

    def apply(delta: np.ndarray) -> None:
        np.add(total, delta, out=total)

    return apply


def give_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of this process that leaves gives an unreachable root up after a second, not after 7.5 s."""
    for module in (leaving, session):
        monkeypatch.setattr(module, "PATIENCE_S", 1.0)
    monkeypatch.setattr(leaving, "WARN_AFTER_S", 0.1)


def fabric_of(coordinator: Coordinator) -> Fabric:
    assert isinstance(coordinator.switch, Fabric)
    return coordinator.switch


@asynccontextmanager
async def job_over(
    tree: Tree, switch: str | None = None, **options: Any
) -> AsyncIterator[tuple[Coordinator, Fabric, list[Client]]]:
    """A coordinator of the tree, and a job all of whose workers have joined. switch: the value of
    ``--switch``. options: of `Coordinator.create_job`."""
    async with commanding(tree.option if switch is None else switch, max(tree.sizes)) as coordinator:
        slots = options.get("pool_slots")
        members = tree.members(VALUES if slots is None else slots * coordinator.jobs.lanes)
        strategy = options.pop("strategy", BSP())
        await coordinator.create_job(sum(tree.sizes), strategy, racks=tree.sizes, **options)
        await at_once(members, Client.join)
        await until(lambda: coordinator.jobs[0].state is JobState.RUNNING, "the coordinator, too, has them as members")
        yield coordinator, fabric_of(coordinator), members


async def at_once(members: list[Client], what: Callable[[Client], T]) -> list[T]:
    """Runs the call for every worker, each in its own thread."""
    return list(await asyncio.gather(*(asyncio.to_thread(what, member) for member in members)))
