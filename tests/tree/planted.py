"""Faults planted in the tree's rules, one by one, to see whether random runs find them."""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

from tests.planted import faults, main
from tests.tree.simulation import Broken
from tests.tree.simulation import play as play_run

FAULTS = faults("tree")


def play(number: int) -> str | None:
    try:
        play_run(number)
    except Broken as broken:
        return str(broken)
    return None


if __name__ == "__main__":
    raise SystemExit(ended(lambda: main(lambda: play, FAULTS)))
