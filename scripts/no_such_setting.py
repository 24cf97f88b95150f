"""Prints make's message about settings that its targets do not take. Each argument is a list of words, as `message`
takes them."""

from __future__ import annotations

import difflib
import sys

# Settings that people may expect, and what they are called here.
MEANT = {"STALENESS": "STRATEGY=ssp:3", "QUORUM": "STRATEGY=quorum:3", "K": "STRATEGY=quorum:3", "SYNC": "STRATEGY"}


def message(targets: list[str], refused: list[str], taken: list[str], known: list[str]) -> str:
    """targets: that make was asked for. refused: settings given that none of them takes. taken: settings that they
    take. known: all settings of a run, which are not misspelt."""
    what = f"{' '.join(refused)}: no setting of make {' '.join(targets)}"
    if not taken:
        return f"{what}, which takes none"
    unknown = [name.upper() for name in refused if name not in known]
    near = [
        [MEANT[name]] if name in MEANT and "STRATEGY" in taken else difflib.get_close_matches(name, taken, 1, 0.4)
        for name in unknown
    ]
    meant = " and ".join(dict.fromkeys(name for found in near for name in found))
    return f"{what}, which takes {', '.join(taken)}" + (f"; did you mean {meant}?" if meant else "")


if __name__ == "__main__":
    print(message(*(argument.split() for argument in sys.argv[1:])))
