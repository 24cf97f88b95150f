"""The NumPy engine: simulates the flows of each step in virtual time, with rates from ``maxmin``."""

from __future__ import annotations

import numpy as np

from serene.experiments.network_study.flows.clos import Clos, Ints
from serene.experiments.network_study.flows.maxmin import rates
from serene.experiments.network_study.flows.model import Model
from serene.experiments.network_study.flows.steps import Floats, Schedule, Step

NAME = "numpy"
TOGETHER = 1e-9  # difference in time, relative to the present, up to which flows end together


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
