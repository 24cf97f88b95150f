"""The sum of a parameter server, and the rule that decides when a worker may continue."""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np

from serene.errors import SereneError
from serene.strategy import PolicyFields
from serene.wire import UNBOUNDED, ReadMode


class WorkerGone(SereneError):
    """A worker disconnected before the end of the job."""


class Barrier:
    """The sum, and the rule that decides when a worker may continue. It is the switch's rule (docs/protocol.md) without
    epochs. values: length of the sum, int32. Thread-safe."""

    def __init__(self, values: int, policy: PolicyFields) -> None:
        self.values = values
        self._policy = policy
        self._changed = threading.Condition()
        self._sum = np.zeros(values, np.int32)
        self._snapshot = self._sum
        self._total = self._snapshot_total = 0
        self._counted: Counter[int] = Counter()  # contributions of counted workers in each round
        self._base = 0  # number of complete rounds
        self._failed: SereneError | None = None
        self.contributions: Counter[int] = Counter()  # accepted contributions of each worker

    def contribute(self, worker: int, round_: int, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        """Adds a contribution, int32[values], and blocks until the worker may continue. Returns the sum that it reads,
        int32[values], the number of contributions in it, and the seconds that the worker waited. Raises the error that
        ``fail`` was called with."""
        policy = self._policy
        with self._changed:
            self._sum = self._sum + values  # a new array: the old one may still be being sent to a worker
            self._total += 1
            self.contributions[worker] += 1
            is_counted = bool(policy.sync_mask >> worker & 1)
            if is_counted and round_ >= self._base:
                self._counted[round_] += 1
                while self._counted[self._base] >= policy.quorum:
                    del self._counted[self._base]
                    self._base += 1
                    self._snapshot, self._snapshot_total = self._sum, self._total
                    self._changed.notify_all()
            began = time.monotonic()
            if is_counted and policy.staleness != UNBOUNDED:
                self._changed.wait_for(lambda: self._failed or round_ < self._base + policy.staleness)
            if self._failed is not None:
                raise self._failed
            waited = time.monotonic() - began
            if policy.read_mode is ReadMode.SNAPSHOT:
                return self._snapshot, self._snapshot_total, waited
            return self._sum, self._total, waited

    def last(self) -> tuple[np.ndarray, int]:
        """The latest sum, int32[values], and the number of contributions in it."""
        with self._changed:
            return self._sum, self._total

    def fail(self, error: SereneError) -> None:
        """Makes ``contribute`` raise this error, in present and future calls. If called several times, the first error
        stays."""
        with self._changed:
            self._failed = self._failed or error
            self._changed.notify_all()

    @property
    def failed(self) -> SereneError | None:
        return self._failed
