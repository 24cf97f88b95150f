"""Expected sums over workers: block exponents implemented from their description, without blocks.py."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

PIECES = 4  # pieces of ``lanes`` values in a block


def random_values(rng: np.random.Generator, length: int, lanes: int) -> np.ndarray:
    """float32[length]: every few lanes hold values of another kind, so that all kinds occur."""
    kinds = rng.integers(0, 8, size=-(-length // lanes) if length else 0).repeat(lanes)[:length]
    normal = rng.normal(size=length)
    exponents = rng.integers(-150, 128, size=length)
    with np.errstate(over="ignore", under="ignore"):
        wide = np.ldexp(rng.uniform(-1, 1, size=length), exponents)
        values = np.select(
            [kinds < 3, kinds == 3, kinds == 4, kinds == 5, kinds == 6],
            [normal, 0.0, wide, normal * 1e-42, normal * 1e38],
            rng.choice([np.nan, np.inf, -np.inf, 0.0, 1.5], size=length),
        )
        return values.astype(np.float32)


def expected(vectors: Sequence[np.ndarray], lanes: int) -> np.ndarray:
    """The sum that the workers have to read, exact to the bit. vectors: float32[n] of each worker; the result as
    well."""
    result = np.zeros(len(vectors[0]), np.float32)
    for start in range(0, len(result), PIECES * lanes):
        parts = [vector[start : start + PIECES * lanes].astype(np.float64) for vector in vectors]
        finite = [np.where(np.isfinite(part), part, 0.0) for part in parts]
        largest = max(float(np.abs(part).max()) for part in finite)
        total = np.zeros(len(parts[0]))
        if largest:
            power = int(np.floor(np.log2(largest))) if largest >= 2.0**-126 else -127
            top = 2.0 ** (
                power - (power + 127) % 4 + 4
            )  # a class begins where float32's exponent field is divisible by 4
            step = top * 2.0 ** ((len(vectors) - 1).bit_length() - 31)
            total = np.sum([np.rint(part / step) for part in finite], axis=0) * step
        with np.errstate(over="ignore", invalid="ignore"):
            specials = np.sum([np.where(np.isfinite(part), 0.0, part) for part in parts], axis=0)
            result[start : start + PIECES * lanes] = np.where(np.isfinite(specials), total, specials)
    return result


def exactly(vectors: Sequence[np.ndarray]) -> list[Fraction]:
    """Sums without rounding."""
    return [sum((Fraction(float(value)) for value in column), Fraction()) for column in zip(*vectors, strict=True)]


def same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two arrays are equal to the bit; any NaN equals any other."""
    nans = np.isnan(first) & np.isnan(second)
    return bool(((first.view(np.uint32) == second.view(np.uint32)) | nans).all())


def within_bound(result: np.ndarray, vectors: Sequence[np.ndarray], lanes: int) -> bool:
    """Whether ``result`` is within the bound that blocks.py states for finite values, compared with sums
    in float64."""
    exact = np.sum([vector.astype(np.float64) for vector in vectors], axis=0)
    workers = len(vectors)
    bounds = np.zeros(len(exact))
    for start in range(0, len(exact), PIECES * lanes):
        part = slice(start, start + PIECES * lanes)
        largest = max(float(np.abs(vector[part]).max()) for vector in vectors)
        coarse = workers * 2.0 ** ((workers - 1).bit_length() - 28) * largest if largest >= 2.0**-123 else 0.0
        bounds[part] = coarse
    with np.errstate(over="ignore"):
        rounded = [(exact + sign * bounds).astype(np.float32) for sign in (-1, 1)]
    return bool(((rounded[0] <= result) & (result <= rounded[1])).all())


def within_levels(result: np.ndarray, vectors: Sequence[np.ndarray], lanes: int, bits: int) -> bool:
    """Whether ``result`` can be the sum of finite values in 16 or 8 bits: each worker's value is rounded to one of the
    two levels next to it."""
    exact = np.sum([vector.astype(np.float64) for vector in vectors], axis=0)
    workers = len(vectors)
    levels = (2 ** (bits - 1) - 1) // workers
    block, powers = PIECES * lanes * (32 // bits), 2 if bits == 16 else 1  # powers of two in a class
    right = True
    for start in range(0, len(exact), block):
        part = slice(start, start + block)
        largest = max(float(np.abs(vector[part]).max()) for vector in vectors)
        spread = largest * 2.0 ** (levels - 1).bit_length() / levels
        field = int(np.floor(np.log2(spread))) + 127 if spread >= 2.0**-126 else 0  # float32's
        level = 2.0 ** ((field // powers + 1) * powers - 127 - (levels - 1).bit_length())
        most = workers * level * (1 + 2.0**-15) + np.abs(exact[part]) * 2.0**-23
        right &= bool((np.abs(result[part] - exact[part]) <= most).all())
    return right


def given_limit(workers: int, bits: int, unit: int) -> float:
    """The largest magnitude of one worker's values where its integers count multiples of 2 ** unit: the highest level;
    in 32 bits the largest float32 of which the sum over all workers fits."""
    room = 31 - (workers - 1).bit_length()
    return 2.0**unit * ((2**24 - 1) * 2.0 ** (room - 24) if bits == 32 else (2 ** (bits - 1) - 1) // workers)


def within_given(result: np.ndarray, vectors: Sequence[np.ndarray], bits: int, unit: int) -> bool:
    """Whether ``result`` is the sum of the values cut off at the limit, to within one unit per worker; NaN and
    infinities have to agree to the bit."""
    limit = given_limit(len(vectors), bits, unit)
    finite = [np.where(np.isfinite(vector), vector, 0).astype(np.float64) for vector in vectors]
    exact = np.sum([np.clip(vector, -limit, limit) for vector in finite], axis=0)
    with np.errstate(invalid="ignore"):
        specials = np.sum([np.where(np.isfinite(vector), np.float32(0), vector) for vector in vectors], axis=0)
    plain = np.isfinite(specials)
    most = len(vectors) * 2.0**unit * (1 + 2.0**-15) + np.abs(exact) * 2.0**-23
    right = np.abs(np.where(plain, result, 0) - np.where(plain, exact, 0)) <= most
    return bool(right.all()) and same(result[~plain], specials[~plain].astype(np.float32))


def right(
    result: np.ndarray, vectors: Sequence[np.ndarray], lanes: int, bits: int = 32, unit: int | None = None
) -> bool:
    """Whether ``result`` is the sum, as it has to be in this format, of finite values in 16 and 8 bits."""
    if unit is not None:
        return within_given(result, vectors, bits, unit)
    return within_levels(result, vectors, lanes, bits) if bits != 32 else same(result, expected(vectors, lanes))
