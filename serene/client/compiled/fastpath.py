"""The worker's fast path: ``fastpath.c``, compiled on first use, over the arrays of ``Protocol``.

An iteration of a hundred packets takes a few calls instead of a hundred passes through Python code. The C code handles
the common case only. It returns with the reason (`Outcome`) when the Python protocol has to continue. Without a C
compiler there is no fast path, and the client does everything in Python.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path

import numpy as np

from serene.client.protocol.protocol import REORDERING, Protocol
from serene.client.protocol.window import FIRST_TIMEOUT_S, LONGEST_TIMEOUT_S, SHORTEST_TIMEOUT_S
from serene.fixedpoint import FixedPoint
from serene.native import CompileFailed, CompilerMissing, compile_source
from serene.wire import HEADER

RINGS = Path(__file__).parents[2] / "embedded" / "runtime" / "shm.h"  # what both ends of a shared-memory port know
SOURCES = (
    RINGS,
    *[Path(__file__).with_name(name) for name in ("shm.c", "fastpath.c", "blocks.c", "pool.c")],
)  # compiled as one unit, in which later files use earlier ones
COMPILER_FLAGS: tuple[str, ...] = ()  # in addition to the usual ones; a fuzzer sets sanitizers
RUN_MOST = 16  # packets in one buffer for the kernel; more would only make bursts
RUN_MOST_BYTES = 65000  # of such a buffer
PART = 1 << 18  # values that are converted at a time without a compiler
BATCH = 128  # packets that one system call sends or receives, as in the C code


# Fields of Exchange (protocol/exchange.py), and of Counts (protocol/protocol.py), that ``struct exchange`` copies.
SHARED = (
    "heard_at",
    "busy_at",
    "pace_s",
    "waited_s",
    "seen",
    "transmissions",
    "latest_answered",
    "stalled",
    "flowing",
)
COUNTS = ("sent", "received", "releases", "ignored")


class Outcome(IntEnum):
    """The reason why ``run`` returned; the same numbers as in C."""

    ALL_ANSWERED = 0
    SILENCE = 1  # nothing came within the timeout
    ODD_PACKETS = 2  # packets arrived that the protocol or the client has to handle
    OVERTAKEN = 3  # later slots were answered before this one, so its packet is lost
    WOKEN = 4  # by a signal
    BROKEN = 5  # the socket failed
    DISAGREEMENT = 6  # from here on: of a pool only (serene.client.allreduce.fastpool)
    NO_MORE = 7  # a sum lacks contributions, or a remaining piece must not be begun
    TIME_UP = 8


class _Exchange(ctypes.Structure):
    """``struct exchange``."""

    _fields_ = (
        *[(name, ctypes.c_void_p) for name in (
            "state", "in_network", "attempts", "order", "sent_at", "awaited", "rounds", "totals", "values", "payloads",
            "policy", "rows", "odd_rows", "odd_lengths", "head", "expected", "shm",
        )],
        *[(name, ctypes.c_double) for name in (
            "window", "largest_window", "smoothed", "variation", "first_timeout", "shortest_timeout",
            "longest_timeout", "heard_at", "busy_at", "pace_s", "waited_s",
        )],
        *[(name, ctypes.c_int64) for name in (
            "transmissions", "latest_answered", "sent", "received", "releases", "ignored",
        )],
        *[(name, ctypes.c_uint32) for name in (
            "slots", "lanes", "payload_bytes", "row_bytes", "head_bytes", "session", "epoch", "newest_epoch", "seen",
            "odd", "backoff", "reordering", "run_most",
        )],
        *[(name, ctypes.c_uint8) for name in ("job", "worker", "pulling", "stalled", "flowing", "measured")],
        *[(name, ctypes.c_int32) for name in ("socket", "error", "refused")],
    )  # fmt: skip


@cache
def library() -> ctypes.CDLL | None:
    """The compiled fast path; None if it cannot be compiled."""
    try:
        return ctypes.CDLL(str(compile_source("".join(source.read_text() for source in SOURCES), COMPILER_FLAGS)))
    except (CompilerMissing, CompileFailed):
        return None


@dataclass(frozen=True)
class Link:
    """The C code's link. descriptor: a connected datagram socket; shm: instead of it, the address of a
    ``struct shm_end`` (0: none). head: uint8[n], the bytes before every sent payload; expected: uint8[n], the checked
    bytes before a received one (n = 0: payloads without a head). cuts: whether the kernel accepts several payloads in
    one buffer (UDP segmentation offload)."""

    descriptor: int
    head: np.ndarray
    expected: np.ndarray
    cuts: bool = False
    shm: int = 0


def quantise(gradient: np.ndarray, fixed: FixedPoint, protocol: Protocol) -> int:
    """Writes a vector into ``protocol.values``: float32[n], or int32[n] in units, unchanged. Returns the number of
    clipped values.

    Raises BadGradient for NaN and infinities; then ``protocol.values`` are undefined.
    """
    if gradient.dtype == np.int32:
        protocol.write(gradient)
        return 0
    compiled = library()
    if compiled is not None:
        flat = np.ascontiguousarray(gradient, np.float32)
        compiled.quantise.restype = ctypes.c_int64
        clipped = compiled.quantise(
            ctypes.c_void_p(flat.ctypes.data), ctypes.c_uint64(len(flat)),
            ctypes.c_double(fixed.scale), ctypes.c_double(fixed.limit), ctypes.c_void_p(protocol.payloads.ctypes.data),
            ctypes.c_uint32(protocol.payloads.shape[1]), ctypes.c_uint32(protocol.membership.lanes),
        )  # fmt: skip
        if clipped >= 0:
            return int(clipped)
    # Also if the C code found a value that is not finite: FixedPoint.quantise names it.
    values, clipped = fixed.quantise(gradient)
    protocol.write(values)
    return clipped


def dequantise(difference: np.ndarray, fixed: FixedPoint) -> np.ndarray:
    """int32[n], contiguous, a difference of two reads, to float32[n] in its place: the vector is large, so it is not
    stored twice."""
    result = difference.view(np.float32)
    compiled = library()
    if compiled is None:
        for first in range(0, len(difference), PART):
            part = slice(first, first + PART)
            result[part] = fixed.dequantise(difference[part])
    else:
        compiled.dequantise(
            ctypes.c_void_p(difference.ctypes.data), ctypes.c_uint64(len(difference)), ctypes.c_double(fixed.scale)
        )
    return result


class FastPath:
    """One worker's protocol over one link. run_most: packets in one buffer for the kernel."""

    def __init__(self, compiled: ctypes.CDLL, protocol: Protocol, link: Link, run_most: int = RUN_MOST) -> None:
        self._compiled = compiled
        self._protocol = protocol
        head_bytes, payload_bytes = len(link.head), protocol.payloads.shape[1]
        row_bytes = head_bytes + max(payload_bytes, 2048)  # control packets may be longer than ours
        self._rows = np.zeros((BATCH, row_bytes), np.uint8)
        self._odd_rows, self._odd_lengths = np.zeros((2, BATCH), np.uint32)
        self._policy = np.zeros(1, HEADER)
        shared = protocol.exchange
        self._arrays = {  # kept here: C holds their addresses
            "state": shared.state, "in_network": shared.in_network, "attempts": shared.attempts,
            "order": shared.order, "sent_at": shared.sent_at, "awaited": shared.awaited, "rounds": shared.rounds,
            "totals": shared.new_totals, "values": shared.new_values, "payloads": protocol.payloads,
            "policy": self._policy, "rows": self._rows, "odd_rows": self._odd_rows, "odd_lengths": self._odd_lengths,
            "head": link.head, "expected": link.expected,
        }  # fmt: skip
        self._exchange = _Exchange(
            **{name: array.ctypes.data for name, array in self._arrays.items()},
            slots=protocol.membership.slots, lanes=protocol.membership.lanes, payload_bytes=payload_bytes,
            row_bytes=row_bytes, head_bytes=head_bytes, session=protocol.membership.session, job=protocol.job,
            worker=protocol.worker, reordering=REORDERING, largest_window=protocol.window.largest,
            run_most=min(run_most, RUN_MOST_BYTES // payload_bytes) if link.cuts else 1,
            first_timeout=FIRST_TIMEOUT_S, shortest_timeout=SHORTEST_TIMEOUT_S, longest_timeout=LONGEST_TIMEOUT_S,
            socket=link.descriptor, shm=link.shm,
        )  # fmt: skip

    def run(self) -> Outcome:
        """Sends and receives until the iteration is over or the protocol has to decide.

        Raises OSError when the socket cannot be used.
        """
        self._copy_in()
        outcome = Outcome(self._call())
        self._copy_out()
        if outcome is Outcome.BROKEN:
            raise OSError(self._exchange.error, "the worker's socket failed")
        return outcome

    def _call(self) -> int:
        return int(self._compiled.run(ctypes.byref(self._exchange)))

    @property
    def refused(self) -> int:
        """errno of the first packet of the last ``run`` that the network refused; 0: none."""
        return int(self._exchange.refused)

    def odd_packets(self) -> tuple[np.ndarray, np.ndarray]:
        """The packets of ODD_PACKETS, for the protocol and the client: UDP payloads, uint8[n, bytes], and their
        lengths, int64[n]."""
        count = self._exchange.odd
        rows = self._rows[self._odd_rows[:count], self._exchange.head_bytes :]
        return rows, self._odd_lengths[:count].astype(np.int64)

    def _copy_in(self) -> None:
        protocol, exchange = self._protocol, self._exchange
        exchange.epoch, exchange.newest_epoch = protocol.epoch, max(protocol.epoch, protocol.exchange.announced)
        exchange.pulling = protocol.exchange.pulling
        self._arrays["values"] = protocol.exchange.new_values  # another one after each whole iteration
        exchange.values = protocol.exchange.new_values.ctypes.data
        exchange.window, exchange.backoff = protocol.window.size, protocol.round_trip.backoff
        exchange.measured = protocol.round_trip.smoothed is not None
        exchange.smoothed, exchange.variation = protocol.round_trip.smoothed or 0.0, protocol.round_trip.variation
        for name in SHARED:
            setattr(exchange, name, getattr(protocol.exchange, name))
        for name in COUNTS:
            setattr(exchange, name, getattr(protocol.counts, name))
        self._policy["version"] = 0

    def _copy_out(self) -> None:
        protocol, exchange = self._protocol, self._exchange
        protocol.window.size, protocol.round_trip.backoff = exchange.window, exchange.backoff
        protocol.round_trip.smoothed = exchange.smoothed if exchange.measured else None
        protocol.round_trip.variation = exchange.variation
        for name in SHARED:
            setattr(protocol.exchange, name, getattr(exchange, name))
        for name in COUNTS:
            setattr(protocol.counts, name, getattr(exchange, name))
        if self._policy["version"][0]:
            protocol.exchange.policy = self._policy[0].copy()
