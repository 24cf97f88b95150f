"""The bits and the scale of a group's gradients in each collective, by $SERENE_SCALE."""

from __future__ import annotations

import numpy as np

from serene.client.allreduce.pool import Pool
from serene.client.allreduce.scale import IntSGD, Scale


class Scaling:
    """One rank's. The methods are called in the order of the group's collectives, which is the same on all ranks."""

    def __init__(self, scale: Scale, pool: Pool, rank: int, ranks: int) -> None:
        self._scale, self._pool, self._rank = scale, pool, rank
        self._rule = IntSGD(ranks) if scale.rule == "intsgd" else None
        self._pass: int | None = None
        self._warned_of = {"clipped": 0, "lost": 0}

    @property
    def given(self) -> bool:
        """Whether gradients have a given scale, so that ranks do not vote for it."""
        return self._scale.rule != "voted"

    def of(self, backward: int | None) -> tuple[int, int | None]:
        """The bits and the given unit, if any, for the next collective, as of `Pool.all_reduce`. backward: the backward
        pass whose gradients it sums (`serene.torch.work.backward_pass`); None: it sums other values, which must not be
        rounded at random."""
        if backward is None:
            return 32, None
        if self._rule is not None:
            if backward != self._pass:
                self._pass = backward
                self._rule.end_step()
            return (32, None) if self._rule.unit is None else (self._pool.precision, self._rule.unit)
        bits = self._pool.precision
        return bits, self._pool.unit_of(self._scale.limit, bits) if self.given else None

    def learn(self, sums: np.ndarray) -> None:
        """Adds the sums, float32[n], of a collective of gradients that all ranks have read."""
        if self._rule is not None:
            self._rule.add(sums)

    def warnings(self) -> list[str]:
        """Texts about clipped or lost values: once, and again each time their number has grown tenfold."""
        counts = {"clipped": self._pool.clipped_values, "lost": self._pool.lost_values}
        limit = f"the limit of {self._pool.limit:g} that {self._scale} has in {self._pool.limit_bits} bits"
        remedy = "name a larger limit, or use error feedback" if self._rule is None else "use error feedback"
        texts = {
            "clipped": f"exceeded {limit} and were clipped; {remedy} (serene.torch.ErrorFeedback)",
            "lost": f"are lost: residuals are limited to 2^22 times {limit}",
        }
        messages = []
        for what, count in counts.items():
            if count >= max(10 * self._warned_of[what], 1):
                self._warned_of[what] = count
                messages.append(f"rank {self._rank}: {count} gradient values so far {texts[what]}")
        return messages
