"""Colours and names of strategies in figures, tables and the controller's page."""

from __future__ import annotations

from dataclasses import dataclass

from serene.strategy import parse

# Okabe and Ito's palette, which colour-blind readers can distinguish.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#888888"
# From Paul Tol's muted palette, so that each automatic strategy has its own colour.
TEAL, FOREST, MAGENTA, INDIGO, ROSE = "#44AA99", "#117733", "#AA4499", "#332288", "#CC6677"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW)

# A worker's states: from Paul Tol's palettes, with different brightness, and different from strategies' colours.
COMPUTING, SENDING, WAITING = "#999933", "#882255", "#DDCC77"

# The key is a strategy's text, or the beginning of its text.
COLOUR_OF = {
    "bsp": BLACK,
    "ssp:1": SKY,
    "ssp:3": BLUE,
    "ssp:10": PURPLE,
    "asp": VERMILION,
    "quorum": GREEN,
    "mixed": ORANGE,
    "auto:pacing": ROSE,
    "auto:dssp": MAGENTA,
    "auto:waiting": TEAL,
    "auto:sync-switch": FOREST,
    "auto:evict": INDIGO,
}


@dataclass(frozen=True)
class Look:
    """A strategy's name and colour in tables and figures. ``kind``: the name without parameters that depend on the
    workers."""

    name: str
    kind: str
    colour: str
    line: str = "-"


def look(text: str) -> Look:
    """The look of a strategy written as on command lines, ``auto:NAME:...`` included. Raises BadStrategy."""
    head, _, rest = text.partition(":")
    colour = COLOUR_OF.get(text) or COLOUR_OF.get(f"{head}:{rest.partition(':')[0]}") or COLOUR_OF.get(head, GREY)
    if head == "auto":
        name = f"auto: {rest.partition(':')[0]}"
        return Look(name, name, colour, "--")
    if text == "quorum":  # a study chooses k
        return Look("k-of-n", "k-of-n", colour)
    name = str(parse(text))
    return Look(name, {"quorum": "k-of-n", "mixed": "Mixed"}.get(head, name), colour)


def colour_of(name: str) -> str:
    """The colour of a strategy by its printed name, ``SSP(3)``."""
    if name.endswith("-of-n"):
        return COLOUR_OF["quorum"]
    head, _, rest = name.lower().partition("(")
    return COLOUR_OF.get(f"{head}:{rest.rstrip(')')}") or COLOUR_OF.get(head, GREY)
