"""Which ranks the others are told to have waited for in vain."""

from __future__ import annotations

import threading

import pytest
from torch._C._distributed_c10d import HashStore, TCPStore

from serene.torch import waiting
from serene.torch.waiting import RanksWaiting
from tests.controller.processes import until


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rank gives another time to begin, or to look."""
    monkeypatch.setattr(waiting, "TELLING_TIMEOUT_S", 0.0)
    monkeypatch.setattr(waiting, "NOTING_TIMEOUT_S", 0.0)


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


def lost(store: TCPStore) -> bool:
    try:
        store.check(["nothing"])
    except RuntimeError:
        return True
    return False


def test_the_rank_that_keeps_the_store_stays_until_the_others_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its patience is over first."""
    monkeypatch.setattr(waiting, "NOTING_TIMEOUT_S", 60.0)
    monkeypatch.setattr(waiting, "LOOK_S", 0.0)
    kept = [TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)]
    store = TCPStore("127.0.0.1", kept[0].port, is_master=False)
    ranks = [RanksWaiting("reducer", 0, 3, kept[0])]
    late = RanksWaiting("reducer", 2, 3, store)
    ranks[0].begin()
    late.begin()
    said: list[str] = []
    first = threading.Thread(target=lambda: said.append(ranks[0].absent()))
    first.start()
    until(lambda: store.check(["reducer/over"]), "rank 0 is at its end")
    assert first.is_alive(), "it does not stay"
    while first.is_alive():
        late.go_on()
    assert said == ["rank 1"]
    ranks.clear()
    kept.clear()
    until(lambda: lost(store), "the store is lost")
    assert late.absent() == "rank 1"


def test_a_rank_that_was_not_told_before_the_store_ended_says_so() -> None:
    """Whoever kept it was killed, and may be missing as well."""
    kept = [TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)]
    store = TCPStore("127.0.0.1", kept[0].port, is_master=False)
    RanksWaiting("reducer", 0, 3, kept[0]).begin()
    late = RanksWaiting("reducer", 2, 3, store)
    late.begin()
    late.go_on()
    kept.clear()
    until(lambda: lost(store), "the store is lost")
    late.go_on()
    assert late.absent().startswith("other ranks; which, nobody can tell: ")
