"""A pool of processes that work tasks off; one that dies costs its own task only.

concurrent.futures gives all work up when one process is killed, and may wait for ever; a sweep of an hour must not.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Child(Generic[T]):
    process: BaseProcess
    pipe: Connection
    doing: T | None = None


def work_off(todo: Sequence[T], do: Callable[[T], None], processes: int) -> Iterator[tuple[T, str | None]]:
    """Does everything, ``processes`` at a time, in processes of their own; yields what is done, with what went wrong.

    When the caller stops asking, or dies, what runs is given up and the processes end.
    """
    waiting = list(reversed(todo))
    children = [_start(do) for _ in range(min(processes, len(todo)))]
    try:
        for child in children:
            _give(child, waiting)
        while busy := [child for child in children if child.doing is not None]:
            ready = wait([child.pipe for child in busy] + [child.process.sentinel for child in busy])
            for place, child in enumerate(children):
                if child.doing is None or (child.pipe not in ready and child.process.sentinel not in ready):
                    continue
                done = child.doing
                try:
                    trouble = child.pipe.recv()
                except (EOFError, OSError):
                    child.process.join()
                    trouble = f"its process ended with status {child.process.exitcode}"
                    children[place] = child = _start(do)
                _give(child, waiting)
                yield done, trouble
    finally:
        for child in children:
            child.process.terminate()
        for child in children:
            child.process.join()
            child.pipe.close()


def _start(do: Callable[[T], None]) -> _Child[T]:
    """Forked from a server without threads, which imports what ``do`` needs once for all: PyTorch takes seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([(do.func if isinstance(do, partial) else do).__module__])
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, do), daemon=False)
    process.start()
    theirs.close()
    return _Child(process, ours)


def _give(child: _Child[T], waiting: list[T]) -> None:
    child.doing = waiting.pop() if waiting else None
    if child.doing is not None:
        child.pipe.send(child.doing)


def _serve(pipe: Connection, do: Callable[[T], None]) -> None:
    """In a process of the pool: it ends with the pool's owner, which handles the terminal's signals."""
    threading.Thread(target=_end_with_owner, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            do(task)
            trouble = None
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
        pipe.send(trouble)


def _end_with_owner() -> None:
    """The parent is the server it was forked from, which outlives the owner for as long as this process is there."""
    owner = multiprocessing.parent_process()
    assert owner is not None
    owner.join()
    os.kill(os.getpid(), signal.SIGKILL)
