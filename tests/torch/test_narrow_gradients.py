"""`SERENE_PRECISION`: gradients of 16 and 8 bits, all else as before."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.torch.local import Local, outputs, start_ranks

WORKERS = 2
WORKER = ["-m", "tests.torch.narrow_gradients"]


def precision(*bits: str) -> list[dict[str, str]]:
    return [{"SERENE_PRECISION": of} for of in bits]


def trained(local: Local, bits: str) -> list[dict[str, Any]]:
    """What each rank found."""
    processes = start_ranks(local, WORKERS, WORKER, precision(bits, bits))
    return [json.loads(text.splitlines()[-1]) for text in outputs(processes)]


@pytest.fixture(scope="module")
def by_bits(local: Local) -> dict[int, list[dict[str, Any]]]:
    return {bits: trained(local, str(bits)) for bits in (32, 16, 8)}


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_gradients_are_off_by_the_levels_of_their_format(by_bits: dict[int, list[dict[str, Any]]], bits: int) -> None:
    """A level for each worker, of which T has so many; and T is at most four times and twice the largest."""
    levels = (2 ** (bits - 1) - 1) // WORKERS
    most = {32: 1e-6, 16: 4 * WORKERS / levels, 8: 2 * WORKERS / levels}[bits]
    for said in by_bits[bits]:
        assert max(said["errors"]) < most
        assert bits == 32 or max(said["errors"]) > most / 100  # or they would not have so few bits
        assert said["same"]


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_ranks_that_end_earlier_join(by_bits: dict[int, list[dict[str, Any]]], bits: int) -> None:
    """What a rank that has joined sums beside its backward pass, the others sum in theirs."""
    assert [said["joined"] for said in by_bits[bits]] == [2, 3]


def test_fewer_bits_are_fewer_packets(by_bits: dict[int, list[dict[str, Any]]]) -> None:
    sent = {bits: said[0]["packets"] for bits, said in by_bits.items()}
    assert sent[16] < 0.7 * sent[32] and sent[8] < 0.5 * sent[32]


@pytest.mark.parametrize("bits", [16, 8])
def test_it_learns_and_other_sums_keep_all_their_bits(by_bits: dict[int, list[dict[str, Any]]], bits: int) -> None:
    for said in by_bits[bits]:
        assert np.allclose(said["losses"], said["exact"], rtol=1e-6)
        assert said["losses"][-1] < said["losses"][0]
        assert said["losses"][-1] == pytest.approx(by_bits[32][0]["losses"][-1], rel=0.02)


def test_ranks_with_different_precisions_are_told_at_once(local: Local) -> None:
    for text in outputs(start_ranks(local, WORKERS, WORKER, precision("16", "8")), expect=1):
        assert "NotOpened: rank 1 of the group: $SERENE_PRECISION is 8 here and 16 on rank 0 of the group" in text


def test_another_precision_is_refused_on_all_ranks(local: Local) -> None:
    for text in outputs(start_ranks(local, WORKERS, WORKER, precision("4", "4")), expect=1):
        assert "NotOpened: rank 0 of the group got no job: $SERENE_PRECISION is '4': expected 32, 16 or 8" in text
