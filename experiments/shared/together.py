"""Calls functions at the same time, each in a process of its own, which is forked from this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from serene.errors import SereneError
from serene.experiments.shared.pool import end_with_owner

CONTEXT = multiprocessing.get_context("fork")  # the functions share its barriers and values

R = TypeVar("R")


class CallFailed(SereneError):
    """A function raised, its process died, or it took too long; the message states which one, and why."""


def results(calls: Mapping[str, Callable[[], R]], patience_s: float) -> dict[str, R]:
    """What the functions return, by name. Raises CallFailed as soon as one fails, or after so many seconds; the others
    are killed then, for they may wait for it."""
    pipes: dict[str, Connection] = {}
    processes = []
    try:
        for name, call in calls.items():
            pipes[name], theirs = CONTEXT.Pipe(duplex=False)
            processes.append(CONTEXT.Process(target=_send, args=(call, theirs)))
            processes[-1].start()
            theirs.close()
        return _received(pipes, patience_s)
    finally:
        for process in processes:
            process.kill()
            process.join()


def _received(pipes: Mapping[str, Connection], patience_s: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    until = time.monotonic() + patience_s
    while len(found) < len(pipes):
        waiting = {pipe: name for name, pipe in pipes.items() if name not in found}
        ready = wait([*waiting], max(until - time.monotonic(), 0.0))
        if not ready:
            raise CallFailed(f"did not end within {patience_s:g} s: {', '.join(waiting.values())}")
        for pipe in ready:
            assert isinstance(pipe, Connection)
            try:
                trouble, result = pipe.recv()
            except EOFError:
                trouble, result = "its process died", None
            if trouble:
                raise CallFailed(f"{waiting[pipe]}: {trouble}")
            found[waiting[pipe]] = result
    return {name: found[name] for name in pipes}


def _send(call: Callable[[], object], answers: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the owner
    threading.Thread(target=end_with_owner, daemon=True).start()
    try:
        answer = "", call()
    except Exception as error:
        answer = f"{type(error).__name__}: {error}", None
    answers.send(answer)
    answers.close()
    os._exit(0)  # gloo's threads may abort at the interpreter's end: docs/pytorch.md, At the end
