"""Which ranks the others are told to have waited for in vain."""

from __future__ import annotations

import pytest
from torch._C._distributed_c10d import HashStore

from serene.torch import waiting
from serene.torch.waiting import RanksWaiting


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rank gives another time to begin."""
    monkeypatch.setattr(waiting, "TELLING_TIMEOUT_S", 0.0)


@pytest.fixture
def ranks() -> list[RanksWaiting]:
    store = HashStore()
    return [RanksWaiting("reducer", rank, 3, store) for rank in range(3)]


def test_a_rank_that_has_begun_to_wait_is_not_missing(ranks: list[RanksWaiting]) -> None:
    """Though its own patience is not over yet."""
    ranks[0].begin()
    assert ranks[0].absent() == "ranks 1, 2"
    ranks[2].begin()
    assert ranks[0].absent() == "rank 1"
    ranks[1].begin()
    assert ranks[0].absent() == "other workers, though all ranks wait"


def test_a_rank_that_went_on_does_not_wait(ranks: list[RanksWaiting]) -> None:
    for rank in ranks:
        rank.begin()
    for late in (1, 2):
        ranks[late].end()
    assert ranks[0].absent() == "ranks 1, 2"
    ranks[2].begin()
    assert ranks[0].absent() == "rank 1"


def test_two_reducers_do_not_answer_for_each_other() -> None:
    store = HashStore()
    first, second = (RanksWaiting(name, rank, 2, store) for rank, name in enumerate(("first", "second")))
    for rank in (first, second):
        rank.begin()
    assert first.absent() == "rank 1" and second.absent() == "rank 0"
