"""Mutants that no test can kill, because they behave like the program, and why they do."""

from __future__ import annotations

from tests.mutation.mutants import Mutant

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
