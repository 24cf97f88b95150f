"""What ranks tell each other by PyTorch's store, and what is said when one of them is not there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore, TCPStore

from serene.torch import group, opening
from serene.torch.group import what_each_does
from tests.ports import some_port


def test_a_rank_that_dies_while_a_group_is_made_is_named() -> None:
    store = HashStore()
    store.set("transport/0", "")
    with pytest.raises(opening.OpeningFailed, match=r"^nothing from rank 1 of the group as it was made: .*[tT]imeout"):
        opening._agree(store, "transport", 0, 2, "", timedelta(seconds=0.1))


def test_ranks_that_disagree_are_told_of_though_the_store_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 keeps it, and may have ended by the same error."""
    monkeypatch.setattr(group, "TELLING_TIMEOUT_S", 0.0)
    port, patience = some_port(), timedelta(seconds=60)
    kept = TCPStore("127.0.0.1", port, 2, is_master=True, timeout=patience, wait_for_workers=False)
    store = TCPStore("127.0.0.1", port, 2, is_master=False, timeout=patience)
    kept.set("calls/3/0", "all_reduce of float32[1], SUM")
    said = "rank 0: all_reduce of float32[1], SUM; rank 1: all_reduce of float32[2], SUM"
    assert what_each_does(store, 1, 2, 3, "all_reduce of float32[2], SUM") == said
    del kept
    assert what_each_does(store, 1, 2, 4, "a") == "rank 0: unknown; rank 1: a"
