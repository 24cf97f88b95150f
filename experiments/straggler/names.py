"""How strategies and stragglers are called, and drawn, in the report."""

from __future__ import annotations

from experiments.straggler.strategies import AUTOMATIC, automatic_parts
from serene.strategy import parse

# Okabe and Ito's palette: distinct also for colour-blind readers. Fixed strategies have colours of their own.
COLOURS = {
    "bsp": "#000000",
    "ssp:1": "#56B4E9",
    "ssp:3": "#0072B2",
    "ssp:10": "#CC79A7",
    "asp": "#D55E00",
    "quorum": "#009E73",
    "mixed": "#E69F00",
    "auto:dssp": "#0072B2",
    "auto:waiting": "#D55E00",
    "auto:sync-switch": "#009E73",
    "auto:evict": "#E69F00",
}


def strategy_name(text: str) -> str:
    """As a reader knows it: SSP(10), Quorum(3), auto: dssp."""
    if text.startswith(AUTOMATIC):
        return f"auto: {automatic_parts(text)[0]}"
    if text.startswith("mixed:"):
        return f"Mixed(async {text.removeprefix('mixed:')})"
    return str(parse(text))


def strategy_colour(text: str) -> str:
    if text in COLOURS:
        return COLOURS[text]
    head, _, rest = text.partition(":")
    return COLOURS.get(f"{head}:{rest.partition(':')[0]}") or COLOURS.get(head, "#888888")


def strategy_line(text: str) -> str:
    """Automatic strategies are dashed."""
    return "--" if text.startswith(AUTOMATIC) else "-"


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
