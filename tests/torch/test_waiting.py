"""Which ranks the others are told to have waited for in vain."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, Store, TCPStore

import serene.torch.store as store_module
from serene.torch import waiting
from serene.torch.waiting import RanksWaiting
from tests.controller.processes import pause, until


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rank gives another time to begin, or to look."""
    monkeypatch.setattr(waiting, "TELLING_TIMEOUT_S", 0.0)
    monkeypatch.setattr(waiting, "NOTING_TIMEOUT_S", 0.0)


def begin(store: Store, ranks: list[RanksWaiting], *numbers: int) -> None:
    for number in numbers:
        ranks[number].begin()
    until(lambda: store.check([f"reducer/waits/{number}" for number in numbers]), "they say that they wait")


def test_a_rank_that_has_begun_to_wait_is_not_missing() -> None:
    """Though its own patience is not over yet."""
    store = HashStore()
    ranks = [RanksWaiting("reducer", rank, 3, store) for rank in range(3)]
    begin(store, ranks, 0)
    assert ranks[0].absent() == "ranks 1, 2"
    begin(store, ranks, 2)
    assert ranks[0].absent() == "rank 1"
    begin(store, ranks, 1)
    assert ranks[0].absent() == "other workers, though all ranks wait"


def test_a_rank_that_went_on_does_not_wait() -> None:
    store = HashStore()
    ranks = [RanksWaiting("reducer", rank, 3, store) for rank in range(3)]
    begin(store, ranks, 0, 1, 2)
    for late in (1, 2):
        ranks[late].end()
    until(lambda: not store.check(["reducer/waits/1"]) and not store.check(["reducer/waits/2"]), "they say so")
    assert ranks[0].absent() == "ranks 1, 2"
    begin(store, ranks, 2)
    assert ranks[0].absent() == "rank 1"


def test_two_reducers_do_not_answer_for_each_other() -> None:
    store = HashStore()
    first, second = (RanksWaiting(name, rank, 2, store) for rank, name in enumerate(("first", "second")))
    for rank in (first, second):
        rank.begin()
    assert first.absent() == "rank 1" and second.absent() == "rank 0"


def test_what_an_earlier_attempt_has_left_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchrun starts ranks again, which find its store as it was."""
    store = HashStore()
    for attempt, said in enumerate(("other workers, though all ranks wait", "rank 0")):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(attempt))
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            rank = RanksWaiting.of_all("reducer")
            if attempt == 0:
                rank.begin()
            assert rank.absent() == said
        finally:
            dist.destroy_process_group()


KEEPER = """
import sys
from torch._C._distributed_c10d import TCPStore
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""


def test_a_store_that_does_not_answer_keeps_no_rank_from_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that keeps it was stopped: it lives, and its connections do."""
    monkeypatch.setattr(store_module, "ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr(waiting, "LOOK_S", 0.0)
    with subprocess.Popen([sys.executable, "-c", KEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        try:
            assert keeper.stdout is not None
            store = TCPStore("127.0.0.1", int(keeper.stdout.readline()), is_master=False)
            rank = RanksWaiting("reducer", 1, 3, store)
            rank.begin()
            until(lambda: store.check(["reducer/waits/1"]), "it says that it waits")
            pause(keeper)
            for _ in range(3):
                rank.go_on()
            assert rank.absent() == ("other ranks; which, nobody can tell: PyTorch's store has not answered for 0.5 s")
            rank.end()
            rank.begin()
        finally:
            keeper.kill()


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
    until(lambda: store.check(["reducer/waits/0", "reducer/waits/2"]), "both say that they wait")
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
