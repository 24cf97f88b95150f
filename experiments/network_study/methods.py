"""The methods by which workers may exchange a gradient, with all that the study knows of each.

A new method needs a function in ``schedules``, one in ``closed_forms`` if there is a formula, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from serene.errors import choices
from serene.experiments.network_study import closed_forms, schedules
from serene.experiments.network_study.exchange import BadMethod, Exchange
from serene.experiments.network_study.flows.solver import Model, Schedule
from serene.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW


class Origin(Enum):
    """Why a method is in the study."""

    PAPER = "one of the paper's four"
    OURS = "compared with them"
    VARIANT = "shows what a choice does"


@dataclass(frozen=True)
class Method:
    """A method. ``steps``: its schedule. ``closed_form``: its time in seconds by a formula, if there is one.
    ``servers``: whether some hosts are parameter servers. ``lock_step``: whether training can be simulated with it, all
    workers in lock step. ``in_network``: whether switches add up. ``recorded``: whether SimGrid's answers are in
    simgrid.csv."""

    name: str
    origin: Origin
    steps: Callable[[Exchange], Schedule]
    closed_form: Callable[[Exchange, Model], float] | None = None
    colour: str = GREY
    marker: str = "."
    servers: bool = False
    lock_step: bool = False
    in_network: bool = False
    recorded: bool = True


_ALL = (
    Method("servers-packed", Origin.PAPER, schedules.servers_packed, closed_forms.servers_packed,
           BLUE, "v", servers=True),
    Method("servers-distributed", Origin.PAPER, schedules.servers_distributed, closed_forms.servers_distributed,
           VERMILION, "s", servers=True),
    Method("flat-butterfly", Origin.PAPER, schedules.flat_butterfly, closed_forms.flat_butterfly,
           GREEN, "o", lock_step=True),
    Method("layered-butterfly", Origin.PAPER, schedules.layered_butterfly, closed_forms.layered_butterfly,
           PURPLE, "D", lock_step=True),
    Method("ring", Origin.OURS, schedules.ring, closed_forms.ring, ORANGE, "X", lock_step=True),
    Method("hierarchical-ring", Origin.OURS, schedules.hierarchical_ring, closed_forms.hierarchical_ring,
           SKY, "P", lock_step=True),
    Method("leaf-aggregation", Origin.OURS, schedules.leaf_aggregation, closed_forms.leaf_aggregation,
           BLACK, "^", in_network=True),
    Method("leaf-spine-aggregation", Origin.OURS, schedules.leaf_spine_aggregation, closed_forms.leaf_spine_aggregation,
           YELLOW, "*", in_network=True),
    # Not recorded: their flows are as many as those of servers-distributed, which is.
    Method("servers-same-order", Origin.VARIANT, schedules.servers_same_order, servers=True, recorded=False),
    Method("servers-fixed-places", Origin.VARIANT, schedules.servers_fixed_places, servers=True, recorded=False),
    Method("flat-butterfly-fewer-workers", Origin.VARIANT, schedules.flat_butterfly_fewer_workers),
    Method("layered-butterfly-fewer-workers", Origin.VARIANT, schedules.layered_butterfly_fewer_workers),
    Method("layered-butterfly-fixed-heads", Origin.VARIANT, schedules.layered_butterfly_fixed_heads),
    Method("leaf-aggregation-in-phases", Origin.VARIANT, schedules.leaf_aggregation_in_phases, in_network=True),
)  # fmt: skip
METHODS = {method.name: method for method in _ALL}


def names(chosen: Callable[[Method], bool]) -> tuple[str, ...]:
    """The names of the methods for which ``chosen`` is true, in the order above."""
    return tuple(name for name, method in METHODS.items() if chosen(method))


MAIN = names(lambda method: method.origin is not Origin.VARIANT)
VARIANTS = names(lambda method: method.origin is Origin.VARIANT)
SYNCHRONOUS = names(lambda method: method.lock_step)


def method(name: str) -> Method:
    """A method by name. Raises BadMethod."""
    if name not in METHODS:
        raise BadMethod(f"no method {name!r}; expected {choices(METHODS)}")
    return METHODS[name]
