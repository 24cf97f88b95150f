"""The times of a worker's latest steps in its reports: a text that is short enough for a packet.

Steps shorter than `SHORTEST_S` are averaged over groups of 2, 4, 8, ... steps. A group begins at a multiple of its
size. So averages of different workers can be compared, even if they report at different times.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

REPORTED: Final = "step_times"  # the name in a report
SHORTEST_S = 0.05
MOST = 8  # averages in a report; each is over at most LONGEST steps
LONGEST = 128
PARTS = 3  # times of a step: computing, exchanging, and the part of exchanging that was waiting
_HEAD = struct.Struct("<IIH")
_LARGEST_MS = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Steps:
    """A worker's latest steps. epoch, first: the first step's epoch, and its number in the epoch. each: number of steps
    that a row is the mean of. times: float64[n, PARTS], seconds."""

    epoch: int
    first: int
    each: int
    times: np.ndarray


class StepTimes:
    """Stores one worker's latest steps."""

    def __init__(self) -> None:
        self._epoch = self._next = 0
        self._latest: deque[tuple[float, float, float]] = deque(maxlen=(MOST + 1) * LONGEST)

    def add(self, number: int, compute_s: float, exchange_s: float, waiting_s: float, epoch: int = 0) -> None:
        """Adds a step that has ended. number: in its epoch. exchange_s: includes waiting_s."""
        if (epoch, number) != (self._epoch, self._next):
            self._latest.clear()
        self._epoch, self._next = epoch, number + 1
        self._latest.append((compute_s, exchange_s, waiting_s))

    def text(self) -> str | None:
        """The latest steps as text, up to 100 characters; None before there are any."""
        known = len(self._latest)
        if not known:
            return None
        typical = median(sum(self._latest[row][:2]) for row in range(-min(known, MOST), 0))
        each = 1
        while each * typical < SHORTEST_S and each < LONGEST:
            each *= 2
        end = self._next // each * each  # only complete groups
        count = min((end - (self._next - known)) // each, MOST)
        if count < 1:
            return None
        first = end - count * each
        rows = [self._latest[number - self._next] for number in range(first, end)]
        means = np.array(rows).reshape(count, each, PARTS).mean(axis=1)
        packed = np.clip(1e3 * means, 0, _LARGEST_MS).astype("<f2").tobytes()
        return base64.b64encode(_HEAD.pack(self._epoch, first, each) + packed).decode()


def steps_in(text: object) -> Steps | None:
    """The steps in a report's text; None if it is invalid, because a worker may report anything."""
    if not isinstance(text, str):
        return None
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(packed) <= _HEAD.size or (len(packed) - _HEAD.size) % (2 * PARTS):
        return None
    epoch, first, each = _HEAD.unpack_from(packed)
    times = np.frombuffer(packed, "<f2", offset=_HEAD.size).reshape(-1, PARTS).astype(np.float64) / 1e3
    if len(times) > MOST or not 1 <= each <= LONGEST or first % each or not np.isfinite(times).all() or times.min() < 0:
        return None
    return Steps(epoch, first, each, times)
