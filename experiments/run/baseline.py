"""A run without aggregation in the network: parameter servers over TCP, or gloo, around a Linux bridge; over racks,
around one in each and one above them.

The same hosts, links, data, stragglers and training loop as through the switch (EXCHANGE=server, sharded, gloo).
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.run import forked, results
from experiments.run.network import (
    Failed,
    Network,
    NetworkError,
    WorkerProcess,
    await_end,
    stop_mininet,
    stop_workers,
    worker_arguments,
)
from experiments.run.results import Counted, Work
from experiments.run.settings import Settings
from serene.interrupts import allowed
from serene.spawn import module
from topologies.processes import Background
from workers.baselines import ranges

PORT = 7000  # in a host of its own
POLL_S = 0.2
TOLD_EVERY_S = 5.0


class _BaselineNetwork(Network):
    """Places for workers and servers. A worker's number is its host's; the one server's host is the next."""

    @property
    def url(self) -> str:
        raise NetworkError("a baseline has no controller")

    @property
    def parts(self) -> dict[str, Background]:
        return {}

    def start_again(self, part: str) -> None:
        raise NetworkError("no part of a baseline starts again")

    def _worker_address(self, worker: int) -> list[str]:
        return []

    def start_process(self, place: int, command: Sequence[str], log: Path) -> WorkerProcess:
        """A worker or a server; it ends with the network."""
        environment = {"GLOO_SOCKET_IFNAME": self.interface(place)}
        with log.open("ab") as output:
            process = forked.start(log.stem, command, output, environment, self._host(place))
        self._workers.append(WorkerProcess(place, process, log))
        return self._workers[-1]

    def addresses(self, places: Sequence[int]) -> list[tuple[str, int]]:
        """Where servers at these places listen."""
        raise NotImplementedError

    def interface(self, worker: int) -> str:
        raise NotImplementedError


class BridgeNetwork(_BaselineNetwork):
    """Mininet hosts around a Linux bridge, or in racks, with links and uplinks like those of the switches."""

    def __init__(self, settings: Settings, work: Path) -> None:
        super().__init__(settings, work)
        self._net: Any = None

    def start(self) -> None:
        try:
            from mininet.log import setLogLevel
            from mininet.net import Mininet
        except ImportError:
            raise NetworkError("Mininet is not installed: run 'make setup', or 'make run-local' without it") from None
        from topologies.leaf_spine import LeafSpine
        from topologies.nodes import Bridge
        from topologies.star import Star

        setLogLevel("error")
        settings, server = self.settings, self.settings.exchange == "server"
        links = {"link_mbit": settings.link_mbit, "mtu": settings.mtu, "offload": True}
        if settings.racks == 1:
            topology = Star(settings.workers + server, switch="b1", **links)
        else:
            uplink = settings.uplink_mbit
            topology = LeafSpine(
                settings.workers, settings.racks, uplink_mbit=uplink, prefix="b", server=server, **links
            )
        self._net = Mininet(topo=topology, controller=None, build=False, switch=Bridge)
        self._net.build()
        for bridge in self._net.switches:
            bridge.start([])

    def stop(self) -> None:
        if self._net is not None:
            stop_mininet(self._net)
        self._net = None

    def _host(self, place: int) -> int:
        return int(self._net[f"h{place + 1}"].pid)

    def addresses(self, places: Sequence[int]) -> list[tuple[str, int]]:
        return [(self._net[f"h{place + 1}"].IP(), PORT) for place in places]

    def interface(self, worker: int) -> str:
        return f"h{worker + 1}-eth0"


class LoopbackNetwork(_BaselineNetwork):
    """All on loopback: no root, no links."""

    def __init__(self, settings: Settings, work: Path) -> None:
        super().__init__(settings, work)
        self._held: list[socket.socket] = []

    def start(self) -> None:
        """Nothing to be made."""

    def stop(self) -> None:
        for each in self._held:
            each.close()

    def addresses(self, places: Sequence[int]) -> list[tuple[str, int]]:
        """Ports that nobody else is given until the network ends: bound here, where with SO_REUSEADDR the process that
        listens there binds them, too."""
        found = []
        for _ in places:
            self._held.append(socket.socket())
            self._held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._held[-1].bind(("127.0.0.1", 0))
            found.append(self._held[-1].getsockname())
        return found

    def interface(self, worker: int) -> str:
        return "lo"


def train(settings: Settings, work: Work, console: Console) -> results.Results:
    """One run, from nothing to results; everything it started is gone when it returns or raises."""
    kind = BridgeNetwork if settings.mininet else LoopbackNetwork
    places = {"server": [settings.workers], "sharded": list(range(settings.workers)), "gloo": [0]}[settings.exchange]
    with allowed():
        forked.prepare(settings.exchange, settings.dataset, settings.data_dir)
    with kind(settings, work.directory) as network:
        addresses = network.addresses(places)
        servers = []
        if settings.exchange != "gloo":
            servers = list(_start_servers(settings, network, places, addresses, work.directory))
        workers = [_start_worker(settings, network, worker, addresses, work) for worker in range(settings.workers)]
        stopped: list[int] = []
        try:
            _wait(settings, workers, servers, console)
        except KeyboardInterrupt:
            stopped = stop_workers(workers)
            if any(not work.find(f"worker-{worker}.json").exists() for worker in range(settings.workers)):
                raise  # so early that a server may wait for workers for ever
            await_end(servers)
    applied = _counted_by(servers, work) if servers else None
    counted = Counted((), str(settings.strategy), applied, len(places))
    return results.collect(settings, work, counted, stopped=stopped)


def _start_servers(
    settings: Settings,
    network: _BaselineNetwork,
    places: Sequence[int],
    addresses: Sequence[tuple[str, int]],
    directory: Path,
) -> Iterator[WorkerProcess]:
    for place, (host, port), part in zip(places, addresses, ranges(settings.parameters, len(places)), strict=True):
        command = module(
            "workers.server", "--workers", str(settings.workers), "--strategy", settings.strategy_text,
            "--values", str(part.stop - part.start), "--listen", f"{host}:{port}",
            "--out", str(directory / f"server-{place}.json"),
        )  # fmt: skip
        yield network.start_process(place, command, directory / f"server-{place}.log")


def _start_worker(
    settings: Settings, network: _BaselineNetwork, worker: int, addresses: Sequence[tuple[str, int]], work: Work
) -> WorkerProcess:
    arguments = worker_arguments(
        settings, worker, 0, work.directory, out_else=work.spare, strategy=settings.strategy_text,
        servers=",".join(f"{host}:{port}" for host, port in addresses),
    )  # fmt: skip
    command = module("workers.train", *arguments)
    return network.start_process(worker, command, work.directory / f"worker-{worker}.log")


def _wait(
    settings: Settings, workers: Sequence[WorkerProcess], servers: Sequence[WorkerProcess], console: Console
) -> None:
    """Until all have ended well. Raises Failed as soon as one has not."""
    told = time.monotonic()
    under_way = True
    while under_way:
        under_way = any(process.poll() is None for process in (*workers, *servers))
        for name, processes in (("parameter server at host", servers), ("worker", workers)):
            for process in processes:
                if process.poll():
                    raise Failed(f"{name} {process.number} ended with status {process.poll()}:\n{process.error()}")
        if time.monotonic() - told >= TOLD_EVERY_S:
            told = time.monotonic()
            done = " ".join(str(worker.steps()) for worker in workers)
            console.print(f"{settings.strategy}: steps {done} of {settings.steps}", highlight=False)
        with allowed():
            time.sleep(POLL_S)  # the pace of the display


def _counted_by(servers: Sequence[WorkerProcess], work: Work) -> list[int]:
    """Contributions of each worker, by all servers together."""
    told = [json.loads((work.directory / f"server-{server.number}.json").read_text()) for server in servers]
    return [sum(of_worker) for of_worker in zip(*(each["contributions"] for each in told), strict=True)]
