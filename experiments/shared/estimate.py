"""Estimates how long a study will take, from what its cells are expected to take and from those that are done."""

from __future__ import annotations

from collections.abc import Iterable

MINUTE, HOUR = 60.0, 3600.0


def in_words(seconds: float) -> str:
    """A rounded length of time, for people: "about 3 minutes"."""
    if seconds < MINUTE:
        return "less than a minute"
    if seconds < 1.5 * HOUR:
        count = round(seconds / MINUTE)
        return f"about {count} {'minute' if count == 1 else 'minutes'}"
    return f"about {seconds / HOUR:.1f} hours"


def pace(done: Iterable[tuple[float, float]]) -> float | None:
    """How many times as long as expected the cells took together. done: for each, (seconds, expected seconds). None if
    there are none."""
    took = expected = 0.0
    for one, other in done:
        took, expected = took + one, expected + other
    return took / expected if expected else None


def announcement(done: int, whole: int, seconds: float, measured: int) -> str:
    """What a study prints before it begins. done: cells that are done, of ``whole``. seconds: that the others will
    take. measured: how many cells that estimate follows from; 0 if it is a guess."""
    if done == whole:
        return f"all {whole:,} cells are done already"
    follows = f"by what {measured:,} of them took on this machine" if measured else "a guess: none was done here before"
    return (
        f"{whole:,} cells, {done:,} of them done already. The others will take {in_words(seconds)} on this machine "
        f"({follows}). Ctrl-C stops at any time: finished cells are kept; rerun to resume"
    )
