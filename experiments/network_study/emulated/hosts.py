"""What each host of the emulated network does: its part of an exchange, several times."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serene.client import Client, UdpTransport
from serene.errors import SereneError
from serene.experiments.network_study.emulated.plan import BYTES, Emulated, Flow
from serene.experiments.run.forked import enter_network
from serene.experiments.shared.together import CONTEXT
from serene.sim.hosts import Host

PORT = 24200
ARRIVED = b"."
CONNECT_S = 120.0


def gradient(host: int, values: int) -> np.ndarray:
    """A host's gradient, float32[values]: whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(host).integers(-8, 9, values).astype(np.float32)


class OverTcp:
    """Exchanges by flows over TCP, step by step: a step is over for a host when all flows to it and from it have
    arrived. Each pair of a sender and a receiver has a connection, on which the receiver acknowledges each flow with a
    byte.

    steps: the flows of all hosts. addresses: IP addresses, by host. exchange: returns the sum of all workers' values,
    float32[values], and calls ``stepped`` after each step. waited_s: seconds that all threads together have waited for
    a processor so far.
    """

    def __init__(self, host: int, steps: Sequence[Sequence[Flow]], addresses: Sequence[str]) -> None:
        self._host = host
        self._waited: list[float] = []  # seconds that each thread that has ended waited for a processor
        self._steps = [[flow for flow in step if host in (flow.source, flow.target)] for step in steps]
        targets = {flow.target for step in self._steps for flow in step if flow.source == host}
        sources = {flow.source for step in self._steps for flow in step if flow.target == host}
        self._to, self._from = _connect(host, targets, sources, addresses)

    def exchange(self, mine: np.ndarray, stepped: Callable[[], object]) -> np.ndarray:
        result: np.ndarray = mine.copy()
        for step in self._steps:
            arrived: dict[int, np.ndarray] = {}
            threads = []
            for flow in step:
                if flow.source == self._host:
                    data = result[flow.first : flow.first + flow.count].tobytes()
                    threads.append(threading.Thread(target=self._send, args=(flow, data)))
                else:
                    threads.append(threading.Thread(target=self._receive, args=(flow, arrived)))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for flow in step:
                if flow.target == self._host:
                    part = slice(flow.first, flow.first + flow.count)
                    result[part] = arrived[flow.source] if flow.whole else result[part] + arrived[flow.source]
            stepped()
        return result

    def waited_s(self) -> float:
        return _waited_s() + sum(self._waited)

    def _send(self, flow: Flow, data: bytes) -> None:
        there = self._to[flow.target]
        there.sendall(data)
        if there.recv(1) != ARRIVED:
            raise ConnectionError(f"host {flow.target} has closed its connection")
        self._waited.append(_waited_s())

    def _receive(self, flow: Flow, arrived: dict[int, np.ndarray]) -> None:
        source = self._from[flow.source]
        data = bytearray(flow.count * BYTES)
        view, got = memoryview(data), 0
        while got < len(data):
            more = source.recv_into(view[got:])
            if not more:
                raise ConnectionError(f"host {flow.source} has closed its connection")
            got += more
        source.sendall(ARRIVED)
        arrived[flow.source] = np.frombuffer(data, np.float32)
        self._waited.append(_waited_s())


Sockets = dict[int, socket.socket]


def _connect(host: int, targets: set[int], sources: set[int], addresses: Sequence[str]) -> tuple[Sockets, Sockets]:
    """Connections to the targets, and from the sources, which send their number first. Raises OSError."""
    calling: Sockets = {}
    called: Sockets = {}
    with socket.create_server((addresses[host], PORT), backlog=len(addresses)) as listener:
        until = time.monotonic() + CONNECT_S
        for target in sorted(targets):
            calling[target] = _call(addresses[target], until)
            calling[target].sendall(host.to_bytes(2, "big"))
        listener.settimeout(CONNECT_S)
        while len(called) < len(sources):
            caller, _ = listener.accept()
            called[int.from_bytes(caller.recv(2, socket.MSG_WAITALL), "big")] = caller
    for each in (*calling.values(), *called.values()):
        each.settimeout(None)
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return calling, called


def _call(address: str, until: float) -> socket.socket:
    """A connection to a host that may not listen yet. until: in monotonic seconds. Raises OSError."""
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=CONNECT_S)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


class ThroughSwitches:
    """As `OverTcp`, through leaves and a root that add up, as a worker of their job."""

    def __init__(self, host: int, values: int) -> None:
        self._client = Client(UdpTransport(port=Host.udp_port), 0, host, values, incarnation=Host.incarnation)
        self._client.join(CONNECT_S)

    def exchange(self, mine: np.ndarray, stepped: Callable[[], object]) -> np.ndarray:
        result = np.asarray(self._client.exchange(mine).delta)
        stepped()
        return result

    def waited_s(self) -> float:
        return _waited_s()


def _waited_s() -> float:
    """Seconds that this thread has waited for a processor, by the kernel's count."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


class Meetings:
    """Where the processes of a measurement wait for each other. all: hosts and switches. hosts: after a step.
    exchange: hosts, before each exchange, whose beginning in monotonic seconds is then ``began``."""

    def __init__(self, hosts: int, switches: int) -> None:
        self.all, self.hosts = CONTEXT.Barrier(hosts + switches), CONTEXT.Barrier(hosts)
        self.exchange = CONTEXT.Barrier(hosts, self._begin)
        self._began: Any = CONTEXT.Value("d")

    def _begin(self) -> None:
        self._began.value = time.monotonic()

    @property
    def began(self) -> float:
        return float(self._began.value)


@dataclass(frozen=True)
class Exchanged:
    """An exchange as a host has seen it. waited_s: for a processor. idle: the share of the time, 0 to 1, in which
    processors of this machine were idle."""

    seconds: float
    waited_s: float
    idle: float


def exchanges(emulated: Emulated, host: int, node: int, repeats: int, meetings: Meetings) -> list[Exchanged]:
    """What the process of a host does, and what it has measured. node: a process in the host's network. Raises
    SereneError or OSError."""
    enter_network(node)
    steps, workers = emulated.flows(), emulated.workers
    mine = gradient(host, emulated.values) if host in workers else np.zeros(emulated.values, np.float32)
    total = np.sum([gradient(worker, emulated.values) for worker in workers], axis=0, dtype=np.float32)
    meetings.all.wait()
    way: OverTcp | ThroughSwitches
    way = ThroughSwitches(host, emulated.values) if steps is None else OverTcp(host, steps, emulated.addresses)
    found = []
    for _ in range(1 + repeats):
        meetings.exchange.wait()
        waited, processors = way.waited_s(), _processors()
        result = way.exchange(mine, meetings.hosts.wait if emulated.barrier else lambda: None)
        seconds = time.monotonic() - meetings.began
        found.append(Exchanged(seconds, way.waited_s() - waited, _idle(processors, _processors())))
        if host in workers and not np.array_equal(result, total):
            raise SereneError(f"a sum is wrong by {np.abs(result - total).max():g}")
    meetings.all.wait()
    return found[1:]  # the first one warms up


def _processors() -> list[int]:
    """Time of all processors together, in ticks: user, nice, system, idle, waiting for a disk and so on."""
    return [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]


def _idle(before: Sequence[int], after: Sequence[int]) -> float:
    """The share of the time between two `_processors` in which processors were idle, 0 to 1."""
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return (spent[3] + spent[4]) / max(sum(spent), 1)
