"""Evicts a worker that is silent for a time, and readmits it when it sends again.

A silent worker sends nothing at all, not even retransmissions; a worker that waits for others is not silent. While it
is evicted, the others continue without it. Its contributions still count, and it waits for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import LONGEST_PERIOD_S, Automatic, Decision, Observation, expect, expect_period


@dataclass
class Evict(Automatic):
    """silent: seconds after which a worker is evicted. period: seconds between decisions."""

    silent: float = 3.0
    period: float = 0.5
    needs: ClassVar[tuple[str, ...]] = ()  # the switch itself counts who sends

    def __post_init__(self) -> None:
        expect("evict", "silent", self.silent, 0.1, LONGEST_PERIOD_S)
        expect_period("evict", self.period)
        self.period_s = self.period

    def decide(self, seen: Observation) -> Decision | None:
        silent = frozenset(worker.id for worker in seen.workers if worker.silent_s > self.silent)
        if len(silent) == len(seen.workers):
            return None  # at least one must stay; perhaps the network is down
        return Decision(seen.strategy, silent)
