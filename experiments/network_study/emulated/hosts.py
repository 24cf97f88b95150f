"""The program in each host of the emulated network, which does the host's part of an exchange as often as it is told.

python -m serene.experiments.network_study.emulated.hosts OPTIONS

It prints ``ready``. For each exchange it reads a line, the time to begin on the machine's monotonic clock, and prints a
line of JSON: when it had its sum, when each of its steps ended, and how long it waited for a processor. If there is a
barrier after steps, it prints ``step`` after each but the last and goes on when it has read a line.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from serene.client import Client, UdpTransport
from serene.experiments.network_study.emulated.plan import Emulated
from serene.experiments.network_study.emulated.rules import BYTES, Flow

PORT = 24200
ARRIVED = b"."
UDP_PORT, INCARNATION = 40000, 1  # of every worker, as the switches admit them
CONNECT_S = 120.0
STEP = "step"


def gradient(host: int, values: int) -> np.ndarray:
    """A host's gradient, float32[values]: whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(host).integers(-8, 9, values).astype(np.float32)


class Way(Protocol):
    """How a host exchanges: over TCP with other hosts, or through switches."""

    def exchange(self, mine: np.ndarray, stepped: Callable[[], None]) -> np.ndarray:
        """The sum of all workers' values, float32[values]. mine: this host's. stepped: called after each step."""

    def waited_s(self) -> float:
        """Seconds that this process has waited for a processor so far, all its threads together."""


class OverTcp:
    """Exchanges by flows over TCP, step by step: a step is over for a host when all flows to it and from it have
    arrived. Each pair of a sender and a receiver has a connection, on which the receiver acknowledges each flow with a
    byte.

    steps: the flows of all hosts. addresses: IP addresses, by host.
    """

    def __init__(self, host: int, steps: Sequence[Sequence[Flow]], addresses: Sequence[str]) -> None:
        self._host = host
        self._waited: list[float] = []  # seconds that each thread that has ended waited for a processor
        self._steps = [[flow for flow in step if host in (flow.source, flow.target)] for step in steps]
        targets = {flow.target for step in self._steps for flow in step if flow.source == host}
        sources = {flow.source for step in self._steps for flow in step if flow.target == host}
        self._to, self._from = _connect(host, targets, sources, addresses)

    def exchange(self, mine: np.ndarray, stepped: Callable[[], None]) -> np.ndarray:
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
    """Exchanges through leaves and a root that add up, as a worker of their job."""

    def __init__(self, host: int, values: int) -> None:
        self._client = Client(UdpTransport(port=UDP_PORT), 0, host, values, incarnation=INCARNATION)
        self._client.join(CONNECT_S)

    def exchange(self, mine: np.ndarray, stepped: Callable[[], None]) -> np.ndarray:
        result = np.asarray(self._client.exchange(mine).delta)
        stepped()
        return result

    def waited_s(self) -> float:
        return _waited_s()


def _waited_s() -> float:
    """Seconds that this thread has waited for a processor, by the kernel's count."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


class Steps:
    """Notes when steps end, in seconds since ``begin``. barriers: the number of steps, if hosts wait for each other
    after each; else 0."""

    def __init__(self, begin: float, barriers: int) -> None:
        self.ended_s: list[float] = []
        self._begin, self._barriers = begin, barriers

    def ended(self) -> None:
        self.ended_s.append(time.monotonic() - self._begin)
        if len(self.ended_s) < self._barriers:
            print(STEP, flush=True)
            sys.stdin.readline()


def main(options: dict[str, Any]) -> int:
    emulated, host = Emulated(**options["emulated"]), int(options["host"])
    steps = emulated.flows()
    way: Way
    way = ThroughSwitches(host, emulated.values) if steps is None else OverTcp(host, steps, emulated.addresses)
    workers = emulated.workers
    mine = gradient(host, emulated.values) if host in workers else np.zeros(emulated.values, np.float32)
    total = np.sum([gradient(worker, emulated.values) for worker in workers], axis=0, dtype=np.float32)
    print("ready", flush=True)
    while line := sys.stdin.readline():
        begin = float(line)
        time.sleep(max(begin - time.monotonic(), 0))
        waited, clock = way.waited_s(), Steps(begin, len(steps) if emulated.barrier and steps is not None else 0)
        result = way.exchange(mine, clock.ended)
        seconds = time.monotonic() - begin
        waited = way.waited_s() - waited
        if host in workers and not np.array_equal(result, total):
            raise SystemExit(f"host {host}: a sum is wrong by {np.abs(result - total).max():g}")
        print(json.dumps({"seconds": seconds, "waited_s": waited, "ended_s": clock.ended_s}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(json.loads(sys.argv[1])))
