"""A worker's state reports to the controller, and their rate."""

from __future__ import annotations

from typing import Any, cast

import pytest

from serene.client.session import reports
from serene.client.session.client import Client
from serene.report import Report


class Heard:
    """In a client's place: nothing goes to a switch."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def report(self, report: dict[str, Any]) -> None:
        self.states.append(report["state"])


@pytest.mark.parametrize(("step_s", "told"), [(0.15, 20), (0.01, None)])
def test_state_reports_are_thinned_when_steps_are_short(step_s: float, told: int | None) -> None:
    """Two thirds of each step are computing."""
    heard = Heard()
    saying = reports.Reports(cast(Client, heard), Report)
    for _ in range(10):
        saying.say("computing")
        heard.now += step_s * 2 / 3
        saying.say("exchanging")
        heard.now += step_s / 3
    if told is None:
        assert len(heard.states) <= 10 * step_s / reports.CHANGE_EVERY_S * 2 + 2
    else:
        assert heard.states == ["computing", "exchanging"] * (told // 2)


def test_beginning_of_a_wait_is_reported_at_once() -> None:
    """A worker that waits would otherwise be shown as exchanging; how it goes on is reported as seldom as ever."""
    heard = Heard()
    saying = reports.Reports(cast(Client, heard), Report)
    for state in ("exchanging", "waiting", "waiting"):
        saying.say(state)
        heard.now += reports.CHANGE_EVERY_S / 4
    assert heard.states == ["exchanging", "waiting"]
