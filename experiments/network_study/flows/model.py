"""How flows share a network: the constants of SimGrid's flow models.

A flow starts after ``latency_factor`` times its path's latency, then all flows in flight share the links max-min
fairly. Sources: Velho and Legrand, Accuracy study and improvement of network simulation in the SimGrid framework
(SIMUTools 2009), and SimGrid's manual, network/model:LV08.
"""

from __future__ import annotations

from dataclasses import dataclass

from serene.errors import SereneError, choices


class NoSuchModel(SereneError):
    """No model has that name; the message names those that exist."""


@dataclass(frozen=True)
class Model:
    """The constants of a flow model. ``bandwidth_factor``: the share of a link's bandwidth that payload may use.
    ``latency_factor``: by which a path's latency is multiplied. ``cross_traffic``: the acknowledgements' rate on the
    way back, relative to the flow's. ``unfair``: whether TCP's unfairness to long paths is modelled: then a flow's
    weight is 1 / (path latency + sum of weight_s / bandwidth over its links), with ``weight_s`` in bytes; else all
    weights are 1."""

    name: str
    bandwidth_factor: float
    latency_factor: float
    cross_traffic: float
    weight_s: float
    unfair: bool


LV08 = Model("LV08", 0.97, 13.01, 0.05, 20537.0, unfair=True)
IDEAL = Model("ideal", 1.0, 1.0, 0.0, 0.0, unfair=False)  # no overhead, no acknowledgements, equal shares
MODELS = {model.name: model for model in (LV08, IDEAL)}


def model(name: str) -> Model:
    """A model by name. Raises NoSuchModel."""
    if name not in MODELS:
        raise NoSuchModel(f"no model {name!r}; expected {choices(MODELS)}")
    return MODELS[name]
