"""An executor of local processes, in which a process that dies takes only its own task with it.

The standard library's ProcessPoolExecutor gives up all tasks when one process is killed, and may wait for ever.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

from serene.errors import SereneError

R = TypeVar("R")

GRACE_S = 10.0  # for a process to end after SIGTERM, which users' code may ignore; then it is killed


class WorkerLost(Exception):
    """The process that did a task has died, and left no result; the message states how it ended."""


class Processes(ThreadPoolExecutor):
    """An executor of ``count`` processes. Functions, arguments, results and exceptions are pickled. ``shutdown`` gives
    up the tasks that still run and ends the processes; these also end when their owner dies.

    preload: modules to import once, in the server that the processes are forked from; PyTorch takes seconds to import.
    """

    def __init__(self, count: int, preload: tuple[str, ...] = ()) -> None:
        super().__init__(count)  # a thread for each process
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(preload))
        # The server's signal mask is inherited by what it forks: Ctrl-C is for the owner alone, also while a process is
        # still starting.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        except OSError as error:
            raise SereneError(
                f"cannot start processes: {error}; their socket is made in {tempfile.gettempdir()}, "
                "another folder is given by TMPDIR"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._mine = threading.local()
        self._children: set[_Child] = set()
        self._starting = threading.Lock()
        self._over = False

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        return super().submit(self._in_process, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._starting:
            self._over, children = True, [*self._children]
            for child in children:
                child.process.terminate()

        def kill() -> None:
            for child in children:
                child.process.kill()

        killer = threading.Timer(GRACE_S, kill)
        killer.start()
        try:
            super().shutdown(wait, cancel_futures=cancel_futures)
            for child in children if wait else []:
                child.end()
        finally:
            killer.cancel()

    def _in_process(self, fn: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
        """Calls the function in the process of this thread. Raises WorkerLost, and what the function raises."""
        child = getattr(self._mine, "child", None) or self._start()
        try:
            child.pipe.send((fn, args, kwargs))
            # The sentinel, too: after the process has died, one that the task started may hold the pipe's end open.
            wait([child.pipe, child.process.sentinel])
            if not child.pipe.poll():
                raise EOFError
            succeeded, value = child.pipe.recv()
        except (EOFError, OSError):
            self._mine.child = None
            with self._starting:
                self._children.discard(child)
            child.end()
            raise WorkerLost(f"its process ended with status {child.process.exitcode}") from None
        if not succeeded:
            raise value
        result: R = value
        return result

    def _start(self) -> _Child:
        with self._starting:
            if self._over:
                raise WorkerLost("the pool is shut down")
            self._mine.child = child = _Child(self._context)
            self._children.add(child)
        return child


class _Child:
    """A process of the pool and the pipe to it. It is forked from a server without threads, which a fork would
    break."""

    def __init__(self, context: multiprocessing.context.ForkServerContext) -> None:
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs,), daemon=False)
        self.process.start()
        theirs.close()

    def end(self) -> None:
        """Waits for the process to end, and closes the pipe."""
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """What a process of the pool does: calls functions until the pipe is closed or the owner ends. SIGINT is ignored: a
    terminal's Ctrl-C is for the owner to handle."""
    threading.Thread(target=end_with_owner, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with contextlib.suppress(EOFError):
        while True:
            fn, args, kwargs = pipe.recv()
            try:
                answer = ForkingPickler.dumps((True, fn(*args, **kwargs)))
            except Exception as error:  # raised by the function, or because its result cannot be pickled
                answer = _pickled(error)
            pipe.send_bytes(answer)


def _pickled(error: Exception) -> memoryview:
    """A function's exception, pickled; a RuntimeError with its text if it cannot be pickled."""
    try:
        return ForkingPickler.dumps((False, error))
    except Exception:
        return ForkingPickler.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def end_with_owner() -> None:
    """Kills this process when the pool's owner ends. The kernel's parent-death signal would not do: the parent is the
    fork server, which stays until this process has ended."""
    owner = multiprocessing.parent_process()
    assert owner is not None
    owner.join()
    os.kill(os.getpid(), signal.SIGKILL)
