"""A short form of `tests.torch.chaos`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.torch.chaos import STEPS_BETWEEN, WIDTH, Chaos, account
from tests.torch.sharers import Plant

ELASTIC = {"workers": 3, "places": 6, "evict_after": 1.5, "strategy": "asp", "compute_s": 0.05, "width": WIDTH}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kinds", "settings"),
    [(("switch", "worker"), {}), (("worker", "controller"), ELASTIC)],
    ids=str,
)
def test_chaos_accounts_for_every_contribution(plant: Plant, kinds: tuple[str, ...], settings: dict[str, Any]) -> None:
    chaos = Chaos(plant, 1, kinds, **settings)
    chaos.goes_on(30)
    died = []
    for _ in range(4):
        died.append(chaos.die())
        chaos.goes_on(STEPS_BETWEEN)
        if "switch" not in kinds:  # under another strategy than BSP a lost switch may repeat a contribution
            chaos.swap()
    assert set(died) == set(kinds), "the seed makes all kinds die"
    chaos.end()
    assert all("NoController: no controller at" in text for text in chaos.ended), chaos.ended


def test_account_detects_lost_and_repeated_contributions() -> None:
    one, two = (np.random.default_rng(seed).integers(-1000, 1000, 700, np.int32) for seed in (0, 1))
    account(one, [one, two])
    partly = one.copy()
    partly[:320] += two[:320]
    account(partly, [one, two])
    for wrong in (2 * one, one + 1, -two):
        with pytest.raises(AssertionError):
            account(wrong, [one, two])
    account(2 * one - two, [one, one], [two])  # under way when the switch died, and when its process did
    with pytest.raises(AssertionError):
        account(-two, [two], [one])
