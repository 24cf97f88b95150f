"""How long a study will take: said before it begins, by its cells' settings and by what was done here before."""

from __future__ import annotations

from collections.abc import Iterable

MINUTE, HOUR = 60.0, 3600.0


def in_words(seconds: float) -> str:
    """Rounded: nobody knows it to the second."""
    if seconds < MINUTE:
        return "less than a minute"
    if seconds < 1.5 * HOUR:
        count = round(seconds / MINUTE)
        return f"about {count} {'minute' if count == 1 else 'minutes'}"
    return f"about {seconds / HOUR:.1f} hours"


def pace(done: Iterable[tuple[float, float]]) -> float | None:
    """Of cells that were done here, (seconds, expected seconds): how many times as long as expected all of them took;
    None if there are none."""
    took = expected = 0.0
    for one, other in done:
        took, expected = took + one, expected + other
    return took / expected if expected else None


def announcement(done: int, whole: int, seconds: float, measured: int) -> str:
    """done: of ``whole`` cells. seconds: that the others will take. measured: cells that this follows from; 0 if
    it is a guess."""
    if done == whole:
        return f"all {whole:,} cells are done already"
    follows = f"by what {measured:,} of them took on this machine" if measured else "a guess: none was done here before"
    return (
        f"{whole:,} cells, {done:,} of them done already. The others will take {in_words(seconds)} on this machine "
        f"({follows}). Ctrl-C stops at any time: what is done stays, and the same command goes on"
    )
