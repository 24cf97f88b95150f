"""The baselines: parameter servers over TCP, and gloo's all-reduce. workers/rpc.py has another one. The training loop
is the same as with the switch.

They replace `serene.client.Session` and use the same number format (32-bit fixed point) and the same strategies. So
only the network differs from a run through the switch. If a worker or a server disconnects, every worker ends with an
error.
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
from typing import Any

import numpy as np
from typing_extensions import Self

from serene.client import NoAnswer, Update
from serene.errors import SereneError
from serene.fixedpoint import FixedPoint
from serene.process.interrupts import allowed
from serene.report import Report
from serene.strategy import Strategy
from serene.workers.messages import END, HELLO, PUSH, READ, REFUSED, receive_exactly

EXCHANGES = ("switch", "server", "sharded", "rpc", "gloo")
RETRY_S = 0.1
# struct tcp_info in <linux/tcp.h>: its size up to segs_in, and the offsets of total_retrans and of the pair segs_out,
# segs_in.
_TCP_INFO_BYTES, _RETRANSMITTED, _SEGMENTS = 144, 100, 136


class ExchangeFailed(SereneError):
    """A parameter server or another worker disconnected, or the server refused this worker."""


@dataclass(frozen=True)
class Place:
    """A worker's place in a job. workers: their number in the job. values: length of the job's vector."""

    worker: int
    workers: int
    values: int


class Baseline(ABC):
    """The common part of parameter servers and gloo. apply: called with each sum that is read, float32[values], as in
    `serene.client.Session`."""

    def __init__(self, place: Place, strategy: Strategy, apply: Callable[[np.ndarray], None]) -> None:
        self.place = place
        self.state = "joining"
        self.facts: Report = {"loss": None, "accuracy": None, "compute_s": 0.0}
        self.iteration = self.reads_at_risk = 0
        self._policy = strategy.compile(range(place.workers))
        self._apply = apply
        self._fixed = FixedPoint()
        self._messages = 1  # contributions in an iteration: one for each server's range of the vector
        self._last = np.zeros(place.values, np.int32)  # the last read; _last_total: the number of contributions in it
        self._last_total = 0
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
        """Blocks until all workers of the job have joined. Raises NoAnswer or ExchangeFailed."""

    @abstractmethod
    def _contribute(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        """Contributes int32[values] and reads. Returns the difference to the last read, int32[values]; the number of
        contributions in it; and the seconds that this worker waited for others. gloo does not count contributions:
        there the number is that of the workers. Raises ExchangeFailed."""

    @abstractmethod
    def finish(self, timeout_s: float) -> bool:
        """Waits until all workers have done their steps, and reads once more, so that all have the same parameters.
        Returns whether that was possible. Raises ExchangeFailed."""

    @abstractmethod
    def abandon(self) -> None:
        """Closes the connections without a last read."""

    def report(self, state: str, *, force: bool = False) -> None:
        """Stores the state. A baseline has no controller to report it to."""
        self.state = state

    def exchange(self, gradient: np.ndarray) -> Update:
        """As `serene.client.Session.exchange`, with a gradient float32[values]. Raises BadGradient or
        ExchangeFailed."""
        began = time.monotonic()
        values, clipped = self._fixed.quantise(gradient)
        self._sent += self._messages
        self._clipped += clipped
        with allowed():
            difference, contributions, waited = self._contribute(values)
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
            network_s=network, waiting_s=waited, retransmissions=0, clipped=clipped, read_at_risk=at_risk,
        )  # fmt: skip

    def _since_last(self, read: np.ndarray, total: int) -> tuple[np.ndarray, int]:
        """What a read of a server, int32[values] with ``total`` contributions, has more than the last one."""
        difference, contributions = read - self._last, total - self._last_total
        self._last[:] = read
        self._last_total = total
        return difference, contributions

    def _apply_last(self, difference: np.ndarray, contributions: int) -> None:
        """Applies what the read at the end has more than the last one."""
        self._apply(self._fixed.dequantise(difference))
        self.reads_at_risk += contributions > self._fixed.capacity

    def telemetry(self) -> Report:
        """The counts and sums so far, as in `serene.client.Session.telemetry`; None where they are unknown."""
        return {
            "iteration": self.iteration, **self.facts, "network_s": self._network_s, "waiting_s": self._waiting_s,
            "clipped_values": self._clipped, "contributions_sent": self._sent,
            "retransmissions": None, "packets_sent": None, "packets_received": None,
        }  # fmt: skip


class ServerExchange(Baseline):
    """Exchanges gradients through parameter servers. Each has a range of the vector (`ranges`, workers/server.py)."""

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
        self._closed = (0, 0, 0)  # `_tcp_counts` of closed connections
        self._now = np.empty(place.values, np.int32)  # buffer for the read that is being received
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
                raise NoAnswer(
                    f"some workers did not connect to the server at {address[0]}:{address[1]} in time"
                ) from None
            except OSError as error:
                raise ExchangeFailed(f"parameter server {address[0]}:{address[1]}: {error}") from error
            if count == REFUSED:
                raise ExchangeFailed(
                    f"the server at {address[0]}:{address[1]} serves another job, or already has worker "
                    f"{self.place.worker}"
                )
            connection.settimeout(None)
        return self.place

    def _contribute(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        def push(connection: socket.socket, part: slice) -> None:
            connection.sendall(PUSH.pack(self.iteration))
            connection.sendall(values[part].data.cast("B"))

        return self._send_and_read(push)

    def _send_and_read(self, send: Callable[[socket.socket, slice], None]) -> tuple[np.ndarray, int, float]:
        """Calls ``send`` for each server and its range of the vector, then reads from each. Returns the same as
        `_contribute`."""
        totals, waits = [], []
        try:
            # Worker w begins with server w. Otherwise all workers would send to the same server at the same time.
            ends = list(zip(self._connections, self._ranges, strict=True))
            first = self.place.worker % len(ends)
            ends = ends[first:] + ends[:first]
            for connection, part in ends:
                send(connection, part)
            for connection, part in ends:
                total, waited = READ.unpack(receive_exactly(connection, READ.size))
                receive_exactly(connection, self._now[part].nbytes, self._now[part].data.cast("B"))
                totals.append(total)
                waits.append(waited)
        except OSError as error:
            raise ExchangeFailed(f"lost the connection to a parameter server or worker: {error}") from error
        return *self._since_last(self._now, max(totals)), max(waits)

    def finish(self, timeout_s: float) -> bool:
        for connection in self._connections:
            connection.settimeout(timeout_s)
        difference, contributions, _ = self._send_and_read(lambda connection, _: connection.sendall(PUSH.pack(END)))
        self._apply_last(difference, contributions)
        return True

    def abandon(self) -> None:
        self._closed = self._tcp_counts()
        for connection in self._connections:
            with suppress(OSError):
                connection.close()
        self._connections = []

    def _tcp_counts(self) -> tuple[int, int, int]:
        """Numbers of TCP segments retransmitted, sent (in total) and received, as the kernel counts them."""
        again, sent, received = self._closed
        for connection in self._connections:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            again += struct.unpack_from("=I", info, _RETRANSMITTED)[0]
            out, came = struct.unpack_from("=II", info, _SEGMENTS)
            sent, received = sent + out, received + came
        return again, sent, received

    def telemetry(self) -> Report:
        again, sent, received = self._tcp_counts()
        return {
            **super().telemetry(), "retransmissions": again, "packets_sent": sent, "packets_received": received,
        }  # fmt: skip


class GlooExchange(Baseline):
    """Exchanges gradients through gloo's all-reduce (torch.distributed), which is synchronous. The time in which a
    worker waits for others cannot be separated from network time, so all of it counts as network time."""

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
            raise NoAnswer(f"gloo: some workers did not connect: {first_line(error)}") from error
        self._group = dist
        return self.place

    def _contribute(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        import torch

        tensor = torch.from_numpy(values)
        try:
            self._group.all_reduce(tensor)
        except RuntimeError as error:
            raise ExchangeFailed(f"gloo: {first_line(error)}") from error
        return values, self.place.workers, 0.0

    def finish(self, timeout_s: float) -> bool:
        return True  # after an all-reduce every worker has the whole sum

    def abandon(self) -> None:
        if self._group is not None:
            with suppress(RuntimeError):
                self._group.destroy_process_group()
        self._group = None


def ranges(values: int, servers: int) -> list[slice]:
    """Each server's range of the vector, in order; their lengths differ by one at most."""
    return [slice(values * part // servers, values * (part + 1) // servers) for part in range(servers)]


def _connect(address: tuple[str, int], until: float) -> socket.socket:
    """A connection to a server, which may still be starting. until: deadline in monotonic seconds. Raises NoAnswer."""
    while True:
        try:
            connection = socket.create_connection(address, timeout=max(until - time.monotonic(), RETRY_S))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            if time.monotonic() > until:
                raise NoAnswer(f"no parameter server at {address[0]}:{address[1]}: {error}") from None
            time.sleep(RETRY_S)


def first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
