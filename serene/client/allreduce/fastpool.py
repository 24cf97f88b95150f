"""A whole collective in C, ``pool.c``, over the arrays of ``Protocol``, with the same bits as `PlainPool` in Python."""

from __future__ import annotations

import ctypes

import numpy as np

from serene.client.allreduce.blocks import SIGNATURE_LANES, VOTE_LANES
from serene.client.allreduce.collective import Call, Disagreement, Incomplete, most_under_way
from serene.client.compiled.fastpath import FastPath, Link, Outcome
from serene.client.protocol.protocol import Protocol
from serene.client.session.client import Client

# Packets in one buffer for the kernel: few large buffers cost less, and a pool has room for the bursts.
RUN_MOST = 45
JOINED = (16, 65536)  # buffers, and bytes of each, for packets that the kernel joins
LAYOUT = (  # fields of `Layout` that ``struct layout`` has as 32-bit numbers
    "workers", "lanes", "bits", "values_per_lane", "levels", "level_bits", "exponent_bits", "classes_of_finite",
    "counter_bits", "counters_per_lane", "lanes_per_block", "blocks_per_piece", "rows_per_block",
)  # fmt: skip
UNKNOWN = -2  # the class of a block whose exponents have not been answered


class _Layout(ctypes.Structure):
    """``struct layout``."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in LAYOUT),
        ("given", ctypes.c_uint32),
        ("unit", ctypes.c_int32),
        ("limit", ctypes.c_float),
    )


class _Pool(ctypes.Structure):
    """``struct pool``."""

    _fields_ = (
        *[(name, ctypes.c_void_p) for name in (
            "exchange", "values", "held_values", "held_totals", "index", "place", "kind", "under_way", "unwritten",
            "classes", "not_finite", "specials", "specials_state", "inbox", "residual", "lost",
        )],
        *[(name, ctypes.c_uint64) for name in (
            "count", "begun", "sent", "pieces_under_way", "group", "groups", "exponents", "ahead",
            "clipped_values", "lost_values",
        )],
        ("until", ctypes.c_double),
        ("layout", _Layout),
        *[(name, ctypes.c_uint32) for name in (
            "noise_seed", "block", "row", "inbox_rows", "inbox_bytes", "most_under_way",
        )],
        ("signature", ctypes.c_uint32 * SIGNATURE_LANES),
        ("vote", ctypes.c_uint32 * VOTE_LANES),
        ("votes", ctypes.c_uint32 * VOTE_LANES),
        *[(name, ctypes.c_uint8) for name in ("agreed", "disagreed", "special_begun", "no_more", "joins")],
    )  # fmt: skip


class FastPool(FastPath):
    """One worker's pool over one link."""

    def __init__(self, client: Client, compiled: ctypes.CDLL, link: Link) -> None:
        protocol = client.protocol
        super().__init__(compiled, protocol, link, run_most=RUN_MOST)
        self._client = client
        self._outcome: Outcome | None = None
        slots, lanes = protocol.membership.slots, protocol.membership.lanes
        inbox = np.zeros(JOINED if link.cuts else self._rows.shape, np.uint8)
        self._arrays_in_c: dict[str, np.ndarray] = {
            "held_values": protocol.held_values, "held_totals": protocol.held_totals,
            "index": np.zeros(slots, np.uint64), "place": np.zeros(slots, np.uint64),
            "kind": np.zeros(slots, np.uint8), "under_way": np.zeros(slots, np.uint8),
            "unwritten": np.zeros(slots, np.uint8),
            "specials": np.zeros((2 * slots, lanes), np.int32), "specials_state": np.zeros(2 * slots, np.uint8),
            "inbox": inbox,
        }  # fmt: skip
        self._pool = _Pool(
            exchange=ctypes.addressof(self._exchange),
            **{name: array.ctypes.data for name, array in self._arrays_in_c.items()},
            inbox_rows=inbox.shape[0],
            inbox_bytes=inbox.shape[1],
            most_under_way=most_under_way(slots),
            joins=link.cuts,
        )

    def begin(self, call: Call) -> None:
        """Begins a collective. `step` returns at ``call.until`` at the latest, on the monotonic clock."""
        pool, layout, self._layout = self._pool, call.layout, call.layout
        for name in LAYOUT:
            setattr(pool.layout, name, getattr(layout, name))
        pool.layout.given, pool.layout.unit = layout.unit is not None, layout.unit or 0
        pool.layout.limit = layout.limit
        blocks = call.groups * layout.blocks_per_piece
        self._by_block = {  # kept here: C holds their addresses
            "values": call.values,
            "classes": np.full(blocks, UNKNOWN, np.int16),
            "not_finite": np.zeros(blocks, np.uint8),
            **({} if call.residual is None else {"residual": call.residual}),
            **({} if call.lost is None else {"lost": call.lost}),
        }
        pool.ahead, pool.noise_seed = call.ahead(len(self._arrays_in_c["index"])), call.seed
        pool.residual = pool.lost = None
        for name, array in self._by_block.items():
            setattr(pool, name, array.ctypes.data)
        pool.count, pool.groups, pool.until = len(call.values), call.groups, call.until
        pool.signature[:] = call.signature.tolist()
        pool.vote[:] = call.vote.tolist()
        for name in ("group", "exponents", "block", "row", "agreed", "disagreed", "special_begun", "no_more",
                     "clipped_values", "lost_values"):  # fmt: skip
            setattr(pool, name, 0)

    def begin_no_more(self) -> None:
        """As `PlainPool.begin_no_more`."""
        self._pool.no_more = 1

    def step(self, protocol: Protocol) -> bool:
        """Continues until the collective is over or Python has to decide. Returns whether anything arrived."""
        begun = self._pool.begun
        anything = self._client.fast_round(protocol, self)
        self._client.contributions_sent += self._pool.begun - begun
        return anything

    def _call(self) -> int:
        return int(self._compiled.run_pool(ctypes.byref(self._pool)))

    def run(self) -> Outcome:
        """As `FastPath.run`, until the collective is over."""
        self._outcome = super().run()
        return self._outcome

    def end(self) -> bool:
        """As `PlainPool.end`."""
        if self._outcome is Outcome.DISAGREEMENT:
            raise Disagreement.of(self._layout.workers, int(self._pool.count))
        if self._outcome is Outcome.NO_MORE:
            other = f"a read does not have {self._layout.workers} contributions"
            raise Incomplete("pieces are left" if self._pool.no_more else other)
        return self._outcome is Outcome.ALL_ANSWERED

    @property
    def votes(self) -> np.ndarray:
        """As `PlainPool.votes`."""
        return np.array(self._pool.votes, np.uint32)

    @property
    def clipped_values(self) -> int:
        """As `PlainPool.clipped_values`."""
        return int(self._pool.clipped_values)

    @property
    def lost_values(self) -> int:
        """As `PlainPool.lost_values`."""
        return int(self._pool.lost_values)

    @property
    def slots_under_way(self) -> list[int]:
        """As `PlainPool.slots_under_way`."""
        slots = np.flatnonzero(self._arrays_in_c["under_way"])
        return [int(slot) for slot in slots[np.argsort(self._arrays_in_c["place"][slots])]]
