"""Which values the flows of a schedule carry in an emulated exchange, so that every host has the sum at the end. The
schedules themselves say only how many bytes go where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serene.experiments.network_study.flows.solver import Step

BYTES = 4  # of a float32


@dataclass(frozen=True)
class Flow:
    """A flow from one host to another. ``first``, ``count``: which values it carries. ``whole``: whether these are sums
    over all workers, which replace what the receiver has; else they are added to it."""

    source: int
    target: int
    first: int
    count: int
    whole: bool


def butterfly(steps: Sequence[Step], values: int) -> list[list[Flow]]:
    """The flows of a butterfly, step by step: a sender sends all values that it has, as they were before the step."""
    hosts = {int(host) for step in steps for host in (*step.source, *step.target)}
    have = {host: {host} for host in hosts}
    played = []
    for step in steps:
        before = {host: set(contributors) for host, contributors in have.items()}
        flows = []
        for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
            whole = before[source] == hosts
            flows.append(Flow(source, target, 0, values, whole))
            have[target] = have[target] | before[source]
        played.append(flows)
    return played


def servers(steps: Sequence[Step], values: int) -> list[list[Flow]]:
    """The flows of parameter servers, step by step: in the first half of the steps workers push, in the second they
    pull. Each server has a part of the vector."""
    pushes = len(steps) // 2
    of_server = {host: part for part, host in enumerate(np.unique(np.concatenate([s.target for s in steps[:pushes]])))}
    each = -(-values // len(of_server))
    played = []
    for number, step in enumerate(steps):
        pull = number >= pushes
        flows = []
        for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
            first = each * of_server[source if pull else target]
            flows.append(Flow(source, target, first, min(each, values - first), pull))
        played.append(flows)
    return played
