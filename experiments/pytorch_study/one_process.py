"""The all-reduce of a pool in one process, without packets: the same sums, to the bit.

`serene.client.allreduce.blocks` does the arithmetic on whole vectors, which is fast enough to train 32 workers in one
process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from serene.client.allreduce.blocks import Layout, from_levels, hold_back, noise, to_levels
from serene.client.allreduce.collective import hashes, noise_seed
from serene.wire import ENCAPSULATION_BYTES, HEADER


class OneProcess:
    """The collectives of a job's workers, of vectors with ``length`` finite values. feedback: whether there is error
    feedback, which holds back what is rounded off and sends it with the next vector."""

    def __init__(self, layout: Layout, length: int, *, feedback: bool = False) -> None:
        self._layout, self._length = layout, length
        self._held = [np.zeros(length) for _ in range(layout.workers)] if feedback else None
        self._starts = range(0, length, layout.values_per_block)
        self._lengths = np.diff([*self._starts, length])
        self._collectives = 0

    def all_reduce(self, vectors: Sequence[np.ndarray]) -> np.ndarray:
        """The sum of the workers' vectors, float32[length] each: float32[length]."""
        layout = self._layout
        if self._held is not None:
            for held, vector in zip(self._held, vectors, strict=True):
                held += vector
        summed: Sequence[np.ndarray] = vectors if self._held is None else self._held
        largest = np.max([np.maximum.reduceat(np.abs(vector), self._starts) for vector in summed], axis=0)
        classes = [max(layout.class_of(float(each)), 0) for each in largest]
        narrow = np.array([layout.values_in_lane(each, False) > 1 for each in classes])
        per_unit = np.array(
            [
                layout.levels_per_unit(each) if few else math.ldexp(1.0, layout.shift(each))
                for each, few in zip(classes, narrow, strict=True)
            ]
        ).repeat(self._lengths)
        most = np.where(narrow, layout.levels, layout.highest).repeat(self._lengths)
        seen = hashes(b"", self._collectives, self._length, layout.bits)
        self._collectives += 1
        total = np.zeros(self._length, np.int64)
        for worker, vector in enumerate(summed):
            if self._held is not None:
                total += hold_back(vector, per_unit, most)
            elif narrow.all():
                total += to_levels(vector, per_unit, noise(noise_seed(seen, worker), 0, self._length))
            else:
                nearest = np.rint(vector * per_unit)
                at_random = to_levels(vector, per_unit, noise(noise_seed(seen, worker), 0, self._length))
                total += np.where(narrow.repeat(self._lengths), at_random, nearest).astype(np.int64)
        return from_levels(total, 1 / per_unit)

    @property
    def bytes_a_worker(self) -> int:
        """Bytes that a collective puts on a worker's link, each way, if nothing is lost."""
        layout = self._layout
        pieces = -(-self._length // (layout.lanes * layout.values_per_lane))
        pieces += -(-self._length // layout.values_per_group)
        return pieces * (ENCAPSULATION_BYTES + HEADER.itemsize + 4 * layout.lanes)
