"""Whether every contribution was counted once: what a run says at its end."""

from __future__ import annotations

from serene.experiments.run.launch import balance
from serene.experiments.run.results import Json, miscounted

SENT: list[Json] = [{"worker": 0, "contributions_sent": 10}, {"worker": 1, "contributions_sent": 10}]


def said(applied: int | None, wrong: list[int] | None, under_way: int = 0) -> str:
    summary = {"contributions_sent": 20, "contributions_applied": applied, "miscounted": wrong}
    return balance({**summary, "contributions_under_way": under_way})


def test_one_worker_s_loss_does_not_make_up_for_another_s_double_count() -> None:
    assert miscounted(SENT, [10, 10]) == []
    assert miscounted(SENT, [9, 11]) == [0, 1]
    assert said(20, [0, 1]) == ", applied 20: NOT EQUAL for worker 0, 1"
    assert said(20, []) == ", applied 20: exactly once"


def test_after_a_kill_sums_are_all_that_can_be_compared() -> None:
    assert said(23, None, under_way=3) == ", applied 23: the sums agree"
    assert said(24, None, under_way=3).endswith("NOT EQUAL") and said(19, None, under_way=3).endswith("NOT EQUAL")


def test_where_nobody_counts_there_is_no_verdict() -> None:
    assert miscounted(SENT, None) is None and said(None, None) == ""
