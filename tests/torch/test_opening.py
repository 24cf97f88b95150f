"""Ranks exchange settings through PyTorch's store, and report a rank that is missing."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore, Store, TCPStore

from serene.http import CONTROLLER
from serene.torch import notices, opening
from serene.torch.notices import what_each_does
from tests.ports import some_port

PATIENCE = timedelta(seconds=120)


def stores() -> tuple[TCPStore, TCPStore]:
    """The store of rank 0, which keeps it, and rank 1's."""
    kept = TCPStore("127.0.0.1", 0, 2, is_master=True, timeout=PATIENCE, wait_for_workers=False)
    return kept, TCPStore("127.0.0.1", kept.port, 2, is_master=False, timeout=PATIENCE)


def test_rank_missing_while_a_group_opens_is_named() -> None:
    store = HashStore()
    store.set("transport/0", "")
    with pytest.raises(
        opening.OpeningFailed, match=r"^no message from rank 1 while the group was opened: .*[tT]imeout"
    ):
        opening._agree(store, "transport", 0, 2, "", timedelta(seconds=0.1))


def test_disagreeing_ranks_are_reported_without_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 hosts the store, and may have ended with the same error."""
    monkeypatch.setattr(notices, "TELLING_TIMEOUT_S", 0.0)
    kept, store = stores()
    kept.set("calls/3/0", "all_reduce of float32[1], SUM")
    text = "rank 0: all_reduce of float32[1], SUM; rank 1: all_reduce of float32[2], SUM"
    assert what_each_does(store, 1, 2, 3, "all_reduce of float32[2], SUM") == text
    del kept
    assert what_each_does(store, 1, 2, 4, "a") == "rank 0: unknown; rank 1: a"


def test_rank_0_waits_until_others_read_why_opening_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process hosts the store, and ends with the same error."""
    ask = opening._get

    def slow(store: Store, key: str, other: int, timeout: timedelta) -> str:
        if threading.current_thread() is not threading.main_thread():  # rank 1's
            time.sleep(0.5)
        return ask(store, key, other, timeout)

    monkeypatch.setattr(opening, "_get", slow)
    monkeypatch.setenv(CONTROLLER, f"http://127.0.0.1:{some_port()}")  # where nobody is

    def open_as(store: Store, rank: int) -> None:
        with pytest.raises(opening.NotOpened, match=r"^rank 0 of the group could not create a job: no controller"):
            opening.open_pool(store, rank, 2, PATIENCE, (rank, 2))

    kept, store = stores()
    with ThreadPoolExecutor(1) as other:
        heard = other.submit(open_as, store, 1)
        open_as(kept, 0)
        del kept
        heard.result(120)
