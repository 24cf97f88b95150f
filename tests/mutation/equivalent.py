"""Mutants that no test can kill, because they are the same program in other words; and why they are."""

from __future__ import annotations

from tests.mutation.mutants import Mutant

# (program, part, operator, how the place begins) -> why nobody can tell
EQUIVALENT: dict[tuple[str, str, str, str], str] = {}


def why_equivalent(mutant: Mutant) -> str:
    """Empty for a mutant that ought to be killed."""
    for (program, part, operator, place), why in EQUIVALENT.items():
        same = (program, part, operator) == (mutant.program, mutant.part, mutant.operator)
        if same and mutant.place.startswith(place):
            return why
    return ""
