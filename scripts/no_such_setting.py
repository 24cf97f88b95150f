"""Prints make's error for settings that its targets do not have. Each argument of the command is a list of words for an
argument of `message`."""

from __future__ import annotations

import difflib
import sys

# Settings that users may expect, and the settings to use instead.
MEANT = {"STALENESS": "STRATEGY=ssp:3", "QUORUM": "STRATEGY=quorum:3", "K": "STRATEGY=quorum:3", "SYNC": "STRATEGY"}


def message(targets: list[str], refused: list[str], taken: list[str], known: list[str]) -> str:
    """targets: make's goals. refused: given settings that no goal has. taken: the goals' settings. known: all settings
    of a run, for which no spelling is suggested."""
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
