"""Automatic strategies: small programs that observe a job and choose its strategy.

    class Mine(Automatic):
        def decide(self, seen: Observation) -> Strategy | Decision | None: ...

docs/automatic-strategies.md shows how to write one.
"""

from serene.controller.automatic.base import Automatic, Decision, Observation, WorkerView
from serene.controller.automatic.loading import (
    AUTOMATIC,
    BEST,
    SHIPPED,
    Terms,
    automatic_parts,
    checked,
    in_words,
    load,
    load_in_time,
    source,
    source_now,
    terms,
)
from serene.controller.automatic.observer import Observer
from serene.controller.automatic.sight import Sight
from serene.controller.automatic.trust import BadAutomatic

__all__ = [
    "AUTOMATIC",
    "BEST",
    "SHIPPED",
    "Automatic",
    "BadAutomatic",
    "Decision",
    "Observation",
    "Observer",
    "Sight",
    "Terms",
    "WorkerView",
    "automatic_parts",
    "checked",
    "in_words",
    "load",
    "load_in_time",
    "source",
    "source_now",
    "terms",
]
