"""What an asynchronous collective gives its caller, and the thread that runs a group's collectives in their order."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from serene.errors import SereneError

LOG = logging.getLogger("serene.torch")
IDLE_S = 1.0


class ThreadEnded(SereneError, RuntimeError):
    """The thread that runs a group's collectives has ended, and with it every collective that it had not run."""


def in_backward() -> bool:
    """Whether autograd is at work in this thread."""
    return bool(torch._C._current_graph_task_id() != -1)


def at_the_end_of_backward(check: Callable[[], object]) -> None:
    """What ``check`` raises, `backward()` raises as it is. To be called while autograd is at work.

    DistributedDataParallel raises what a future failed with as a RuntimeError about a callback.
    """

    def callback() -> None:
        check()

    torch.autograd.Variable._execution_engine.queue_callback(callback)


class SwitchWork(dist.Work):
    """A collective under way; its result are the tensors that it writes to.

    PyTorch's own `Work` made from a future does not raise in `wait()` what the future failed with.

    under_way: whether somebody is there who will end it.
    """

    def __init__(self, tensors: list[Tensor], under_way: Callable[[], bool]) -> None:
        super().__init__()
        self._tensors = tensors
        self._under_way = under_way
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._asked = threading.Lock()  # what follows is made when somebody asks for it
        self._ended: Future[None] | None = None
        self._future: Future[list[Tensor]] | None = None

    def _outcome(self, _: object) -> list[Tensor]:
        if self._error is not None:
            raise self._error
        return self._tensors

    def end(self, error: BaseException | None = None) -> None:
        """The collective has ended, well or with this error."""
        self._error = error
        with self._asked:
            self._over.set()
            ended = self._ended
        if ended is not None:
            # Not in this thread, which runs the group's collectives: what is called back may wait for the next one, as
            # PyTorch's PowerSGD does; and it must not be in inference mode.
            threading.Thread(target=ended.set_result, args=(None,), name="serene-future", daemon=True).start()

    # What PyTorch calls

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Raises what the collective failed with, or TimeoutError after ``timeout``; zero or less stands for none.

        Raises ThreadEnded in a process that was forked from the one whose thread runs the collective, too.
        """
        seconds = timeout.total_seconds()
        until = time.monotonic() + seconds if seconds > 0 else math.inf
        while not self._over.wait(max(0.0, min(IDLE_S, until - time.monotonic()))):
            if time.monotonic() >= until:
                raise TimeoutError(f"the collective did not end within {seconds:g} s")
            if not self._under_way() and not self._over.is_set():
                raise ThreadEnded("the thread that runs the group's collectives has ended, or is in another process")
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._over.is_set()

    def is_success(self) -> bool:
        return self._over.is_set() and self._error is None

    def exception(self) -> Any:
        return self._error

    def result(self) -> list[Tensor]:
        self.wait()
        return self._tensors

    def get_future(self) -> Future[Any]:
        with self._asked:
            if self._future is None:
                # PyTorch's C++ code takes an exception that is set in a future for its value; one that is raised in a
                # callback it raises.
                ended: Future[None] = Future()
                self._future = ended.then(self._outcome)
                if self._over.is_set():
                    ended.set_result(None)
                else:
                    self._ended = ended
            return self._future


class Runner:
    """A thread that runs what it is given, one after the other. ``idle`` is called about every IDLE_S in between."""

    def __init__(self, name: str, idle: Callable[[], None]) -> None:
        self._tasks: queue.SimpleQueue[tuple[Callable[[], None], SwitchWork] | None] = queue.SimpleQueue()
        self._idle = idle
        self._ending = threading.Lock()  # after it, every work that was submitted has ended, or is ended at once
        self._ended: ThreadEnded | None = None
        # A daemon: a script that ends without `destroy_process_group` ends all the same.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, task: Callable[[], None], tensors: list[Tensor]) -> SwitchWork:
        work = SwitchWork(tensors, self._thread.is_alive)
        with self._ending:
            if self._ended is None:
                self._tasks.put((task, work))
                return work
        work.end(self._ended)
        return work

    def stop(self, timeout_s: float) -> bool:
        """Ends after what was submitted; whether it did within the time."""
        self._tasks.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        why = "it was told to"
        try:
            # Results are written into parameters and their gradients; and into what was made in inference mode, to
            # which nothing else may write.
            with torch.inference_mode():
                self._serve()
        except BaseException as error:
            why = repr(error)
            raise  # threading prints it
        finally:
            self._end_all(ThreadEnded(f"the thread that runs the group's collectives has ended: {why}"))

    def _end_all(self, error: ThreadEnded) -> None:
        """Of what it will not run any more: nobody else would."""
        with self._ending:
            self._ended = error
        while not self._tasks.empty():
            if (item := self._tasks.get()) is not None:
                item[1].end(error)

    def _serve(self) -> None:
        told = ""
        while True:
            try:
                item = self._tasks.get(timeout=IDLE_S)
            except queue.Empty:
                try:
                    self._idle()
                except SereneError as error:  # a network that is down; the next collective tells
                    LOG.info("between collectives: %s", error)
                except Exception as error:
                    if told != repr(error):  # once, not every second
                        LOG.exception("between collectives")
                    told = repr(error)
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
            del task, work, item  # or their tensors would live until the next collective
