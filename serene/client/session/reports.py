"""A worker's reports to the controller, for `serenectl watch` and automatic strategies."""

from __future__ import annotations

from collections.abc import Callable

from serene.client.session.client import Client
from serene.report import Report

REPORT_EVERY_S = 0.2  # the shortest time between reports of the same state
CHANGE_EVERY_S = 0.05  # and of different ones, except for important beginnings and ends


class Reports:
    """The REPORTs of one client. telemetry: returns the fields beside the state, for JSON."""

    def __init__(self, client: Client, telemetry: Callable[[], Report]) -> None:
        self._client = client
        self._telemetry = telemetry
        self._reported_at = -REPORT_EVERY_S
        self._last_state = ""

    def report(self, state: str, *, force: bool = False) -> None:
        """Reports the state, unless the last report is too recent. state: computing, exchanging, waiting, paused,
        finished or stopped. force: reports it in any case."""
        now = self._client.clock()
        # An exchange's end is always reported; otherwise a worker would seem to exchange all the time. So is the
        # beginning of a wait; otherwise a waiting worker would be shown as computing.
        ended = self._last_state in ("exchanging", "waiting") and state == "computing"
        begun = state == "waiting" != self._last_state
        pause = REPORT_EVERY_S if state == self._last_state else CHANGE_EVERY_S
        if force or ended or begun or now - self._reported_at >= pause:
            self._reported_at, self._last_state = now, state
            self._client.report({"state": state, **self._telemetry()})
