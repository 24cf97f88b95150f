"""Numbers whose scale follows the values: float32 of any magnitude as integers that a switch can add.

Values are cut into *blocks*, and each block has its own power of two as its scale. The scale follows from the block's
largest magnitude on any worker. The workers find this by adding: in an *exponent piece* each worker adds 1 to the
counter of the class of its largest value. In the sum, the highest class with a count is the maximum's. Each counter has
enough bits for the number of workers, so none carries into the next.

A class is four powers of two: float32's exponent field without its last two bits. Values of class c are smaller than
``2 ** (4 * c - 123)``. They are multiplied by ``2 ** shift(c)`` and rounded half to even, so that the sum over all
workers fits 31 bits. Let h = ceil(log2(workers)), and M the largest magnitude in the block over all workers. Then the
error of a sum is at most ``workers * 2 ** (h - 28) * M``, plus the last rounding to float32. Blocks of class 0, which
holds all subnormal numbers, are exact.

A block with a value that is not finite has a second piece for each piece of values. It counts NaN, +inf and -inf value
by value: they add up as in IEEE 754, and the block's finite values keep their sums.

That is the format of 32 bits. In 16 and 8 bits a lane carries two and four values: a number in base 2 ** bits, whose
signed digits are the values. The sum of such lanes has the sums as its digits, as long as each sum fits its bits;
carries between digits do no harm. So nothing changes for the switch. For n workers a value has
``(2 ** (bits - 1) - 1) // n`` *levels* on either side of 0 (31 for 4 workers and 8 bits, 3 for 32). A class is two
powers of two in 16 bits and one in 8. It is that of ``2 ** level_bits / levels`` times the magnitude, so that the
distance of two levels is a power of two and the highest level is the top T of the class. Values between two levels are
rounded at random. So a sum's expectation is the exact sum (to 2 ** -17 of a level per worker). Its error is less than
``n * T / levels``, where T is at most 4 M in 16 bits and 2 M in 8, M as above. A block is sent in 32 bits if values are
not finite, if n * T may be beyond float32, or if all values are of class 0.

Those are voted scales. A scale may also be *given* (scale.py): all integers of a collective then have the same power of
two as their *unit*. An exponent piece then only marks blocks that are zero or not finite, so it takes one lane for each
block. Values are rounded at random in 32 bits, too. The *limit* is the highest level, or the largest float32 that fits
32 bits. Values beyond it are set to it and counted.

*Error feedback*: a worker passes the residual of a vector's earlier values, float64. It sends the sum of residual and
values, rounded to nearest in any format; the rest is the new residual. Scales are powers of two, so nothing is lost:
sent values and residual add up to the gradients, to the bit, as long as float64 holds them. Under a given scale, the
residual also keeps the part beyond the limit, and grows while gradients stay so large. A value that would make it more
than 2^22 limits is *lost* as a whole, and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from serene.client.allreduce.scale import HELD_LIMITS, UNITS, unit_for
from serene.errors import SereneError, choices
from serene.wire import PRECISIONS

BITS = PRECISIONS  # of a value: the number formats
MANTISSA_BITS = 23  # of float32
MAX_EXPONENT = 127  # of float32
NOISE_BITS = 16  # resolution of a value's place between two levels
SIGNATURE_LANES, VOTE_LANES = 2, 2  # at the beginning of an exponent piece
HEAD_LANES = SIGNATURE_LANES + VOTE_LANES
PIECES_PER_BLOCK = 4  # more would mix more magnitudes, fewer would cost more exponent pieces
SPECIAL_BITS = 10  # of a counter of values that are not finite
NONE = -1  # the class of a block of zeros
MAGNITUDE, INFINITE = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)  # of a float32's bits


@dataclass(frozen=True)
class Layout:
    """The layout of a piece's lanes, for ``workers`` workers and values of ``bits`` bits; the same on all workers.
    lanes: of a slot. unit: log2 of a given unit; None: scales are voted.

    Raises SereneError, which names the valid bits and units, or if the slots have too few lanes, or the values too few
    bits, for the workers.
    """

    workers: int
    lanes: int
    bits: int = 32
    unit: int | None = None

    def __post_init__(self) -> None:
        if self.bits not in BITS:
            raise SereneError(f"values of {self.bits} bits: expected {choices(BITS)}")
        if not self.blocks_per_piece:
            raise SereneError(
                f"{self.lanes} lanes per slot are too few for {self.workers} workers and {self.bits} bits: "
                f"a block's exponents take {HEAD_LANES + self.lanes_per_block} lanes"
            )
        if not self.levels:
            raise SereneError(f"{self.bits} bits are too few for the sum of {self.workers} workers' values")
        if self.unit is not None and not UNITS[0] <= self.unit <= UNITS[1]:
            raise SereneError(f"unit 2^{self.unit}: expected 2^{UNITS[0]} to 2^{UNITS[1]}")

    def with_limit(self, limit: float) -> Layout:
        """The same layout with the finest unit whose limit is at least ``limit``. Raises BadScale."""
        return replace(self, unit=unit_for(limit, replace(self, unit=0).limit))

    @property
    def values_per_lane(self) -> int:
        """The number of values in a lane, except in blocks that are sent in 32 bits (`values_in_lane`)."""
        return 32 // self.bits

    @property
    def levels(self) -> int:
        """Levels on either side of 0, in 16 and 8 bits."""
        return ((1 << self.bits - 1) - 1) // self.workers

    @property
    def level_bits(self) -> int:
        """log2 of the levels, rounded up."""
        return (self.levels - 1).bit_length()

    @property
    def exponent_bits(self) -> int:
        """The right shift that turns a float32's bits, without the sign, into its class."""
        return MANTISSA_BITS + {32: 2, 16: 1, 8: 0}[self.bits]

    @property
    def classes_of_finite(self) -> int:
        """Classes of finite values, without NONE. The counter after theirs counts blocks with values that are not
        finite."""
        if self.unit is not None:
            return 1
        return (int(INFINITE - 1) >> self.exponent_bits) + 1

    @property
    def counter_bits(self) -> int:
        """The fewest bits that hold the number of workers, so that the counters of a sum never carry."""
        return self.workers.bit_length()

    @property
    def counters_per_lane(self) -> int:
        return 32 // self.counter_bits

    @property
    def lanes_per_block(self) -> int:
        return -(-(self.classes_of_finite + 1) // self.counters_per_lane)

    @property
    def blocks_per_piece(self) -> int:
        return max(self.lanes - HEAD_LANES, 0) // self.lanes_per_block

    @property
    def rows_per_block(self) -> int:
        """A row is as many values as a piece has lanes."""
        return PIECES_PER_BLOCK * self.values_per_lane

    @property
    def values_per_block(self) -> int:
        return self.rows_per_block * self.lanes

    @property
    def values_per_group(self) -> int:
        """Values of the blocks whose exponents are in one piece."""
        return self.blocks_per_piece * self.values_per_block

    def top(self, block_class: int) -> int:
        """log2 of the upper bound of a class's values."""
        if self.unit is not None:
            return self.unit + (self.integer_bits if self.bits == 32 else self.level_bits)
        return (block_class + 1 << self.exponent_bits - MANTISSA_BITS) - 127

    def shift(self, block_class: int) -> int:
        """log2 of the factor of a class's values, in 32 bits."""
        return self.integer_bits - self.top(block_class)

    def values_in_lane(self, block_class: int, not_finite: bool) -> int:
        """The number of values in a lane in a block of this class. not_finite: it has values that are not finite.

        It is one in three cases with any number of bits: if values are not finite, because their counts need separate
        lanes; if a sum that is rounded up may be beyond float32's largest number; and in the lowest class, whose values
        may all be far smaller than a level.
        """
        if self.unit is not None:
            return 1 if not_finite else self.values_per_lane
        largest_sum = self.top(block_class) + (self.workers - 1).bit_length()
        return 1 if not_finite or block_class == 0 or largest_sum > MAX_EXPONENT else self.values_per_lane

    def levels_per_unit(self, block_class: int) -> float:
        """The factor of a class's values, in 16 and 8 bits."""
        return math.ldexp(1.0, self.level_bits - self.top(block_class))

    def level(self, block_class: int) -> float:
        """The distance of two levels of a class, in 16 and 8 bits."""
        return math.ldexp(1.0, self.top(block_class) - self.level_bits)

    @property
    def integer_bits(self) -> int:
        """Bits of a worker's integers in 32 bits, without the sign, so that the sum fits."""
        return 31 - (self.workers - 1).bit_length()

    @property
    def highest(self) -> int:
        """The largest of a worker's integers in 32 bits, with any residual."""
        return (1 << self.integer_bits) - 1

    @property
    def limit(self) -> float:
        """The largest magnitude of a contribution's value under a given scale, a float32; infinite without one."""
        if self.unit is None:
            return math.inf
        if self.bits == 32:
            return math.ldexp((1 << MANTISSA_BITS + 1) - 1, self.integer_bits - MANTISSA_BITS - 1 + self.unit)
        return math.ldexp(self.levels, self.unit)

    @property
    def held_limit(self) -> float:
        """The largest residual of one value."""
        return HELD_LIMITS * self.limit

    def class_of(self, largest: float) -> int:
        """The class of a magnitude; NONE for 0."""
        if not largest:
            return NONE
        if self.unit is not None:
            return 0
        spread = largest if self.bits == 32 else math.ldexp(largest, self.level_bits) / self.levels
        field = math.frexp(spread)[1] + 126  # the exponent field of a float32
        return min(max(field, 0), (1 << 8) - 2) >> self.exponent_bits - MANTISSA_BITS

    def count(self, values: np.ndarray, residual: np.ndarray | None = None) -> np.ndarray:
        """This worker's counters for one exponent piece: float32[n] to uint32[blocks_per_piece, lanes_per_block].
        residual: with error feedback, float64[n] to which the values have been added; then its magnitudes count."""
        counters = np.zeros((self.blocks_per_piece, self.lanes_per_block), np.uint32)
        for block, start in enumerate(range(0, len(values), self.values_per_block)):
            part = slice(start, start + self.values_per_block)
            largest, not_finite = largest_of(values[part])
            if residual is not None:
                largest = float(np.abs(residual[part]).max())
            highest = self.class_of(largest)
            for counter in ([highest] if highest != NONE else []) + ([self.classes_of_finite] if not_finite else []):
                lane, place = divmod(counter, self.counters_per_lane)
                counters[block, lane] += np.uint32(1 << place * self.counter_bits)
        return counters

    def classes(self, sums: np.ndarray) -> list[tuple[int, bool]]:
        """For each block the highest class on any worker, and whether any worker has values in it that are not finite.
        sums: uint32[blocks, lanes_per_block], all workers' counters added up."""
        places = np.arange(self.counters_per_lane, dtype=np.uint32) * np.uint32(self.counter_bits)
        mask = np.uint32((1 << self.counter_bits) - 1)
        finite = self.classes_of_finite
        counts = (sums[:, :, None] >> places & mask).reshape(len(sums), -1)[:, : finite + 1]
        return [
            (max(np.flatnonzero(row[:finite]).tolist(), default=NONE), bool(row[finite])) for row in counts.astype(bool)
        ]


def largest_of(values: np.ndarray) -> tuple[float, bool]:
    """The largest finite magnitude of float32[n] (0 if there is none), and whether any value is not finite."""
    bits = values.view(np.uint32) & MAGNITUDE
    finite = bits < INFINITE
    return float(bits[finite].max(initial=0).view(np.float32)), not finite.all()


def add_to_held(values: np.ndarray, held: np.ndarray, limit: float, lost: np.ndarray | None = None) -> int:
    """Adds the finite values of float32[n] to the residual, float64[n]. Values that would move it beyond the limit, and
    farther from 0 than it is, are lost: they are added to ``lost``, float64[n], if given. Returns their number."""
    finite = np.where(np.isfinite(values), values, 0).astype(np.float64)
    sums = held + finite
    beyond = np.abs(sums) > np.maximum(limit, np.abs(held))
    held[:] = np.where(beyond, held, sums)
    if lost is not None:
        lost[beyond] += finite[beyond]
    return int(np.count_nonzero(beyond))


def hold_back(held: np.ndarray, per_unit: float | np.ndarray, highest: int | np.ndarray) -> np.ndarray:
    """float64[n] to int32[n], rounded to nearest; ``held``, the residual, keeps the rest. per_unit: the values' factor,
    a power of two; highest: the largest integer; both for all values, or arrays with one for each."""
    sent = np.clip(np.rint(held * per_unit), -highest, highest)
    held -= sent / per_unit
    return sent.astype(np.int32)


def quantise(values: np.ndarray, shift: int) -> np.ndarray:
    """float32[n] times 2^shift to int32[n], rounded half to even; values that are not finite become 0."""
    finite = np.where(np.isfinite(values), values, 0).astype(np.float64)
    return np.rint(np.ldexp(finite, shift)).astype(np.int32)


def quantise_at_random(values: np.ndarray, shift: int, random: np.ndarray) -> np.ndarray:
    """As `quantise`, but rounded at random, as `to_levels` does."""
    return to_levels(np.where(np.isfinite(values), values, np.float32(0)), math.ldexp(1.0, shift), random)


def clip(values: np.ndarray, limit: float) -> tuple[np.ndarray, int]:
    """float32[n] with finite values beyond the limit set to it, and the number of these; NaN and infinities stay."""
    beyond = (np.abs(values) > np.float32(limit)) & np.isfinite(values)
    count = int(np.count_nonzero(beyond))
    return (np.where(beyond, np.copysign(np.float32(limit), values), values) if count else values), count


def dequantise(sums: np.ndarray, shift: int) -> np.ndarray:
    """int32[n] times 2^-shift to float32[n]."""
    with np.errstate(over="ignore"):  # a sum that float32 does not hold is infinite
        return np.ldexp(sums.astype(np.float64), -shift).astype(np.float32)


def noise(seed: int, first: int, count: int) -> np.ndarray:
    """Pseudorandom numbers for values ``first`` to ``first + count - 1`` of a vector, uint32[count]. They depend on the
    seed only."""
    mixed: np.ndarray = np.arange(first, first + count, dtype=np.uint64).astype(np.uint32) ^ np.uint32(seed)
    for factor, shift in ((0x7FEB352D, 16), (0x846CA68B, 15)):  # Chris Wellons' lowbias32
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    mixed ^= mixed >> np.uint32(16)
    return mixed


def to_levels(values: np.ndarray, levels_per_unit: float | np.ndarray, random: np.ndarray) -> np.ndarray:
    """Finite float32[n] to int32[n]: the level below or the one above, at random, the nearer one more often.
    levels_per_unit: levels in 1.0, for all values or for each; random: uint32[n], from `noise`."""
    fine = np.rint(values.astype(np.float64) * (levels_per_unit * 2**NOISE_BITS)).astype(np.int64)
    levels: np.ndarray = fine + (random >> np.uint32(32 - NOISE_BITS)) >> NOISE_BITS
    return levels.astype(np.int32)


def from_levels(sums: np.ndarray, level: float | np.ndarray) -> np.ndarray:
    """int32[n], sums of levels, to float32[n]. level: the distance of two levels, for all values or for each."""
    with np.errstate(over="ignore"):  # a sum that float32 does not hold is infinite
        return (sums.astype(np.float64) * level).astype(np.float32)


def pack(levels: np.ndarray, lanes: int, bits: int) -> np.ndarray:
    """int32[n], up to 32 / bits rows of levels, to int32[lanes]: a value of each row in a lane, the first row's in the
    lowest bits."""
    packed = np.zeros(lanes, np.uint32)
    for row, start in enumerate(range(0, len(levels), lanes)):
        part = levels[start : start + lanes]
        packed[: len(part)] += part.view(np.uint32) << np.uint32(row * bits)
    return packed.view(np.int32)


def unpack(sums: np.ndarray, bits: int) -> np.ndarray:
    """Sums of packed lanes, int32[lanes], to the sums of the levels, int32[32 / bits * lanes], row after row."""
    left, rows = sums.view(np.uint32).copy(), []
    for _ in range(32 // bits):
        row = (left << np.uint32(32 - bits)).view(np.int32) >> np.int32(32 - bits)  # with its sign
        left = left - row.view(np.uint32) >> np.uint32(bits)
        rows.append(row)
    return np.concatenate(rows)


def count_specials(values: np.ndarray) -> np.ndarray:
    """float32[n] to int32[n]: a count of 1 for NaN, +inf or -inf, each in separate SPECIAL_BITS bits."""
    kinds = (np.isnan(values), np.isposinf(values), np.isneginf(values))
    counts: np.ndarray = sum(
        (kind.astype(np.int32) << place * SPECIAL_BITS for place, kind in enumerate(kinds)), np.int32(0)
    )
    return counts


def add_specials(sums: np.ndarray, counts: np.ndarray) -> None:
    """Writes NaN and infinities into float32[n], the sums of the finite values. counts: int32[n], all workers' counts
    added up."""
    mask = (1 << SPECIAL_BITS) - 1
    nans, positive, negative = ((counts >> place * SPECIAL_BITS & mask) > 0 for place in range(3))
    sums[positive] = np.inf
    sums[negative] = -np.inf
    sums[nans | (positive & negative)] = np.nan
