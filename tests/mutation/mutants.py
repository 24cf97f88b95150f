"""What a mutant is, and the order in which mutants are drawn from all possible ones."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mutant:
    """A compiled program with one thing changed.

    part: of the program, for example barrier. operator: the kind of change. place: what was changed, in the program's
    words. text: returns the whole changed program.
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
    """All mutants, in an order that follows from the seed: first one of each kind, then a second one of each, and so
    on. So the first few dozen cover every part and every operator."""
    rng = random.Random(seed)
    kinds: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        kinds[mutant.kind].append(mutant)
    for of_kind in kinds.values():
        rng.shuffle(of_kind)
    while kinds:
        # In turn from each part, so that no part is left out when few are drawn.
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


# (program, part, operator, beginning of the place) -> why it makes no difference
EQUIVALENT = {
    **{
        ("tofino", "Ingress", "statement removed", f"{action}: hdr.serene.session = meta.policy.session;"): (
            "an answer goes to who asks in the policy's session, since others are refused; a WELCOME is the exception"
        )
        for action in ("reply", "reply_empty", "release", "nudge")
    },
    ("tofino", "Parser", "constant", "meta.round_counted = 1w0;"): (
        "it is asked together with what the round lacks, and only of senders that the barrier counts: to them a round "
        "that was not looked up lacks its whole quorum"
    ),
    ("v1model", "admission", "another default", "member: default admit"): (
        "the program asks whether the table was hit; the action that a miss runs does nothing, as admit does"
    ),
    ("v1model", "barrier", "primitive removed", "exit: exit"): (
        "the session is older than the slot's: nothing has been decided, so nothing is added, sent or counted"
    ),
    ("v1model", "barrier", "mask", "seen_index: ((((meta.first_slot + slot) & 0xffffffff) << 5) & 0xffffffff): &"): (
        "a slot times 32 has no lowest bit that the mask could clear"
    ),
}


def why_equivalent(mutant: Mutant) -> str:
    """Why a mutant is equivalent to the program; empty if it should be killed."""
    for (program, part, operator, place), why in EQUIVALENT.items():
        same = (program, part, operator) == (mutant.program, mutant.part, mutant.operator)
        if same and mutant.place.startswith(place):
            return why
    return ""
