"""Numbers whose scale follows the values: float32 of any magnitude as integers that a switch can add.

Values are cut into *blocks*, and each block has a power of two of its own as its scale. What it is follows from the
largest magnitude of the block on any worker, and that the workers find out by adding: in an *exponent piece* each
worker counts itself into the class of exponents that its largest value falls into, and the highest class with a count
in the sum is the maximum. The counters are too wide for the number of workers to carry into one another.

A class is four powers of two: float32's exponent field without its last two bits. Values of class c are smaller than
``2 ** (4 * c - 123)``; they are multiplied by ``2 ** shift(c)`` and rounded half to even, so that the sum over all
workers fits 31 bits. With h = ceil(log2(workers)) and M the largest magnitude in the block over all workers, a sum is
off by at most ``workers * 2 ** (h - 28) * M``, and by the last rounding to float32. Blocks of class 0, which holds all
subnormal numbers, are exact.

Where a value is not finite, its block has a second piece after each piece of values, which counts NaN, +inf and -inf
value by value: they add up as IEEE 754 says, and the finite values beside them keep their sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serene.errors import SereneError

CLASSES = 64  # of finite values that are not 0
NOT_FINITE = CLASSES  # the counter after theirs
COUNTERS = CLASSES + 1
EXPONENT_BITS = 25  # shifts a float32's bits, without its sign, to its class
SIGNATURE_LANES = 2  # at the beginning of an exponent piece
PIECES_PER_BLOCK = 4  # more would mix more magnitudes, fewer would cost more exponent pieces
SPECIAL_BITS = 10  # of a counter of values that are not finite
NONE = -1  # the class of a block of zeros
MAGNITUDE, INFINITE = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)  # of a float32's bits


@dataclass(frozen=True)
class Layout:
    """How an exponent piece of so many lanes is divided, for so many workers. The same on all of them."""

    workers: int
    lanes: int

    def __post_init__(self) -> None:
        if not self.blocks_per_piece:
            raise SereneError(
                f"slots of {self.lanes} lanes are too short for a pool of {self.workers} workers: the exponents of a "
                f"block take {SIGNATURE_LANES + self.lanes_per_block} lanes"
            )

    @property
    def counter_bits(self) -> int:
        """As few as hold the number of workers: the counters of a sum never carry."""
        return self.workers.bit_length()

    @property
    def counters_per_lane(self) -> int:
        return 32 // self.counter_bits

    @property
    def lanes_per_block(self) -> int:
        return -(-COUNTERS // self.counters_per_lane)

    @property
    def blocks_per_piece(self) -> int:
        return max(self.lanes - SIGNATURE_LANES, 0) // self.lanes_per_block

    @property
    def values_per_block(self) -> int:
        return PIECES_PER_BLOCK * self.lanes

    def shift(self, block_class: int) -> int:
        """The power of two that values of a class are multiplied by."""
        return 154 - (self.workers - 1).bit_length() - 4 * block_class

    def count(self, values: np.ndarray) -> np.ndarray:
        """This worker's counters for one exponent piece. float32[n] to uint32[blocks_per_piece, lanes_per_block]."""
        counters = np.zeros((self.blocks_per_piece, self.lanes_per_block), np.uint32)
        for block, start in enumerate(range(0, len(values), self.values_per_block)):
            highest, not_finite = classify(values[start : start + self.values_per_block])
            for counter in ([highest] if highest != NONE else []) + ([NOT_FINITE] if not_finite else []):
                lane, place = divmod(counter, self.counters_per_lane)
                counters[block, lane] += np.uint32(1 << place * self.counter_bits)
        return counters

    def classes(self, sums: np.ndarray) -> list[tuple[int, bool]]:
        """Of each block the highest class on any worker, and whether anybody has values that are not finite there.
        sums: uint32[blocks, lanes_per_block], of all workers' counters."""
        places = np.arange(self.counters_per_lane, dtype=np.uint32) * np.uint32(self.counter_bits)
        mask = np.uint32((1 << self.counter_bits) - 1)
        counts = (sums[:, :, None] >> places & mask).reshape(len(sums), -1)[:, :COUNTERS]
        return [
            (max(np.flatnonzero(row[:CLASSES]).tolist(), default=NONE), bool(row[NOT_FINITE]))
            for row in counts.astype(bool)
        ]


def classify(values: np.ndarray) -> tuple[int, bool]:
    """The class of the largest finite magnitude, NONE if all are 0; and whether any value is not finite."""
    bits = values.view(np.uint32) & MAGNITUDE
    finite = bits < INFINITE
    largest = int(bits[finite].max(initial=0))
    return largest >> EXPONENT_BITS if largest else NONE, not finite.all()


def quantise(values: np.ndarray, shift: int) -> np.ndarray:
    """float32[n] to int32[n]; what is not finite is 0."""
    finite = np.where(np.isfinite(values), values, 0).astype(np.float64)
    return np.rint(np.ldexp(finite, shift)).astype(np.int32)


def dequantise(sums: np.ndarray, shift: int) -> np.ndarray:
    """int32[n] to float32[n]."""
    with np.errstate(over="ignore"):  # a sum that float32 does not hold is infinite
        return np.ldexp(sums.astype(np.float64), -shift).astype(np.float32)


def count_specials(values: np.ndarray) -> np.ndarray:
    """float32[n] to int32[n]: 1 for NaN, for +inf and for -inf, each in bits of its own."""
    kinds = (np.isnan(values), np.isposinf(values), np.isneginf(values))
    counts: np.ndarray = sum(
        (kind.astype(np.int32) << place * SPECIAL_BITS for place, kind in enumerate(kinds)), np.int32(0)
    )
    return counts


def add_specials(sums: np.ndarray, counts: np.ndarray) -> None:
    """Puts NaN and infinities into float32[n], the sums of the finite values, as int32[n] counts them."""
    mask = (1 << SPECIAL_BITS) - 1
    nans, positive, negative = ((counts >> place * SPECIAL_BITS & mask) > 0 for place in range(3))
    sums[positive] = np.inf
    sums[negative] = -np.inf
    sums[nans | (positive & negative)] = np.nan
