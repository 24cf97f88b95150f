"""What a mutant is, and which of all that there could be are taken."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mutant:
    """A compiled program with one thing changed.

    part: of the program, as barrier. operator: what kind of change. place: what was changed, as the program has it.
    text: makes the whole program after it.
    """

    program: str
    part: str
    operator: str
    place: str
    text: Callable[[], str] = field(compare=False, repr=False)

    @property
    def kind(self) -> tuple[str, str]:
        return self.part, self.operator


def drawn(mutants: Iterable[Mutant], seed: int) -> Iterator[Mutant]:
    """All of them, in an order that a seed decides: first one of each kind, so that the first few dozen are of every
    part and every operator, then a second one of each, and so on."""
    rng = random.Random(seed)
    kinds: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        kinds[mutant.kind].append(mutant)
    for of_kind in kinds.values():
        rng.shuffle(of_kind)
    while kinds:
        # The parts take turns, that none is left out when few are drawn.
        parts: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for kind in sorted(kinds):
            parts[kind[0]].append(kind)
        for of_part in parts.values():
            rng.shuffle(of_part)
        while parts:
            for part in sorted(parts):
                yield kinds[parts[part].pop()].pop()
            parts = {part: left for part, left in parts.items() if left}
        kinds = {kind: left for kind, left in kinds.items() if left}
