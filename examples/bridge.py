"""An automatic strategy: SSP(3) while some worker has slow iterations, else BSP.

serenectl sync auto examples/bridge.py:Bridge --factor 2
"""

from dataclasses import dataclass

from serene.controller.automatic import Automatic, Decision, Observation
from serene.strategy import BSP, SSP


@dataclass
class Bridge(Automatic):
    factor: float = 2.0  # an iteration is slow if it takes more than this many times the worker's mean compute time
    period_s: float = 0.5  # seconds between decisions

    def decide(self, seen: Observation) -> Decision | None:
        known = [worker for worker in seen.workers if worker.slowest_s is not None and worker.compute_s is not None]
        if not known:
            return None  # nothing was reported yet: no change
        slow = sorted(worker.id for worker in known if worker.slowest_s > self.factor * worker.compute_s)
        if slow:
            return Decision(SSP(3), reason=f"slow iterations of workers {slow}")
        return Decision(BSP(), reason="no slow iterations")
