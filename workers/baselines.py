"""Exchanges that are not the switch's, for the same training loop: a parameter server over TCP, and gloo's all-reduce.

They take the place of `serene.client.Session`, with the same numbers (32-bit fixed point) and the same rules, so that a
run beside one through the switch differs in the network alone. Neither survives a worker or a server that goes away:
that is an error, on every worker.
"""

from __future__ import annotations

import datetime
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from typing_extensions import Self

from serene.client import NoAnswer, Update
from serene.errors import SereneError
from serene.fixedpoint import FixedPoint
from serene.interrupts import allowed
from serene.strategy import Strategy
from workers.messages import END, HELLO, PUSH, READ, REFUSED, receive_exactly

EXCHANGES = ("switch", "server", "sharded", "gloo")
RETRY_S = 0.1
_TCP_INFO_BYTES, _RETRANSMITTED, _SEGMENTS = 144, 100, 136  # <linux/tcp.h>: total_retrans; segs_out and segs_in


class ExchangeFailed(SereneError):
    """The other side went away, or never came."""


class HasWorkers(Protocol):
    """What joining tells."""

    @property
    def workers(self) -> int: ...


class Exchange(Protocol):
    """What the training loop needs of `serene.client.Session`, and of what takes its place."""

    facts: dict[str, Any]
    iteration: int
    reads_at_risk: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def join(self) -> HasWorkers: ...

    def exchange(self, gradient: np.ndarray) -> Update | None: ...

    def report(self, state: str, *, force: bool = False) -> None: ...

    def finish(self, timeout_s: float) -> bool: ...

    def abandon(self) -> None: ...

    def telemetry(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Place:
    """A worker's in its job. values: of the vector."""

    worker: int
    workers: int
    values: int


class Baseline(ABC):
    """What both have in common. apply: as `serene.client.Session`'s."""

    def __init__(self, place: Place, strategy: Strategy, apply: Callable[[np.ndarray], None]) -> None:
        self.place = place
        self.state = "joining"
        self.facts: dict[str, Any] = {"loss": None, "accuracy": None, "compute_s": 0.0}
        self.iteration = self.reads_at_risk = 0
        self._policy = strategy.compile(range(place.workers))
        self._apply = apply
        self._fixed = FixedPoint()
        self._messages = 1  # that a contribution takes
        self._sent = self._clipped = 0
        self._network_s = self._waiting_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    @abstractmethod
    def join(self) -> Place:
        """Until all workers are there. Raises NoAnswer or ExchangeFailed."""

    @abstractmethod
    def _read(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        """Contributes int32[values]; what came in since the last read, int32[values], how many contributions that is
        (gloo counts none: as many as there should be), and for how many seconds it waited for other workers."""

    @abstractmethod
    def finish(self, timeout_s: float) -> bool:
        """When all have done their steps, reads once more."""

    @abstractmethod
    def abandon(self) -> None:
        """Ends what is open."""

    def report(self, state: str, *, force: bool = False) -> None:
        """There is no controller that would listen; the state is kept."""
        self.state = state

    def exchange(self, gradient: np.ndarray) -> Update:
        """As `serene.client.Session.exchange`. Raises BadGradient or ExchangeFailed."""
        began = time.monotonic()
        values, clipped = self._fixed.quantise(gradient)
        self._sent += self._messages
        self._clipped += clipped
        with allowed():
            difference, contributions, waited = self._read(values)
        delta = self._fixed.dequantise(difference)
        network = max(time.monotonic() - began - waited, 0.0)
        self._apply(delta)
        at_risk = contributions > self._fixed.capacity
        self.iteration += 1
        self.reads_at_risk += at_risk
        self._network_s += network
        self._waiting_s += waited
        policy = self._policy
        return Update(
            delta=delta, contributions=contributions, epoch=1, round=self.iteration - 1, sync_mask=policy.sync_mask,
            staleness=policy.staleness, quorum=policy.quorum, read_mode=policy.read_mode, members=policy.members,
            network_s=network, waiting_s=waited, retransmissions=0, clipped=clipped, overflow_possible=at_risk,
        )  # fmt: skip

    def telemetry(self) -> dict[str, Any]:
        return {
            "iteration": self.iteration, **self.facts, "network_s": self._network_s, "waiting_s": self._waiting_s,
            "clipped_values": self._clipped, "contributions_sent": self._sent,
            "retransmissions": None, "packets_sent": None, "packets_received": None,
        }  # fmt: skip


class ServerExchange(Baseline):
    """Through the parameter servers at these addresses, each with an equal range of the vector (workers/server.py)."""

    def __init__(
        self,
        place: Place,
        strategy: Strategy,
        apply: Callable[[np.ndarray], None],
        servers: Sequence[tuple[str, int]],
        join_timeout_s: float,
    ) -> None:
        super().__init__(place, strategy, apply)
        self._servers = servers
        self._messages = len(servers)
        self._join_timeout_s = join_timeout_s
        self._connections: list[socket.socket] = []
        self._counted = (0, 0, 0)  # of TCP, once it is closed
        self._held = np.zeros(place.values, np.int32)
        self._held_total = 0
        self._new = np.empty(place.values, np.int32)
        self._ranges = ranges(place.values, len(servers))

    def join(self) -> Place:
        until = time.monotonic() + self._join_timeout_s
        for address, part in zip(self._servers, self._ranges, strict=True):
            connection = _connect(address, until)
            self._connections.append(connection)
            connection.sendall(HELLO.pack(self.place.worker, self.place.workers, part.stop - part.start))
        for address, connection in zip(self._servers, self._connections, strict=True):
            connection.settimeout(max(until - time.monotonic(), RETRY_S))
            try:
                count, _ = READ.unpack(receive_exactly(connection, READ.size))
            except TimeoutError:
                raise NoAnswer(f"not all workers came to the server at {address[0]}:{address[1]} in time") from None
            except OSError as error:
                raise ExchangeFailed(f"parameter server {address[0]}:{address[1]}: {error}") from error
            if count == REFUSED:
                raise ExchangeFailed(
                    f"the server at {address[0]}:{address[1]} serves another job, or has worker {self.place.worker}"
                )
            connection.settimeout(None)
        return self.place

    def _read(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        def push(connection: socket.socket, part: slice) -> None:
            connection.sendall(PUSH.pack(self.iteration))
            connection.sendall(values[part].data.cast("B"))

        return self._ask(push)

    def _ask(self, push: Callable[[socket.socket, slice], None]) -> tuple[np.ndarray, int, float]:
        totals, helds = [], []
        try:
            # Each worker begins with another server, or all would send to one of them at a time.
            ends = list(zip(self._connections, self._ranges, strict=True))
            first = self.place.worker % len(ends)
            ends = ends[first:] + ends[:first]
            for connection, part in ends:
                push(connection, part)
            for connection, part in ends:
                total, held = READ.unpack(receive_exactly(connection, READ.size))
                receive_exactly(connection, self._new[part].nbytes, self._new[part].data.cast("B"))
                totals.append(total)
                helds.append(held)
        except OSError as error:
            raise ExchangeFailed(f"a parameter server, or another worker, went away: {error}") from error
        difference = self._new - self._held
        self._held[:] = self._new
        contributions = max(totals) - self._held_total
        self._held_total = max(totals)
        return difference, contributions, max(helds)

    def finish(self, timeout_s: float) -> bool:
        for connection in self._connections:
            connection.settimeout(timeout_s)
        difference, contributions, _ = self._ask(lambda connection, part: connection.sendall(PUSH.pack(END)))
        self._apply(self._fixed.dequantise(difference))
        self.reads_at_risk += contributions > self._fixed.capacity
        return True

    def abandon(self) -> None:
        self._counted = self._tcp()
        for connection in self._connections:
            with suppress(OSError):
                connection.close()
        self._connections = []

    def _tcp(self) -> tuple[int, int, int]:
        """Segments sent again, sent in all, and received."""
        again, sent, received = self._counted
        for connection in self._connections:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            again += struct.unpack_from("=I", info, _RETRANSMITTED)[0]
            out, came = struct.unpack_from("=II", info, _SEGMENTS)
            sent, received = sent + out, received + came
        return again, sent, received

    def telemetry(self) -> dict[str, Any]:
        again, sent, received = self._tcp()
        return super().telemetry() | {
            "retransmissions": again, "packets_sent": sent, "packets_received": received,
        }  # fmt: skip


class GlooExchange(Baseline):
    """gloo's all-reduce, as torch.distributed has it: synchronous. What it waits for others cannot be told apart from
    what the network takes, and all of it is booked as the network's."""

    def __init__(
        self,
        place: Place,
        strategy: Strategy,
        apply: Callable[[np.ndarray], None],
        meet_at: tuple[str, int],
        join_timeout_s: float,
    ) -> None:
        super().__init__(place, strategy, apply)
        self._meet_at = meet_at
        self._join_timeout_s = join_timeout_s
        self._group: Any = None

    def join(self) -> Place:
        import torch.distributed as dist

        try:
            dist.init_process_group(
                "gloo", init_method=f"tcp://{self._meet_at[0]}:{self._meet_at[1]}", rank=self.place.worker,
                world_size=self.place.workers, timeout=datetime.timedelta(seconds=self._join_timeout_s),
            )  # fmt: skip
        except (RuntimeError, ValueError) as error:
            raise NoAnswer(f"gloo: not all workers came together: {_first_line(error)}") from error
        self._group = dist
        return self.place

    def _read(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        import torch

        tensor = torch.from_numpy(values)
        try:
            self._group.all_reduce(tensor)
        except RuntimeError as error:
            raise ExchangeFailed(f"gloo: {_first_line(error)}") from error
        return values, self.place.workers, 0.0

    def finish(self, timeout_s: float) -> bool:
        return True  # everybody has everything

    def abandon(self) -> None:
        if self._group is not None:
            with suppress(RuntimeError):
                self._group.destroy_process_group()
        self._group = None


def ranges(values: int, servers: int) -> list[slice]:
    """Each server's part of the vector: as equal as they can be, in order."""
    return [slice(values * part // servers, values * (part + 1) // servers) for part in range(servers)]


def _connect(address: tuple[str, int], until: float) -> socket.socket:
    while True:
        try:
            connection = socket.create_connection(address, timeout=max(until - time.monotonic(), RETRY_S))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            if time.monotonic() > until:
                raise NoAnswer(f"no parameter server at {address[0]}:{address[1]}: {error}") from None
            time.sleep(RETRY_S)  # it is only starting


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
