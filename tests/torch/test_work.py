"""The thread that runs a group's collectives."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from serene.client import TransportError
from serene.errors import SereneError
from serene.torch import work

PATIENCE_S = 120.0


def wait_for(event: threading.Event) -> None:
    assert event.wait(PATIENCE_S)


@pytest.fixture
def runner() -> Iterator[work.Runner]:
    made = work.Runner("serene-test", lambda: None)
    yield made
    assert made.stop(PATIENCE_S)


@pytest.mark.parametrize("error", [TransportError("cannot send to the switch"), OSError(24, "Too many open files")])
def test_failing_idle_callback_does_not_end_the_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """Otherwise every later collective would wait for ever."""
    monkeypatch.setattr(work, "IDLE_S", 0.01)
    tries = threading.Semaphore(0)

    def idle() -> None:
        tries.release()
        raise error

    with caplog.at_level("INFO", "serene.torch"):
        runner = work.Runner("serene-test", idle)
        assert all(tries.acquire(timeout=PATIENCE_S) for _ in range(3))
        ran = threading.Event()
        assert runner.submit(ran.set, []).wait(timedelta(seconds=PATIENCE_S))
        assert ran.is_set()
        assert runner.stop(PATIENCE_S)
    assert str(error) in caplog.text
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == (0 if isinstance(error, SereneError) else 1), "once, not at every try"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_collective_exception_ends_only_that_collective(runner: work.Runner, error: BaseException) -> None:
    def fail() -> None:
        raise error

    failed = runner.submit(fail, [])
    with pytest.raises(type(error)):
        failed.wait(timedelta(seconds=PATIENCE_S))
    assert not failed.is_success() and failed.exception() is error
    assert runner.submit(lambda: None, []).wait(timedelta(seconds=PATIENCE_S))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_dead_runner_thread_fails_queued_and_later_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "IDLE_S", 0.01)
    idles, end = threading.Event(), threading.Event()

    def idle() -> None:
        idles.set()
        wait_for(end)
        raise GeneratorExit("no more")

    runner = work.Runner("serene-test", idle)
    wait_for(idles)
    queued = [runner.submit(lambda: None, []) for _ in range(3)]
    asked_before = queued[2].get_future()
    end.set()
    for each in queued:
        with pytest.raises(SereneError, match=r"the group's thread has ended: GeneratorExit\('no more'\)"):
            each.wait(timedelta(seconds=PATIENCE_S))
    assert runner.stop(PATIENCE_S)
    later = runner.submit(lambda: None, [])
    with pytest.raises(SereneError, match="has ended"):
        later.wait(timedelta(seconds=PATIENCE_S))
    for future in (asked_before, queued[0].get_future(), later.get_future()):
        with pytest.raises(RuntimeError, match="has ended"):
            future.wait()


def test_forked_child_does_not_wait_for_its_parents_thread(runner: work.Runner) -> None:
    """A forked process has no such thread: nobody would complete the collective."""
    go_on = threading.Event()
    under_way = runner.submit(partial(wait_for, go_on), [])
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE_S))
        try:
            under_way.wait()
        except work.ThreadEnded:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    go_on.set()
    assert os.waitstatus_to_exitcode(status) == 0
    assert under_way.wait(timedelta(seconds=PATIENCE_S))


def test_future_callback_may_wait_for_another_collective(runner: work.Runner) -> None:
    """Several callbacks at a time: PowerSGD does so for every bucket."""
    begin, ended = threading.Event(), threading.Semaphore(0)

    def next_one(_: Future[list[Tensor]]) -> None:
        assert runner.submit(lambda: None, []).get_future().wait() == []
        ended.release()

    for _ in range(5):
        runner.submit(partial(wait_for, begin), []).get_future().then(next_one)
    begin.set()
    assert all(ended.acquire(timeout=PATIENCE_S) for _ in range(5))


def test_future_callback_tensors_are_not_inference_tensors(runner: work.Runner) -> None:
    """The thread writes in inference mode; autograd refuses tensors made in that mode."""
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


def test_future_requested_after_the_end_has_the_outcome(runner: work.Runner) -> None:
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


@pytest.mark.parametrize("error", [None, TransportError("no switch")])
def test_cpp_code_gets_the_outcome_without_the_python_object(runner: work.Runner, error: TransportError | None) -> None:
    """DistributedDataParallel's reducer keeps such a work in `join`."""
    begin = threading.Event()

    def task() -> None:
        wait_for(begin)
        if error is not None:
            raise error

    kept = runner.submit(task, [torch.ones(2)]).boxed()  # as C++ code has it
    gc.collect()
    begin.set()
    assert runner.submit(lambda: None, []).wait(timedelta(seconds=PATIENCE_S))
    of_cpp = dist.Work.unbox(kept)
    assert error or type(of_cpp) is not work.SwitchWork  # the error's traceback keeps it
    if error is None:
        assert of_cpp.wait() and of_cpp.is_completed()
        assert of_cpp.get_future().wait()[0].tolist() == [1, 1]
    else:
        with pytest.raises(TransportError, match="no switch"):
            of_cpp.wait()
        with pytest.raises(RuntimeError, match="no switch"):
            of_cpp.get_future().wait()


def test_cpp_code_that_waits_first_gets_the_result(runner: work.Runner) -> None:
    """Its `wait` would otherwise give the future an empty result."""
    begin = threading.Event()
    kept = dist.Work.unbox(runner.submit(partial(wait_for, begin), [torch.ones(2)]).boxed())
    waiting = threading.Thread(target=kept.wait)
    waiting.start()
    begin.set()
    waiting.join(PATIENCE_S)
    assert kept.get_future().wait()[0].tolist() == [1, 1]


def test_profilers_event_ends_before_the_work(runner: work.Runner) -> None:
    """Otherwise a program that stops the profiler after a collective ends by SIGSEGV."""
    for _ in range(300):
        with torch.autograd.profiler.profile() as profile:
            with work.profiled("sum", lambda: None) as task:
                submitted = runner.submit(task, [])
            submitted.wait()
        assert [event.name for event in profile.function_events] == ["serene:sum"]
