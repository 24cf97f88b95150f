"""A pool of processes that work tasks off; one that dies costs its own task only.

concurrent.futures gives all work up when one process is killed, and may wait for ever; a sweep of an hour must not.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

T = TypeVar("T")
PR_SET_PDEATHSIG = 1


@dataclass
class _Hand(Generic[T]):
    process: BaseProcess
    pipe: Connection
    doing: T | None = None


def work_off(todo: Sequence[T], do: Callable[[T], None], hands: int) -> Iterator[tuple[T, str | None]]:
    """Does everything, ``hands`` at a time, in processes of their own; yields what is done, with what went wrong.

    When the caller stops asking, or dies, what runs is given up and the processes end.
    """
    waiting = list(reversed(todo))
    crew = [_hire(do) for _ in range(min(hands, len(todo)))]
    try:
        for hand in crew:
            _give(hand, waiting)
        while busy := [hand for hand in crew if hand.doing is not None]:
            ready = wait([hand.pipe for hand in busy] + [hand.process.sentinel for hand in busy])
            for place, hand in enumerate(crew):
                if hand.doing is None or (hand.pipe not in ready and hand.process.sentinel not in ready):
                    continue
                done = hand.doing
                try:
                    trouble = hand.pipe.recv()
                except (EOFError, OSError):
                    hand.process.join()
                    trouble = f"its process ended with status {hand.process.exitcode}"
                    crew[place] = hand = _hire(do)
                _give(hand, waiting)
                yield done, trouble
    finally:
        for hand in crew:
            hand.process.terminate()
        for hand in crew:
            hand.process.join()
            hand.pipe.close()


def _hire(do: Callable[[T], None]) -> _Hand[T]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, do, os.getpid()), daemon=False)
    process.start()
    theirs.close()
    return _Hand(process, ours)


def _give(hand: _Hand[T], waiting: list[T]) -> None:
    hand.doing = waiting.pop() if waiting else None
    if hand.doing is not None:
        hand.pipe.send(hand.doing)


def _serve(pipe: Connection, do: Callable[[T], None], parent: int) -> None:
    """In a process of the pool: it ends with its parent, which handles the terminal's signals."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
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
