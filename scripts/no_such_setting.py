"""What make says about settings that the targets asked for do not take; each argument is a list of words."""

from __future__ import annotations

import difflib
import sys

# Other words for a setting's value.
MEANT = {"STALENESS": "STRATEGY=ssp:3", "QUORUM": "STRATEGY=quorum:3", "K": "STRATEGY=quorum:3", "SYNC": "STRATEGY"}


def sentence(targets: list[str], odd: list[str], taken: list[str], known: list[str]) -> str:
    """odd: settings given; taken: those of the targets; known: those of other targets."""
    what = f"{' '.join(odd)}: no setting of make {' '.join(targets)}"
    if not taken:
        return f"{what}, which takes none"
    unknown = [name.upper() for name in odd if name not in known]
    near = [
        [MEANT[name]] if name in MEANT and "STRATEGY" in taken else difflib.get_close_matches(name, taken, 1, 0.4)
        for name in unknown
    ]
    meant = " and ".join(dict.fromkeys(name for found in near for name in found))
    return f"{what}, which takes {', '.join(taken)}" + (f"; did you mean {meant}?" if meant else "")


if __name__ == "__main__":
    print(sentence(*(argument.split() for argument in sys.argv[1:])))
