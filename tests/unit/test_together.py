"""Functions called at the same time, in processes of their own: what they return, and the first that fails."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from serene.experiments.shared.together import CONTEXT, CallFailed, results


def test_calls_meet_and_return_their_results_by_name() -> None:
    together = CONTEXT.Barrier(3)

    def meets(number: int) -> tuple[int, int]:
        together.wait(60)
        return number, os.getpid()

    found = results({f"call {number}": lambda number=number: meets(number) for number in range(3)}, 60)  # type: ignore[misc]
    assert [number for number, _ in found.values()] == [0, 1, 2] and [*found] == ["call 0", "call 1", "call 2"]
    assert len({os.getpid(), *(pid for _, pid in found.values())}) == 4


@pytest.mark.parametrize(
    ("call", "patience_s", "message"),
    [
        (lambda: 1 // 0, 60, "^bad: ZeroDivisionError: "),
        (lambda: os._exit(3), 60, "^bad: its process died$"),
        (lambda: time.sleep(600), 0.2, "^did not end within 0.2 s: waits, bad$"),
    ],
    ids=["raises", "dies", "hangs"],
)
def test_failed_call_ends_the_others_and_is_named(call: Callable[[], object], patience_s: float, message: str) -> None:
    before = {child.pid for child in CONTEXT.active_children()}
    with pytest.raises(CallFailed, match=message):
        results({"waits": lambda: time.sleep(600), "bad": call}, patience_s)
    assert {child.pid for child in CONTEXT.active_children()} == before
