"""What the hosts of an emulated exchange do with the bytes of a schedule's flows, so that everybody has the sum at the
end: the simulator only knows how many bytes go where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.network_study.flows.steps import Step

BYTES = 4  # of a float32


@dataclass(frozen=True)
class Flow:
    """``first``, ``count``: which values it carries. ``whole``: they are sums over everybody, and replace what the
    receiver has; else they are added."""

    source: int
    target: int
    first: int
    count: int
    whole: bool


def butterfly(steps: Sequence[Step], values: int) -> list[list[Flow]]:
    """A sender hands on all that it has; what everybody has contributed to is a whole sum."""
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
    """Half of the steps push, the others pull. Each server has a part of the vector."""
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
