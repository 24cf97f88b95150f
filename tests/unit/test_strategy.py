"""Strategies: their texts, the policies that they compile to, and refusals."""

from __future__ import annotations

import pytest

from serene.strategy import (
    ASP,
    BSP,
    SSP,
    BadStrategy,
    Mixed,
    PolicyFields,
    Quorum,
    Strategy,
    parse,
    strategy_from_dict,
    to_dict,
    to_text,
)
from serene.wire import UNBOUNDED, ReadMode

LATEST, SNAPSHOT = ReadMode.LATEST, ReadMode.SNAPSHOT


@pytest.mark.parametrize(
    ("text", "strategy", "fields", "shown"),
    [
        ("bsp", BSP(), PolicyFields(0b1111, 0b1111, 0, 4, SNAPSHOT), "BSP"),
        ("ssp:3", SSP(3), PolicyFields(0b1111, 0b1111, 3, 4, LATEST), "SSP(3)"),
        ("asp", ASP(), PolicyFields(0b1111, 0, UNBOUNDED, 0, LATEST), "ASP"),
        ("quorum:3", Quorum(3), PolicyFields(0b1111, 0b1111, 0, 3, SNAPSHOT), "3-of-n"),
        ("mixed:3,1", Mixed((1, 3)), PolicyFields(0b1111, 0b0101, 0, 2, SNAPSHOT), "Mixed(asynchronous 1, 3)"),
        ("mixed:0:2", Mixed((0,), 2), PolicyFields(0b1111, 0b1110, 2, 3, LATEST), "Mixed(asynchronous 0, staleness 2)"),
    ],
)
def test_strategy_text_dict_and_compiled_fields_round_trip(
    text: str, strategy: Strategy, fields: PolicyFields, shown: str
) -> None:
    assert parse(text) == parse(text.upper()) == parse(to_text(strategy)) == strategy
    assert strategy.compile([0, 1, 2, 3]) == fields
    assert strategy_from_dict(to_dict(strategy)) == strategy
    assert str(strategy) == shown


def test_strategy_compiles_for_non_consecutive_members() -> None:
    assert BSP().compile([1, 4]) == PolicyFields(0b10010, 0b10010, 0, 2, SNAPSHOT)


def test_unknown_worker_error_is_short_for_large_jobs() -> None:
    """Nobody reads a line that names each of 256 workers."""
    with pytest.raises(BadStrategy, match=r"worker 500 is not in the job; it has 0 to 255$"):
        Mixed((500,)).compile(range(256))
    with pytest.raises(BadStrategy, match=r"it has 0, 1, 2, 3, 4, 5, 6, 8 or 9$"):  # 7 has left
        Mixed((7,)).compile([0, 1, 2, 3, 4, 5, 6, 8, 9])
