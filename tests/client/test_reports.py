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


def reported(*states: tuple[str, float]) -> list[str]:
    """Returns what a worker reports that is in these states for so many seconds."""
    heard = Heard()
    sender = reports.Reports(cast(Client, heard), Report)
    for state, seconds in states:
        sender.report(state)
        heard.now += seconds
    return heard.states


def test_state_reports_are_thinned_except_the_beginning_of_a_wait() -> None:
    """A worker that waits would otherwise be shown as exchanging."""
    for step_s in (0.15, 0.01):
        states = reported(*[("computing", step_s * 2 / 3), ("exchanging", step_s / 3)] * 10)
        if step_s > 0.1:
            assert states == ["computing", "exchanging"] * 10
        else:
            assert len(states) <= 10 * step_s / reports.CHANGE_EVERY_S * 2 + 2
    quarter = reports.CHANGE_EVERY_S / 4
    assert reported(("exchanging", quarter), ("waiting", quarter), ("waiting", 0.0)) == ["exchanging", "waiting"]


def test_session_reports_how_long_its_steps_took(worker: Client) -> None:
    """By which the controller finds the worker that the others wait for."""
    session = Session(worker)
    for _ in range(3):
        session.facts["compute_s"] += 0.1
        session.exchange(ONES)
    steps = steps_in(session.telemetry()[REPORTED])
    assert steps is not None and (steps.first, steps.each) == (0, 1)
    assert steps.times[:, 0] == pytest.approx([0.1] * 3, rel=1e-3)
