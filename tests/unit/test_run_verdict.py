"""A run's last line: whether every contribution was applied exactly once."""

from __future__ import annotations

from serene.experiments.run.launch import balance
from serene.experiments.run.results import Json, miscounted

SENT: list[Json] = [{"worker": 0, "contributions_sent": 10}, {"worker": 1, "contributions_sent": 10}]


def said(applied: int | None, wrong: list[int] | None, under_way: int = 0) -> str:
    summary = {"contributions_sent": 20, "contributions_applied": applied, "miscounted": wrong}
    return balance({**summary, "contributions_under_way": under_way})


def test_verdict_compares_each_worker_not_only_the_sum() -> None:
    assert miscounted(SENT, [10, 10]) == []
    assert miscounted(SENT, [9, 11]) == [0, 1]
    assert said(20, [0, 1]) == ", applied 20: NOT EQUAL for worker 0, 1"
    assert said(20, []) == ", applied 20: exactly once"


def test_verdict_after_a_kill_compares_only_sums() -> None:
    assert said(23, None, under_way=3) == ", applied 23: the sums agree"
    assert said(24, None, under_way=3).endswith("NOT EQUAL") and said(19, None, under_way=3).endswith("NOT EQUAL")


def test_verdict_is_empty_without_switch_counts() -> None:
    assert miscounted(SENT, None) is None and said(None, None) == ""
