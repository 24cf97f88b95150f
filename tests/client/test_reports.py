"""A worker's state reports to the controller, and their rate."""

from __future__ import annotations

from typing import Any, cast

import pytest

from serene.client import Session
from serene.client.session import reports
from serene.client.session.client import Client
from serene.report import Report
from serene.steps import REPORTED, steps_in
from tests.client.rejoining import ONES


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


def test_session_reports_how_long_its_steps_took(worker: Client) -> None:
    """By which the controller finds the worker that the others wait for."""
    session = Session(worker)
    for _ in range(3):
        session.facts["compute_s"] += 0.1
        session.exchange(ONES)
    steps = steps_in(session.telemetry()[REPORTED])
    assert steps is not None and (steps.first, steps.each) == (0, 1)
    assert steps.times[:, 0] == pytest.approx([0.1] * 3, rel=1e-3)
