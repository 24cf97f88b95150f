"""The observations and decisions of automatic strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from serene.errors import SereneError
from serene.strategy import Strategy

# Seconds between decisions. A decision reads counters, and has to end before the next begins.
SHORTEST_PERIOD_S = 0.05
LONGEST_PERIOD_S = 3600.0
DECISION_TIMEOUT_S = 5.0  # for users' code to load or to decide


@dataclass(frozen=True)
class WorkerView:
    """One worker, by the switch's counters and its reports. Times in seconds; None: not known yet.

    is_member: the others may have to wait for it; False while it is evicted. rounds: iterations that it has contributed
    since the session began. silent_s: since its last packet or report. iteration_s, busy_s, compute_s, slowest_s,
    latest_s: of its recent iterations, the mean time of a whole one, the mean without waiting for others, and the mean,
    the longest and the latest time of computing. waiting_share: the share, 0 to 1, of its recent time in the present
    epoch in which it waited for others. loss, momentum (of its optimiser, 0 to less than 1): its last reported values.
    agreement, agreement_after: the mean cosines, recently, of its gradient with the others' of the same exchange, and
    of its next gradient with these (-1 to 1).
    """

    id: int
    is_member: bool
    rounds: int
    silent_s: float
    iteration_s: float | None
    compute_s: float | None
    slowest_s: float | None
    latest_s: float | None
    waiting_share: float | None
    loss: float | None
    momentum: float | None = None
    agreement: float | None = None
    agreement_after: float | None = None
    busy_s: float | None = None


@dataclass(frozen=True)
class Observation:
    """A running job at one moment. t: seconds since its session began; since_swap_s: since its present epoch began.
    strategy: in force.

    workers: those that take part, including evicted ones, without those that have left.
    """

    t: float
    epoch: int
    since_swap_s: float
    strategy: Strategy
    workers: Sequence[WorkerView]

    @property
    def barrier(self) -> list[WorkerView]:
        """The members, for whom the others may have to wait."""
        return [worker for worker in self.workers if worker.is_member]

    @property
    def waiting_share(self) -> float | None:
        """The mean of the members' waiting shares; None while none is known."""
        shares = [worker.waiting_share for worker in self.barrier if worker.waiting_share is not None]
        return sum(shares) / len(shares) if shares else None


@dataclass(frozen=True)
class Decision:
    """A strategy, and the workers to evict under it: they continue, but nobody waits for them; all others are members.
    None leaves evicted workers evicted. reason: a few words for `serenectl explain`, the page and events."""

    strategy: Strategy
    evicted: frozenset[int] | None = None
    reason: str = ""


class Automatic(ABC):
    """An automatic strategy: decides once every ``period_s`` seconds, 0.05 to 3600. One object serves one job to its
    end, so it may keep state. Its parameters are those of its ``__init__``.

    needs: the fields of a WorkerView without which it cannot decide. If they stay unknown for a worker, the strategy is
    blind to that worker, and the controller reports it.
    """

    period_s: float = 1.0
    needs: ClassVar[tuple[str, ...]] = ("iteration_s",)

    @abstractmethod
    def decide(self, seen: Observation) -> Strategy | Decision | None:
        """The strategy or decision to put in force; None for no change. A Strategy leaves evicted workers evicted.

        The controller makes one swap if it differs from the policy in force, else none.
        """


def expect(strategy: str, parameter: str, value: float, low: float, high: float) -> None:
    """Raises SereneError unless the parameter lies within these bounds; NaN lies within none."""
    if not low <= value <= high:
        given = f"{value:g}" if isinstance(value, float) else str(value)
        raise SereneError(f"{strategy}: {parameter} {given}: expected {low:g} to {high:g}")


def expect_period(strategy: str, seconds: float) -> None:
    """As ``expect``, for the parameter ``period``, which all shipped strategies have."""
    expect(strategy, "period", seconds, SHORTEST_PERIOD_S, LONGEST_PERIOD_S)
