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
    "no wrong read",  # without an error
    "nobody is stopped",  # by another one, or by what was said long ago
)


class Violation(SereneError):
    """A property of the protocol was violated."""

    def __init__(self, broken: str, message: str) -> None:
        super().__init__(f"{broken}: {message}")
        self.broken = broken  # one of PROPERTIES


@dataclass
class Sent:
    """Everything that was contributed to a job. Each item is int32[slots, lanes].

    certain: iterations whose answers were read. interrupted: a worker died meanwhile, so each slot holds its
    contribution or does not.
    """

    certain: list[np.ndarray] = field(default_factory=list)
    interrupted: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class Balance:
    """Contributions (packets) that are missing from a sum, and that it holds more than once."""

    lost: int = 0
    repeated: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.lost + other.lost, self.repeated + other.repeated)


def balance(sent: Sent, held: np.ndarray) -> Balance:
    """How often the sum holds what was sent. held: uint32[slots, lanes].

    Contributions are random vectors, far more lanes than vectors, so that a sum tells how often each is in it.
    Raises Violation when the sum is no sum of theirs at all.
    """
    rest = held - sum((item.view(np.uint32) for item in sent.certain), np.zeros_like(held))
    if not rest.any():
        return Balance()
    found = Balance()
    for slot in np.flatnonzero(rest.any(axis=1)):
        uncertain, certain = ([item[slot] for item in items] for items in (sent.interrupted, sent.certain))
        missing = rest[slot].view(np.int32)
        # Nearly always the interrupted ones explain it.
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
    """How often each vector is in the total, int[n]; None where they do not explain it (or too many could)."""
    if not 0 < len(vectors) <= len(total):
        return None
    matrix = np.stack(vectors, axis=1).astype(float)
    times = np.rint(np.linalg.lstsq(matrix, total.astype(float), rcond=None)[0]).astype(int)
    return times if np.array_equal(matrix @ times, total) else None
