"""A worker that is silent for a time leaves the barrier, and is let back in when it is heard again.

Silent means that it sends nothing at all, not even again what was not answered: a worker that waits for others is not
silent. While it is out, the others train on without it; what it sends counts, and it waits for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.automatic.base import Automatic, Decision, Observation
from serene.errors import SereneError


@dataclass
class Evict(Automatic):
    """silent: seconds after which a worker is evicted. period: seconds between decisions."""

    silent: float = 3.0
    period: float = 0.5

    def __post_init__(self) -> None:
        if self.silent <= 0 or self.period <= 0:
            raise SereneError(f"evict: silent {self.silent:g} and period {self.period:g}; expected more than 0")
        self.period_s = self.period

    def decide(self, seen: Observation) -> Decision | None:
        silent = frozenset(worker.id for worker in seen.workers if worker.silent_s > self.silent)
        if len(silent) == len(seen.workers):
            return None  # somebody must stay; perhaps it is the network
        return Decision(seen.strategy, silent)
