"""Automatic strategies in virtual time: the controller's own classes, which are shown what the controller would
show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from serene.client.session.agreement import Agreement
from serene.client.session.reports import REPORT_EVERY_S
from serene.controller.automatic import Automatic, Decision, Observation, Observer
from serene.controller.switch.silence import Silence, spoken
from serene.report import Report
from serene.strategy import Strategy


@dataclass
class Reports:
    """A worker's reports, as `serene.client.Session` sends them. sums: seconds since the run began, which the
    simulation adds to, as to agreement. momentum: of the optimiser. latest: the last report that was sent."""

    momentum: float = 0.0
    agreement: Agreement = field(default_factory=Agreement)
    sums: Report = field(default_factory=lambda: Report(compute_s=0.0, network_s=0.0, waiting_s=0.0))
    latest: Report | None = None
    _sent_at: float = -REPORT_EVERY_S

    def send(self, state: str, now: float, iteration: int, loss: float, *, force: bool = False) -> None:
        """Sends a report, unless the last one was sent only just before; always if an exchange has ended, or by
        force."""
        ended = self.latest is not None and self.latest["state"] == "exchanging" != state
        if force or ended or now - self._sent_at >= REPORT_EVERY_S:
            self._sent_at = now
            self.latest = {
                "state": state, "iteration": iteration, "loss": loss, "momentum": self.momentum,
                **self.sums, **self.agreement.facts(),
            }  # fmt: skip


class RunningStrategy:
    """An automatic strategy with what is remembered of a job, as `serene.controller.automatic.runner` keeps it."""

    def __init__(self, automatic: Automatic) -> None:
        self.automatic = automatic
        self._observer = Observer()
        self._silence = Silence()

    def decide(
        self,
        now: float,
        epoch: int,
        since_swap_s: float,
        strategy: Strategy,
        evicted: frozenset[int],
        workers: Sequence[tuple[int, Mapping[str, int], int, Reports]],
    ) -> Decision:
        """Shows the strategy the job, and returns the strategy and the evicted workers that are to be in force.
        workers: for each that has not left, its number, its counters, how many rounds it has done, and its reports."""
        views = []
        for worker, counters, rounds, reports in workers:
            report = reports.latest or {}
            self._silence.note(worker, (spoken(counters), report.get("iteration"), report.get("state")), now)
            self._observer.note(worker, report)
            silent_s = self._silence.seconds(worker, now)
            views.append(self._observer.view(worker, rounds=rounds, is_member=worker not in evicted, silent_s=silent_s))
        decided = self.automatic.decide(Observation(now, epoch, since_swap_s, strategy, views))
        if decided is None:
            return Decision(strategy, evicted)
        return decided if isinstance(decided, Decision) else Decision(decided, evicted)
