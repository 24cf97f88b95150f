"""The protocol's properties (docs/protocol.md, "What always holds"), checked on what workers sent and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from serene.errors import SereneError

PROPERTIES = (
    "exactly once",
    "bounded staleness",
    "isolated BSP",
    "no stuck worker",
    "one policy per decision",
    "no wrong read",  # a worker reads a wrong sum and gets no error
    "nobody is stopped",  # a worker ends because of another process, or of a packet that came late
)


class Violation(SereneError):
    """A property of the protocol was violated. broken: which one, of PROPERTIES."""

    def __init__(self, broken: str, message: str) -> None:
        super().__init__(f"{broken}: {message}")
        self.broken = broken


@dataclass
class Sent:
    """Everything that was contributed to a job, an int32[slots, lanes] for each iteration.

    certain: the worker has read the answers, so that the contribution is in every slot's sum. interrupted: the worker
    died before that, so that each slot's sum may hold it or not.
    """

    certain: list[np.ndarray] = field(default_factory=list)
    interrupted: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class Balance:
    """How many contributions, a slot's each, are missing from a sum, and how many it holds too often."""

    lost: int = 0
    repeated: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.lost + other.lost, self.repeated + other.repeated)


def balance(sent: Sent, held: np.ndarray) -> Balance:
    """Compares a sum, uint32[slots, lanes], with what was sent.

    Contributions are random vectors with many more lanes than there are contributions, so that the sum determines how
    often it holds each. Raises Violation if it is not a sum of what was sent.
    """
    rest = held - sum((item.view(np.uint32) for item in sent.certain), np.zeros_like(held))
    if not rest.any():
        return Balance()
    found = Balance()
    for slot in np.flatnonzero(rest.any(axis=1)):
        uncertain, certain = ([item[slot] for item in items] for items in (sent.interrupted, sent.certain))
        missing = rest[slot].view(np.int32)
        # The interrupted ones alone nearly always explain the rest, and are few to solve for.
        times = _times(uncertain, missing)
        if times is None:
            times = _times([*uncertain, *certain], missing)
        if times is None:
            raise Violation("exactly once", "the sum holds something that nobody sent")
        maybe, sure = times[: len(uncertain)], times[len(uncertain) :]
        found += Balance(
            lost=int(-np.minimum(sure, 0).sum() - np.minimum(maybe, 0).sum()),
            repeated=int(np.maximum(sure, 0).sum() + np.maximum(maybe - 1, 0).sum()),
        )
    return found


def _times(vectors: Sequence[np.ndarray], total: np.ndarray) -> np.ndarray | None:
    """How often each vector is in the total, int[n]; None if they do not make it, or are too many to tell."""
    if not 0 < len(vectors) <= len(total):
        return None
    matrix = np.stack(vectors, axis=1).astype(float)
    times = np.rint(np.linalg.lstsq(matrix, total.astype(float), rcond=None)[0]).astype(int)
    return times if np.array_equal(matrix @ times, total) else None
