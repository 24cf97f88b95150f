"""The thread that runs a group's collectives."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from serene.client import TransportError
from serene.torch import work


def test_a_sign_that_cannot_be_given_does_not_end_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or each collective after it would wait for ever."""
    monkeypatch.setattr(work, "IDLE_S", 0.01)
    tried, ran = threading.Event(), threading.Event()

    def idle() -> None:
        tried.set()
        raise TransportError("cannot send to the switch")

    runner = work.Runner("serene-test", idle)
    assert tried.wait(60)
    assert runner.submit(ran.set, []).wait(timedelta(seconds=60))
    assert ran.is_set()
    assert runner.stop(60)
