"""A short form of `tests.torch.chaos`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.controller.processes import embedded_switch
from tests.torch.chaos import STEPS_BETWEEN, Chaos, account
from tests.torch.sharers import Plant


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    for switch in embedded_switch(tmp_path / "switch.log"):
        made = Plant(switch, tmp_path)
        yield made
        made.stop()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kinds", [("worker", "controller"), ("switch", "worker")], ids=str)
def test_every_contribution_is_accounted_for(plant: Plant, kinds: tuple[str, ...]) -> None:
    chaos = Chaos(plant, 1, kinds)
    chaos.goes_on(30)
    died = []
    for _ in range(4):
        died.append(chaos.die())
        chaos.goes_on(STEPS_BETWEEN)
        if "switch" not in kinds:  # under another strategy than BSP a lost switch may repeat a contribution
            chaos.swap()
    assert set(died) == set(kinds), "the seed makes all kinds die"
    chaos.end()


def test_the_account_sees_what_is_lost_and_what_counts_twice() -> None:
    one, two = (np.random.default_rng(seed).integers(-1000, 1000, 700, np.int32) for seed in (0, 1))
    account(one, [one, two])
    partly = one.copy()
    partly[:320] += two[:320]
    account(partly, [one, two])
    for wrong in (2 * one, one + 1, -two):
        with pytest.raises(AssertionError):
            account(wrong, [one, two])
