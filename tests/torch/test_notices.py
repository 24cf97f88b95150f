"""Notices of ranks on stderr: which rank they wait for, and which rank is slow."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from torch._C._distributed_c10d import HashStore, TCPStore

from serene.torch.notices import SLOW, LongWaits, SlowRank, await_ranks
from tests.controller.processes import until
from tests.torch.local import Local, outputs, start_ranks

SOON = timedelta(seconds=120)


def test_missing_rank_is_named_once(capfd: pytest.CaptureFixture[str]) -> None:
    store = TCPStore("127.0.0.1", 0, is_master=True)  # torchrun's: PyTorch warns of its wait()s that end in vain
    store.set("here/1", "")
    await_ranks(store, 0, 4, SOON, patience_s=0.1)
    await_ranks(store, 1, 4, SOON, patience_s=0.1)
    assert capfd.readouterr().err == (
        "serene: rank 0 has waited 0.1 s for ranks 2, 3 to open the process group; 'serenectl status' lists the jobs\n"
    )
    await_ranks(store, 2, 4, SOON, (4, 5, 6, 7), patience_s=0.1)
    store.set("here/3", "")
    await_ranks(store, 0, 4, SOON, (4, 5, 6, 7), patience_s=0.1)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("setting", "asked"), [("", False), ("0", False), ("1", True)])
def test_slow_rank_notice_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, setting: str, asked: bool) -> None:
    monkeypatch.setenv(SLOW, setting)
    before = set(threading.enumerate())
    slow = SlowRank(0, lambda: None, [0])
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["serene-slow"] * asked
    slow.stop()


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({1: 3}, "rank 0 has waited 0.1 s for rank 2, in all_reduce; see 'serenectl explain --job 5'"),
        ({1: 3, 2: 2}, "rank 0 has waited 0.1 s for rank 2, in all_reduce; see 'serenectl explain --job 5'"),
        ({1: 3, 2: 3}, "rank 0 has waited 0.1 s for the switch: all ranks are there, in all_reduce; "
                       "see 'serenectl status'"),
    ],
)  # fmt: skip
def test_rank_that_keeps_others_waiting_is_named(
    capsys: pytest.CaptureFixture[str], others: dict[int, int], message: str
) -> None:
    """others: for each other rank, the last collective in which it has waited."""
    store = HashStore()
    for rank, number in others.items():
        store.set(f"waits/{rank}", str(number))
    waits, heard = LongWaits(store, 0, 3, 5, patience_s=0.1), ""
    deadline = time.monotonic() + 120
    while not heard.endswith("\n") and time.monotonic() < deadline:
        waits.waiting(3, "all_reduce")
        heard += capsys.readouterr().err
        time.sleep(0.01)
    waits.over()
    assert heard == f"serene: {message}\n"
    LongWaits(store, 1, 3, 5)._announce(3, "all_reduce", 0.0, threading.Event())
    assert capsys.readouterr().err == "", "the first one that waits has printed it"


def test_slow_rank_is_named_on_rank_0(local: Local, tmp_path: Path) -> None:
    ranks = start_ranks(local, 3, ["-m", "tests.torch.ranks", "lag", str(tmp_path)])
    try:
        until(lambda: any(job.slow is not None for job in local.client.jobs()), "a rank is named", 120)
        explained = local.serenectl("explain").stdout
        assert ranks[0].stdout is not None
        line = ranks[0].stdout.readline()
    finally:
        (tmp_path / "over").touch()
        texts = outputs(ranks)
    assert "worker 1 is slow: the others wait " in explained
    assert line.startswith("serene: rank 1 is slow: the others wait "), (line, texts)
    assert "it computes longer. See 'serenectl explain --job " in line
