"""One all-reduce as a sequence of pieces: their contents and their order.

A *piece* is the content of one slot in one round. The sequence follows from the number of values and the sums of the
exponent pieces, so it is the same on all workers. The first exponent piece goes alone, because it also carries the
signature. The others go so far ahead of their values that no worker waits for them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from serene.client.allreduce.blocks import (
    HEAD_LANES,
    NONE,
    PIECES_PER_BLOCK,
    SIGNATURE_LANES,
    VOTE_LANES,
    Layout,
    add_specials,
    add_to_held,
    clip,
    count_specials,
    dequantise,
    from_levels,
    hold_back,
    noise,
    pack,
    quantise,
    quantise_at_random,
    to_levels,
    unpack,
)
from serene.errors import SereneError


class Disagreement(SereneError):
    """The workers' calls differ in the operation or the number of values."""

    @classmethod
    def of(cls, workers: int, count: int) -> Disagreement:
        """count: this worker's values."""
        return cls(
            f"the {workers} workers call different collectives (their operations, types or numbers of values differ); "
            f"this one's has {count} values"
        )


class Incomplete(SereneError):
    """A collective cannot end: a sum lacks contributions, or a remaining piece must not be begun any more."""


class Kind(IntEnum):
    """The kind of a piece's content; the same numbers as in C."""

    EXPONENTS = 0
    VALUES = 1
    SPECIALS = 2


@dataclass(frozen=True)
class Piece:
    """index: the number of the exponent piece, or of a piece's first row of values, from 0. A row is ``lanes`` values:
    a piece in 32 bits."""

    kind: Kind
    index: int


def hashes(signature: bytes, number: int, count: int, bits: int, unit: int | None = None) -> np.ndarray:
    """A collective's signature in pieces, uint32[SIGNATURE_LANES]. signature: the caller's. number: of the collective
    in the pool. count: of values. bits: of a value. unit: a given one, or None."""
    given = b"" if unit is None else b"2^%d " % unit
    facts = b"%d %d %d " % (number, count, bits) + given + signature
    return np.frombuffer(hashlib.blake2b(facts, digest_size=4 * SIGNATURE_LANES).digest(), ">u4").astype(np.uint32)


def vote_for(epoch: int, precision: int) -> np.ndarray:
    """The vote for the newest epoch that a worker knows, and that epoch's precision: uint32[VOTE_LANES]."""
    return np.frombuffer(
        hashlib.blake2b(b"%d %d" % (epoch, precision), digest_size=4 * VOTE_LANES).digest(), ">u4"
    ).astype(np.uint32)


def most_under_way(slots: int) -> int:
    """The largest number of begun pieces, from the first unanswered one on: half the number of slots.

    A worker that begins a piece has read the piece half a pool before it. So all others had begun that one, and before
    that had read the piece a whole pool before: the last one in the same slot. So no worker contributes to a slot
    before all have read its last piece. The slot then holds only that piece's sum, even if a new epoch has removed the
    snapshot.
    """
    return max(slots // 2, 1)


def noise_seed(signature: np.ndarray, worker: int) -> int:
    """The seed of a worker's random roundings in a collective, below 2^32. signature: as of `hashes`."""
    facts = b"%d " % worker + signature.tobytes()
    return int.from_bytes(hashlib.blake2b(facts, digest_size=4).digest(), "big")


@dataclass(frozen=True)
class Call:
    """One worker's input of one all-reduce.

    values: float32[n], C-contiguous, becomes the sum piece by piece. signature: uint32[SIGNATURE_LANES]. vote:
    uint32[VOTE_LANES], for the format of the next collectives. seed: of this worker's random rounding. residual: with
    error feedback, in place of random rounding: float64[n], the residual of earlier collectives, which becomes this
    one's. lost: float64[n], to which values beyond the largest residual are added. until: the time at which the worker
    gives up, on its clock.
    """

    values: np.ndarray
    layout: Layout
    signature: np.ndarray
    vote: np.ndarray
    seed: int
    residual: np.ndarray | None
    lost: np.ndarray | None
    until: float

    @property
    def groups(self) -> int:
        """Of blocks; each has one exponent piece."""
        blocks = -(-len(self.values) // self.layout.values_per_block)
        return max(-(-blocks // self.layout.blocks_per_piece), 1)

    def ahead(self, slots: int) -> int:
        """The number of exponent pieces that precede their values, if there are as many. slots: of the pool."""
        return -(-slots // (self.layout.blocks_per_piece * PIECES_PER_BLOCK + 1))


class Collective:
    """One worker's side of one all-reduce. slots: of the pool. ``votes``: the sum of all workers' votes.
    ``clipped_values``, ``lost_values``: the numbers of this worker's clipped and lost values."""

    def __init__(self, call: Call, slots: int) -> None:
        self.values, self.residual, self.lost = call.values, call.residual, call.lost
        self.layout, self.signature, self.vote, self.seed = call.layout, call.signature, call.vote, call.seed
        self.clipped_values = self.lost_values = 0
        self.votes = np.zeros(VOTE_LANES, np.uint32)
        self.groups, self.ahead = call.groups, call.ahead(slots)
        # By block: the class, and whether values are not finite; None until the exponent piece is answered.
        self.classes: list[tuple[int, bool] | None] = [None] * (self.groups * self.layout.blocks_per_piece)
        self.agreed = False
        self.all_begun = False
        self._specials: dict[int, np.ndarray] = {}  # counts of pieces whose values are not answered yet
        self._without_specials: set[int] = set()  # pieces whose values are answered, and their counts are not

    def pieces(self) -> Iterator[Piece | None]:
        """The pieces in order. None: the next piece depends on an answer that has not come yet."""
        yield Piece(Kind.EXPONENTS, 0)
        sent = 1
        while not self.agreed:
            yield None
        for group in range(self.groups):
            while sent < min(group + self.ahead + 1, self.groups):
                yield Piece(Kind.EXPONENTS, sent)
                sent += 1
            first = group * self.layout.blocks_per_piece
            while self.classes[first] is None:
                yield None
            for block in range(first, first + self.layout.blocks_per_piece):
                yield from self._of_block(block)
        self.all_begun = True

    def _of_block(self, block: int) -> Iterator[Piece]:
        rows = range(block * self.layout.rows_per_block, (block + 1) * self.layout.rows_per_block)
        highest, not_finite = self._class(rows.start)
        for index in rows[:: self._rows(rows.start)]:
            if index * self.layout.lanes < len(self.values):
                if not_finite:  # before the values, whose answer overwrites the counted ones
                    yield Piece(Kind.SPECIALS, index)
                if highest != NONE:
                    yield Piece(Kind.VALUES, index)
                elif not not_finite:
                    self._of_piece(index)[:] = 0  # some workers may have -0

    def contribution(self, piece: Piece) -> np.ndarray:
        """This worker's contribution to a piece: int32[lanes]."""
        lanes = np.zeros(self.layout.lanes, np.int32)
        if piece.kind is Kind.EXPONENTS:
            return self._exponents(piece.index)
        values, highest = self._of_piece(piece.index), self._class(piece.index)[0]
        if piece.kind is Kind.SPECIALS:
            lanes[: len(values)] = count_specials(values)
            return lanes
        layout, start, narrow = self.layout, piece.index * self.layout.lanes, self._rows(piece.index) > 1
        if self.residual is not None:
            per_unit = layout.levels_per_unit(highest) if narrow else math.ldexp(1.0, layout.shift(highest))
            held = self.residual[start : start + len(values)]
            integers = hold_back(held, per_unit, layout.levels if narrow else layout.highest)
        else:
            values, clipped = clip(values, layout.limit)
            self.clipped_values += clipped
            random = noise(self.seed, start, len(values))
            if narrow:
                integers = to_levels(values, layout.levels_per_unit(highest), random)
            elif layout.unit is not None:
                integers = quantise_at_random(values, layout.shift(highest), random)
            else:
                integers = quantise(values, layout.shift(highest))
        if narrow:
            return pack(integers, layout.lanes, layout.bits)
        lanes[: len(values)] = integers
        return lanes

    def _exponents(self, group: int) -> np.ndarray:
        values, held = self._of_group(self.values, group), None
        if self.residual is not None:
            held = self._of_group(self.residual, group)
            lost = None if self.lost is None else self._of_group(self.lost, group)
            self.lost_values += add_to_held(values, held, self.layout.held_limit, lost)
        counters = self.layout.count(values, held)
        counts = np.concatenate([self.signature, self.vote, counters.reshape(-1)])
        lanes = np.zeros(self.layout.lanes, np.int32)
        lanes[: counts.size] = counts.view(np.int32)
        return lanes

    def answer(self, piece: Piece, sums: np.ndarray) -> None:
        """Processes a piece's sum of all workers' contributions, int32[lanes]. Raises Disagreement."""
        if piece.kind is Kind.EXPONENTS:
            self._learn(piece.index, sums.view(np.uint32))
            return
        index = piece.index
        values, (highest, not_finite) = self._of_piece(index), self._class(index)
        if piece.kind is Kind.SPECIALS:
            self._specials[index] = sums[: len(values)].copy()
            if highest == NONE:
                values[:] = 0
            elif index not in self._without_specials:
                return
        elif self._rows(index) > 1:
            values[:] = from_levels(unpack(sums, self.layout.bits)[: len(values)], self.layout.level(highest))
        else:
            values[:] = dequantise(sums[: len(values)], self.layout.shift(highest))
            if not_finite and index not in self._specials:
                self._without_specials.add(index)
        if index in self._specials:
            self._without_specials.discard(index)
            add_specials(values, self._specials.pop(index))

    def _learn(self, group: int, sums: np.ndarray) -> None:
        if (sums[:SIGNATURE_LANES] != self.signature * np.uint32(self.layout.workers)).any():
            raise Disagreement.of(self.layout.workers, len(self.values))
        self.agreed = True
        self.votes = sums[SIGNATURE_LANES:HEAD_LANES].copy()
        blocks, lanes = self.layout.blocks_per_piece, self.layout.lanes_per_block
        counters = sums[HEAD_LANES : HEAD_LANES + blocks * lanes].reshape(blocks, lanes)
        self.classes[group * blocks : (group + 1) * blocks] = self.layout.classes(counters)

    def _class(self, index: int) -> tuple[int, bool]:
        known = self.classes[index // self.layout.rows_per_block]
        assert known is not None
        return known

    def _rows(self, index: int) -> int:
        """The number of rows in this piece of values."""
        return self.layout.values_in_lane(*self._class(index))

    def _of_group(self, of: np.ndarray, group: int) -> np.ndarray:
        length = self.layout.values_per_group
        return of[group * length : (group + 1) * length]

    def _of_piece(self, index: int) -> np.ndarray:
        return self.values[index * self.layout.lanes : (index + self._rows(index)) * self.layout.lanes]
