"""The data plane's counters of each worker."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

STALENESS_CLASSES = 16  # of the data plane's histogram: 0, 1, ... 14 rounds, 15 or more


class Counters(BaseModel):
    """Packets of one worker, or of several together; each field is a counter of the P4 program."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    contributions: int = 0
    repeats: int = 0
    blocked: int = 0
    answers: int = 0
    releases: int = 0
    nudges: int = 0


WORKER_COUNTERS = tuple(Counters.model_fields)
