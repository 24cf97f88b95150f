"""Pools against the P4 program in process and in virtual time: sums, odd sizes, bad networks, whatever ends them."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.correctness.virtual.switch import P4Switch
from serene.client.blocks import PIECES_PER_BLOCK, Layout
from serene.program import Program
from tests.support.pools import FINE, PoolRun, lossy

LANES = 320


@pytest.fixture(scope="module")
def switch() -> P4Switch:
    return P4Switch(Program.load("serene"))


def vectors(workers: int, length: int, seed: int = 0) -> list[np.ndarray]:
    """Magnitudes that change from block to block."""
    magnitudes = np.float32(10.0) ** (np.arange(length) // 1000 % 13 - 6).astype(np.float32)
    draws = [np.random.default_rng([seed, worker]).normal(size=length) for worker in range(workers)]
    return [draw.astype(np.float32) * magnitudes for draw in draws]


def check(results: list[np.ndarray], contributed: list[np.ndarray], lanes: int = LANES) -> None:
    """All the same bits, and each sum as exact as serene/client/blocks.py says."""
    for result in results:
        assert np.array_equal(result.view(np.uint32), results[0].view(np.uint32))
    exact = np.sum([vector.astype(np.float64) for vector in contributed], axis=0)
    block = PIECES_PER_BLOCK * lanes
    bits = (len(contributed) - 1).bit_length()
    for start in range(0, len(exact), block):
        part = slice(start, start + block)
        largest = max(float(np.abs(vector[part]).max()) for vector in contributed)
        bound = len(contributed) * 2.0 ** (bits - 28) * largest + np.abs(exact[part]) * 2.0**-24 + 2.0**-150
        assert (np.abs(results[0][part] - exact[part]) <= bound).all()


@pytest.mark.parametrize("faults", [FINE, lossy(5)], ids=["fine", "lossy"])
@pytest.mark.parametrize("length", [0, 1, LANES - 1, LANES, LANES + 1, 4 * LANES + 1, 100 * LANES + 7])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_sum_of_any_length(switch: P4Switch, workers: int, length: int, faults) -> None:  # type: ignore[no-untyped-def]
    given = vectors(workers, length)
    check(PoolRun(switch, workers, 8, faults).all_reduce(given), given)


def test_slots_too_short_for_the_exponents_are_refused() -> None:
    with pytest.raises(Exception, match="slots of 5 lanes are too short for a pool of 4 workers"):
        Layout(4, 5)
