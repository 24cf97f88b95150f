"""A worker that receives hostile packets from the switch's address continues, or reports the error."""

from __future__ import annotations

from tests.client.fuzz_answers import fuzz


def test_worker_survives_hostile_answers() -> None:
    outcomes = fuzz(3000, seed=1)
    assert outcomes["exchanged"] > 20, "too few exchanges: this tests nothing"
    assert {"Refused", "SessionLost", "BadWelcome"} <= set(outcomes)
