"""A run of a baseline: EXCHANGE=server, sharded, rpc or gloo, without aggregation in the network.

Hosts, links, data, stragglers and training loop are those of a run through the switch. In place of the switch there is
a Linux bridge; with racks, a bridge for each rack and one above them.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from serene.experiments.run import forked, results
from serene.experiments.run.network import (
    Failed,
    Network,
    WorkerProcess,
    await_end,
    mininet,
    stop_workers,
    worker_arguments,
)
from serene.experiments.run.results import Counted, Work
from serene.experiments.run.settings import Settings
from serene.process.interrupts import allowed
from serene.process.spawn import module
from serene.strategy import to_text
from serene.workers.baselines import ranges

PORT = 7000  # of every server: each has a Mininet host's addresses to itself
POLL_S = 0.2
PRINT_EVERY_S = 5.0
ONE_SERVER = ("server", "rpc")  # exchanges with a server in a host of its own


class _BaselineNetwork(Network):
    """Hosts for workers and servers. Worker w is in host w; a single server is in the host after the last worker's."""

    def addresses(self, hosts: Sequence[int]) -> list[tuple[str, int]]:
        """Where servers in these hosts are to listen: IP address and port."""
        raise NotImplementedError

    def interface(self, host: int) -> str:
        """The network interface of a host."""
        raise NotImplementedError

    def start_process(
        self, name: str, host: int, command: Sequence[str], before: int = 0, **environment: str
    ) -> WorkerProcess:
        # By these gloo and PyTorch's RPC choose the interface.
        chosen = dict.fromkeys(("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"), self.interface(host))
        return super().start_process(name, host, command, before, **chosen, **environment)


class BridgeNetwork(_BaselineNetwork):
    """Mininet hosts around a Linux bridge, or around one in each rack, with the links and uplinks that switches
    have."""

    def start(self) -> None:
        server = self.settings.exchange in ONE_SERVER
        self._net = mininet(self.settings, _bridge, "b1", offload=True, server=server)
        self._net.build()
        for bridge in self._net.switches:
            bridge.start([])

    def addresses(self, hosts: Sequence[int]) -> list[tuple[str, int]]:
        return [(self._net[f"h{host + 1}"].IP(), PORT) for host in hosts]

    def interface(self, host: int) -> str:
        return f"h{host + 1}-eth0"


def _bridge(name: str, **params: Any) -> Any:
    from serene.topologies.nodes import Bridge  # which needs Mininet

    return Bridge(name, **params)


class LoopbackNetwork(_BaselineNetwork):
    """All processes on loopback: needs no root, and has no links whose rate could be set."""

    def __init__(self, settings: Settings, work: Path) -> None:
        super().__init__(settings, work)
        self._reserved: list[socket.socket] = []

    def start(self) -> None:
        """Does nothing: loopback is there."""

    def stop(self) -> None:
        for each in self._reserved:
            each.close()

    def addresses(self, hosts: Sequence[int]) -> list[tuple[str, int]]:
        """A port for each, bound here until the network ends, so that nobody else is given it. With SO_REUSEADDR the
        server can bind and listen on it nevertheless."""
        found = []
        for _ in hosts:
            self._reserved.append(socket.socket())
            self._reserved[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._reserved[-1].bind(("127.0.0.1", 0))
            found.append(self._reserved[-1].getsockname())
        return found

    def interface(self, host: int) -> str:
        return "lo"


def train(settings: Settings, work: Work, console: Console) -> results.Results:
    """Does one run and returns its results. Everything that it started has ended when it returns or raises. Raises
    Failed, NetworkError, DataError or Incomplete; KeyboardInterrupt if it was stopped and there is nothing to keep."""
    kind = BridgeNetwork if settings.mininet else LoopbackNetwork
    if settings.exchange in ONE_SERVER:
        hosts = [settings.workers]
    else:
        hosts = list(range(settings.workers)) if settings.exchange == "sharded" else [0]
    with allowed():
        forked.prepare(settings.exchange, settings.dataset, settings.data_dir)
    with kind(settings, work.directory) as network:
        addresses = network.addresses(hosts)
        servers = []
        if settings.exchange != "gloo":
            servers = list(_start_servers(settings, network, hosts, addresses, work.directory))
        workers = [_start_worker(settings, network, worker, addresses, work) for worker in range(settings.workers)]
        stopped: list[int] = []
        try:
            _wait(settings, workers, servers, console)
        except KeyboardInterrupt:
            stopped = stop_workers(workers)
            if any(not work.find(f"worker-{worker}.json").exists() for worker in range(settings.workers)):
                raise  # nothing to keep, and a server may still wait for workers that will not come
            await_end(servers)
    applied = _applied(servers, work) if servers else None
    counted = Counted((), str(settings.strategy), applied, len(hosts))
    return results.collect(settings, work, counted, stopped=stopped)


def _start_servers(
    settings: Settings,
    network: _BaselineNetwork,
    hosts: Sequence[int],
    addresses: Sequence[tuple[str, int]],
    directory: Path,
) -> Iterator[WorkerProcess]:
    for host, (ip, port), part in zip(hosts, addresses, ranges(settings.parameters, len(hosts)), strict=True):
        command = module(
            "serene.workers.server", "--workers", str(settings.workers), "--strategy", to_text(settings.strategy),
            "--values", str(part.stop - part.start), "--listen", f"{ip}:{port}",
            "--out", str(directory / f"server-{host}.json"), *(["--rpc"] if settings.exchange == "rpc" else []),
        )  # fmt: skip
        yield network.start_process(f"server-{host}", host, command)


def _start_worker(
    settings: Settings, network: _BaselineNetwork, worker: int, addresses: Sequence[tuple[str, int]], work: Work
) -> WorkerProcess:
    arguments = worker_arguments(
        settings, worker, 0, work.directory, out_else=work.spare, strategy=to_text(settings.strategy),
        servers=",".join(f"{ip}:{port}" for ip, port in addresses),
    )  # fmt: skip
    return network.start_worker(worker, arguments)


def _wait(
    settings: Settings, workers: Sequence[WorkerProcess], servers: Sequence[WorkerProcess], console: Console
) -> None:
    """Waits until all processes have ended, and prints how far the workers are. Raises Failed as soon as one ends with
    an error."""
    printed = time.monotonic()
    running = True
    while running:
        running = any(process.poll() is None for process in (*workers, *servers))
        for name, processes in (("parameter server at host", servers), ("worker", workers)):
            for process in processes:
                if process.poll():
                    raise Failed(f"{name} {process.number} ended with status {process.poll()}:\n{process.error()}")
        if time.monotonic() - printed >= PRINT_EVERY_S:
            printed = time.monotonic()
            done = " ".join(str(worker.steps()) for worker in workers)
            console.print(f"{settings.strategy}: steps {done} of {settings.steps}", highlight=False)
        with allowed():
            time.sleep(POLL_S)


def _applied(servers: Sequence[WorkerProcess], work: Work) -> list[int]:
    """Each worker's contributions, as all servers together have counted them."""
    counts = [json.loads((work.directory / f"server-{server.number}.json").read_text()) for server in servers]
    return [sum(of_worker) for of_worker in zip(*(each["contributions"] for each in counts), strict=True)]
