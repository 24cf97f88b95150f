"""How stragglers and cases are called in the report."""

from __future__ import annotations


def straggler_name(text: str) -> str:
    """slow_worker (p 0.15, 0.5-2.0x), for instance."""
    name, _, rest = text.partition(":")
    values = dict(item.split("=") for item in rest.split(",") if item)
    if name == "slow_worker":
        return f"slow_worker (p {values['probability']}, +{values['low']}–{values['high']}x)"
    if name == "heterogeneous":
        return f"heterogeneous (one worker {values['factor']}x)"
    if name == "failure":
        return f"failure ({values['pause_s']} s at step {values['iteration']})"
    return "no straggler"


def case_title(workers: int, straggler: str) -> str:
    return f"{workers} workers, {straggler_name(straggler)}"
