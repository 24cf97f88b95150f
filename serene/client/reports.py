"""A worker tells the controller what it does, so that `serenectl watch` and automatic strategies can see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from serene.client.client import Client

REPORT_EVERY_S = 0.2  # at most, but for the beginnings and ends that matter
CHANGE_EVERY_S = 0.05  # at most, where the state is another one


class Reports:
    """telemetry: what is said beside the state."""

    def __init__(self, client: Client, telemetry: Callable[[], Mapping[str, Any]]) -> None:
        self._client = client
        self._telemetry = telemetry
        self._said_at = -REPORT_EVERY_S
        self._said = ""

    def say(self, state: str, *, force: bool = False) -> None:
        """computing, exchanging, waiting, paused, finished or stopped."""
        now = time.monotonic()
        # The end of what was reported is reported too, or a worker would seem to exchange all the time; and a wait is
        # reported when it begins, or a worker that waits would be shown as computing.
        ended = self._said in ("exchanging", "waiting") and state == "computing"
        begun = state == "waiting" != self._said
        pause = REPORT_EVERY_S if state == self._said else CHANGE_EVERY_S
        if force or ended or begun or now - self._said_at >= pause:
            self._said_at, self._said = now, state
            self._client.report({"state": state, **self._telemetry()})
