"""In which bits and by which scale a group's gradients go: what `SERENE_SCALE` says, collective by collective."""

from __future__ import annotations

import numpy as np
import torch

from serene.client.pool import Pool
from serene.client.scale import IntSGD, Scale


def backward_pass() -> int | None:
    """The number of autograd's pass that is at work in this thread."""
    number = torch._C._current_graph_task_id()
    return None if number == -1 else int(number)


class Scaling:
    """One rank's. To be asked in the order of the group's collectives, which is the same on all ranks."""

    def __init__(self, scale: Scale, pool: Pool, rank: int, ranks: int) -> None:
        self._scale, self._pool, self._rank = scale, pool, rank
        self._rule = IntSGD(ranks) if scale.rule == "intsgd" else None
        self._pass: int | None = None
        self._warned_of = {"clipped": 0, "lost": 0}

    @property
    def given(self) -> bool:
        """Whether ranks do not vote for scales."""
        return self._scale.rule != "voted"

    def of(self, backward: int | None) -> tuple[int, int | None]:
        """Bits, and the unit if one is given. backward: the pass whose gradients are to be summed; None: other values,
        of which nobody expects that they are rounded at random."""
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
        """What all ranks have read of a collective of gradients, to which all have agreed."""
        if self._rule is not None:
            self._rule.add(sums)

    def warnings(self) -> list[str]:
        """What was clipped or lost: once, and again whenever it is ten times as much."""
        counts = {"clipped": self._pool.clipped_values, "lost": self._pool.lost_values}
        limit = f"the limit of {self._pool.limit:g} that {self._scale} has in {self._pool.precision} bits"
        remedy = "name a larger limit, or hold it back" if self._rule is None else "hold it back"
        texts = {
            "clipped": f"were beyond {limit} and were clipped to it: what is beyond is in no sum; {remedy} "
            "(serene.torch.ErrorFeedback)",
            "lost": f"are lost, neither sent nor held back: no more of a value is held back than 2^22 times {limit}",
        }
        said = []
        for what, count in counts.items():
            if count >= max(10 * self._warned_of[what], 1):
                self._warned_of[what] = count
                said.append(f"rank {self._rank}: {count} gradient values so far {texts[what]}")
        return said
