"""The results of asynchronous collectives, and the thread that runs a group's collectives in order."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._autograd import _profiler_enabled
from torch._C._distributed_c10d import PythonCallbackWork
from torch.autograd.profiler import record_function
from torch.futures import Future, collect_all

from serene.errors import SereneError

LOG = logging.getLogger("serene.torch")
IDLE_S = 1.0  # between calls of ``idle``, and between checks whether the thread is alive


class ThreadEnded(SereneError, RuntimeError):
    """The thread that runs a group's collectives has ended, so its remaining collectives have failed."""


def backward_pass() -> int | None:
    """The number of the backward pass that autograd runs in this thread; None if it runs none."""
    number = torch._C._current_graph_task_id()
    return None if number == -1 else int(number)


def at_the_end_of_backward(check: Callable[[], object]) -> None:
    """Calls ``check`` when the backward pass of this thread ends: `backward()` raises its error. An error in a future
    is not enough: DistributedDataParallel turns it into a RuntimeError about a callback.
    """

    def callback() -> None:
        check()

    torch.autograd.Variable._execution_engine.queue_callback(callback)


class _Outcome:
    """A collective's outcome. tensors: its outputs. under_way: whether the thread that ends it is alive."""

    def __init__(self, tensors: list[Tensor], under_way: Callable[[], bool]) -> None:
        self.tensors = tensors
        self.over = threading.Event()
        self.error: BaseException | None = None
        self.under_way = under_way

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """As `SwitchWork.wait`."""
        seconds = timeout.total_seconds()
        until = time.monotonic() + seconds if seconds > 0 else math.inf
        while not self.over.wait(max(0.0, min(IDLE_S, until - time.monotonic()))):
            if time.monotonic() >= until:
                raise TimeoutError(f"the collective did not end within {seconds:g} s")
            if not self.under_way() and not self.over.is_set():
                raise ThreadEnded("the group's thread has ended, or belongs to another process")
        if self.error is not None:
            raise self.error
        return True

    def value(self, _: object) -> list[Tensor]:
        if self.error is not None:
            raise self.error
        return self.tensors


class SwitchWork(PythonCallbackWork):
    """An unfinished collective. PyTorch's own `Work` made from a future does not suffice: its `wait()` does not raise
    the future's error. Nor does a Python subclass of `Work`: PyTorch's C++ part is useless when the Python object is
    gone, and DistributedDataParallel's `join` drops it. C++ code gets this one's outcome by its callback and its
    future.

    tensors: the collective's outputs, its result. under_way: whether the thread that ends it is alive.
    """

    def __init__(self, tensors: list[Tensor], under_way: Callable[[], bool]) -> None:
        self.outcome = _Outcome(tensors, under_way)
        super().__init__(self.outcome.wait)
        self._asked = threading.Lock()  # guards the futures, which are made on request
        self._ended: Future[None] | None = None
        self._future: Future[list[Tensor]] | None = None

    def end(self, error: BaseException | None = None) -> None:
        """Marks the collective as ended, with this error if it failed."""
        outcome = self.outcome
        outcome.error = error
        # The future for C++ code. Its callbacks run here, and must make ordinary tensors.
        with torch.inference_mode(False):
            if error is None:  # before any `wait` ends: that of C++ would give the future an empty result
                super().get_future().set_result(outcome.tensors)
            with self._asked:
                outcome.over.set()
                ended = self._ended
            with suppress(BaseException):  # the error
                super().wait()  # passes the error to C++ code, or marks the work as completed
        if ended is not None:
            # Not in this thread, which runs the group's collectives: a callback may wait for the next one, as PyTorch's
            # PowerSGD does.
            threading.Thread(target=ended.set_result, args=(None,), name="serene-future", daemon=True).start()

    # For Python code

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Returns True when the collective has ended. Raises its error; TimeoutError after ``timeout`` (zero or less:
        none); ThreadEnded if it can never end, as in a forked process."""
        return self.outcome.wait(timeout)

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self.outcome.over.is_set()

    def is_success(self) -> bool:
        return self.outcome.over.is_set() and self.outcome.error is None

    def exception(self) -> Any:
        return self.outcome.error

    def result(self) -> list[Tensor]:
        self.wait()
        return self.outcome.tensors

    def get_future(self) -> Future[Any]:
        with self._asked:
            if self._future is None:
                # PyTorch's C++ code treats an exception that is set in a future as the future's value. It raises only a
                # callback's exception again.
                ended: Future[None] = Future()
                self._future = ended.then(self.outcome.value)
                if self.outcome.over.is_set():
                    ended.set_result(None)
                else:
                    self._ended = ended
            return self._future


def both(first: SwitchWork, second: dist.Work) -> SwitchWork:
    """A work without tensors that ends when both have ended, and fails with the error of one of them."""
    work = SwitchWork([], first.outcome.under_way)

    def end(done: Future[Any]) -> None:
        try:
            done.value()
        except Exception as error:
            work.end(first.exception() or error)
        else:
            work.end()

    collect_all([first.get_future(), second.get_future()]).add_done_callback(end)
    return work


@contextmanager
def profiled(what: str, task: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Yields the task to submit. If PyTorch's profiler is on, it shows ``serene:WHAT``, as it does for gloo. This event
    ends with the task, before its work ends. Then a program may stop the profiler, and PyTorch crashes if an event ends
    later."""
    if not _profiler_enabled():
        yield task
        return
    ended: Future[None] = Future()

    def shown_task() -> None:
        try:
            task()
        finally:
            ended.set_result(None)

    with record_function(f"serene:{what}") as shown:
        shown._call_end_callbacks_on_future(ended)
        yield shown_task


class Runner:
    """A thread that runs tasks one after the other. idle: called in it about every IDLE_S while there is no task."""

    def __init__(self, name: str, idle: Callable[[], None]) -> None:
        self._tasks: queue.SimpleQueue[tuple[Callable[[], None], SwitchWork] | None] = queue.SimpleQueue()
        self._idle = idle
        self._ended: ThreadEnded | None = None
        self._last: weakref.ref[SwitchWork] | None = None  # weak: a work is not kept after its end
        # A daemon: a script without `destroy_process_group` can end, too.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, task: Callable[[], None], tensors: list[Tensor]) -> SwitchWork:
        """Queues the task. Returns a work with these tensors as its result, which ends with the task, and fails with
        the task's error."""
        work = SwitchWork(tensors, self._thread.is_alive)
        self._last = weakref.ref(work)
        # Without a lock, which an interrupt could leave locked: the thread sets its end before it empties the queue.
        self._tasks.put((task, work))
        if self._ended is not None:
            self._end_all(self._ended)
        return work

    def last_under_way(self) -> SwitchWork | None:
        """The last unfinished work; None if all have ended."""
        last = None if self._last is None else self._last()
        return None if last is None or last.is_completed() else last

    def stop(self, timeout_s: float) -> bool:
        """Ends the thread after the submitted tasks. Returns whether it ended within the time."""
        self._tasks.put(None)
        if threading.current_thread() is self._thread:  # the garbage collector calls finalizers in any thread
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        why = "it was stopped"
        try:
            # Results are written into parameters, their gradients, and tensors of inference mode, which cannot be
            # written to outside of it.
            with torch.inference_mode():
                self._serve()
        except BaseException as error:
            why = repr(error)
            raise  # threading prints it
        finally:
            self._end_all(ThreadEnded(f"the group's thread has ended: {why}"))

    def _end_all(self, error: ThreadEnded) -> None:
        """Ends the works of tasks that will not run any more."""
        self._ended = error
        with suppress(queue.Empty):  # two threads may empty it
            while True:
                if (item := self._tasks.get_nowait()) is not None:
                    item[1].end(error)

    def _serve(self) -> None:
        logged = ""
        while True:
            try:
                item = self._tasks.get(timeout=IDLE_S)
            except queue.Empty:
                try:
                    self._idle()
                except SereneError as error:  # for example, the network is down: the next collective raises it
                    LOG.info("between collectives: %s", error)
                except Exception as error:
                    if logged != repr(error):  # once, not every second
                        LOG.exception("between collectives")
                    logged = repr(error)
                continue
            if item is None:
                return
            task, work = item
            try:
                task()
            except BaseException as error:
                work.end(error)
            else:
                work.end()
            del task, work, item  # otherwise their tensors would live until the next collective
