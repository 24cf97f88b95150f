"""The NumPy engine: simulates the flows of each step in virtual time, with max-min fair rates.

A flow starts after ``latency_factor`` times its path's latency, then all flows in flight share the links. The constants
are those of SimGrid's flow models: Velho and Legrand, Accuracy study and improvement of network simulation in the
SimGrid framework (SIMUTools 2009), and SimGrid's manual, network/model:LV08.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from serene.errors import SereneError, choices
from serene.experiments.network_study.flows.clos import Clos, Floats, Ints

NAME = "numpy"
TOGETHER = 1e-9  # difference in time, relative to the present, up to which flows end together
TIGHT = 1e-12  # relative difference up to which links and limits count as reached at the same time


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
    """A model by name. Raises SereneError."""
    if name not in MODELS:
        raise SereneError(f"no model {name!r}; expected {choices(MODELS)}")
    return MODELS[name]


class BadStep(SereneError):
    """A step's ends, sizes or limits are invalid; the message states what is valid."""


@dataclass(frozen=True)
class Step:
    """Flows that start at the same time. The step ends when the last of them does.

    ``source``, ``target``: nodes, int64[flows]. ``size``: in bytes, one for all flows or float64[flows]. ``limit``: of
    each flow's rate, in bytes/s, by the sender's window. ``times``: how often the step is repeated. ``delay``: seconds
    that are added once. Raises BadStep.
    """

    source: Ints
    target: Ints
    size: Floats | float
    limit: float = np.inf
    times: int = 1
    delay: float = 0.0

    def __post_init__(self) -> None:
        if self.source.shape != self.target.shape or self.source.ndim != 1 or not self.source.size:
            raise BadStep(f"sources {self.source.shape}, targets {self.target.shape}; expected as many, at least one")
        if np.any(~np.isfinite(self.size)) or np.min(self.size) <= 0:
            raise BadStep("a flow's size must be a positive number of bytes")
        if not self.limit > 0 or self.times < 1 or not 0 <= self.delay < np.inf:
            raise BadStep(f"limit {self.limit:g}, times {self.times}, delay {self.delay:g}; expected > 0, >= 1, >= 0")

    @property
    def sizes(self) -> Floats:
        """The size of each flow in bytes, float64[flows]."""
        return np.broadcast_to(np.asarray(self.size, dtype=np.float64), self.source.shape)


Schedule = Iterable[Step]


def run(network: Clos, schedule: Schedule, model: Model) -> float:
    """Seconds that the schedule takes. Raises BadNetwork."""
    return sum(step.delay + step.times * float(finish_times(network, step, model).max()) for step in schedule)


def finish_times(network: Clos, step: Step, model: Model) -> Floats:
    """When each flow of a step ends, in seconds from the step's start, float64[flows]. Raises BadNetwork."""
    paths = network.paths(step.source, step.target)
    uses, shares = paths, np.ones(network.longest)
    if model.cross_traffic:
        back = network.paths(step.target, step.source)
        uses = np.concatenate([paths, back], axis=1)
        shares = np.concatenate([shares, np.full(network.longest, model.cross_traffic)])
    hops = (paths >= 0).sum(axis=1)
    latency = np.where(paths >= 0, network.latencies[paths], 0.0).sum(axis=1)
    weight = np.ones(hops.size)
    if model.unfair:
        weight = 1 / (latency + hops * model.weight_s / network.bandwidth)
    return _simulate(network, uses, shares, weight, latency * model.latency_factor, step, model)


def _simulate(
    network: Clos, uses: Ints, shares: Floats, weight: Floats, starts: Floats, step: Step, model: Model
) -> Floats:
    capacity = np.full(network.links, model.bandwidth_factor * network.bandwidth)
    limit = np.full(weight.size, min(step.limit, model.bandwidth_factor * network.bandwidth))
    left = step.sizes.copy()
    end = np.full(weight.size, np.inf)
    now = float(starts.min())
    while True:
        active = np.flatnonzero((starts <= now) & ~np.isfinite(end))
        waiting = starts[starts > now]
        if not active.size:
            if not waiting.size:
                return end
            now = float(waiting.min())
            continue
        mine = uses[active]
        flow, column = np.nonzero(mine >= 0)
        speed = rates(capacity, flow, mine[flow, column], shares[column], weight[active], limit[active])
        until = left[active] / speed
        soonest = float(until.min())
        if waiting.size and (pause := float(waiting.min()) - now) < soonest:
            left[active] -= speed * pause
            now = float(waiting.min())
            continue
        done = until <= soonest + TOGETHER * (now + soonest)
        left[active] -= speed * soonest
        now += soonest
        end[active[done]] = now


def rates(capacity: Floats, flow: Ints, link: Ints, share: Floats, weight: Floats, limit: Floats) -> Floats:
    """Weighted max-min fair rates, in the unit of ``capacity``, by progressive filling. The rates of all flows grow in
    proportion to their weights until a link is full or a flow has reached its limit. These flows stop growing, and the
    others go on (Bertsekas and Gallager, Data Networks, 6.5.2).

    ``flow``, ``link``, ``share``, shape (uses,): each use is of a link by a flow, which takes ``share`` times its rate
    there. ``capacity``, shape (links,). ``weight``, ``limit``, shape (flows,): weights are above zero, limits may be
    infinite if the flow uses a link.
    """
    rate = np.zeros(weight.size)
    growing = np.ones(weight.size, dtype=bool)
    left = capacity.astype(np.float64)
    level_at_limit = limit / weight
    level = 0.0  # the rate of every growing flow is level * weight
    while growing.any():
        load = np.bincount(link, share * weight[flow], minlength=capacity.size)  # of the growing flows
        used = load > 0
        level_at_full = np.full(capacity.size, np.inf)
        level_at_full[used] = level + left[used] / load[used]
        next_level = min(level_at_full.min(initial=np.inf), level_at_limit[growing].min())
        left -= load * (next_level - level)
        level = next_level
        stopped = growing & (level_at_limit <= level * (1 + TIGHT))
        full = level_at_full <= level * (1 + TIGHT)
        stopped[flow[full[link]]] = True  # only growing flows are left in these arrays
        left[full] = 0.0
        rate[stopped] = np.minimum(level * weight[stopped], limit[stopped])
        growing &= ~stopped
        keep = growing[flow]
        flow, link, share = flow[keep], link[keep], share[keep]
    return rate
