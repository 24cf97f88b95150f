"""The thread that runs a group's collectives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.futures import Future

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


PATIENCE_S = 60.0


def wait_for(event: threading.Event) -> None:
    assert event.wait(PATIENCE_S)


@pytest.fixture
def runner() -> Iterator[work.Runner]:
    made = work.Runner("serene-test", lambda: None)
    yield made
    assert made.stop(PATIENCE_S)


def test_what_is_called_back_may_wait_for_the_next_collective(runner: work.Runner) -> None:
    """Each of several at a time: PowerSGD does so for every bucket."""
    begin, ended = threading.Event(), threading.Semaphore(0)

    def next_one(_: Future[list[Tensor]]) -> None:
        assert runner.submit(lambda: None, []).get_future().wait() == []
        ended.release()

    for _ in range(5):
        runner.submit(partial(wait_for, begin), []).get_future().then(next_one)
    begin.set()
    assert all(ended.acquire(timeout=PATIENCE_S) for _ in range(5))


def test_what_is_called_back_makes_ordinary_tensors(runner: work.Runner) -> None:
    """The thread writes in inference mode; what is made there, autograd refuses."""
    begin, ended = threading.Event(), threading.Event()
    made = torch.zeros(2)

    def double(future: Future[list[Tensor]]) -> None:
        nonlocal made
        made = future.value()[0] * 2
        ended.set()

    runner.submit(partial(wait_for, begin), [torch.ones(2)]).get_future().then(double)
    begin.set()
    assert ended.wait(PATIENCE_S)
    assert made.tolist() == [2, 2]
    assert not made.is_inference()


def test_a_future_that_is_asked_for_late_has_the_outcome(runner: work.Runner) -> None:
    def fail() -> None:
        raise TransportError("no switch")

    good, bad = runner.submit(lambda: None, [torch.ones(2)]), runner.submit(fail, [])
    assert good.wait(timedelta(seconds=PATIENCE_S))
    with pytest.raises(TransportError, match="no switch"):
        bad.wait(timedelta(seconds=PATIENCE_S))
    assert good.get_future() is good.get_future()
    assert good.get_future().wait()[0].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="no switch"):
        bad.get_future().wait()
