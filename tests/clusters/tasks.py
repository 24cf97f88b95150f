"""Tasks for the tests of executors. A task's name says how it misbehaves, if it does."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def do(task: str) -> str:
    """Does a task, ``name`` or ``name:how``. ``kill`` kills the process. ``note PATH`` writes the id of the first
    process to PATH; ``kill-first PATH`` then kills that one, ``kill-later PATH`` all others. ``fail`` raises; ``data``
    reads a data set that is not there; ``wait PATH`` waits until PATH exists."""
    name, _, how = task.partition(":")
    what, _, path = how.partition(" ")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what in ("note", "kill-first", "kill-later"):
        order = "kill-first" if _first(Path(path)) else "kill-later"
        if what == order:
            os.kill(os.getpid(), signal.SIGKILL)
    if what == "fail":
        raise ValueError(f"no {name}")
    if what == "data":
        from serene.workers import data  # PyTorch takes seconds

        data.load("mnist", Path("/nonesuch"))
    while what == "wait" and not Path(path).exists():
        time.sleep(0.01)
    return f"{name} done"


def _first(path: Path) -> bool:
    try:
        with path.open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True


def endless(task: Path) -> None:
    task.touch()
    while True:
        signal.pause()


def ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def stubborn(task: Path) -> None:
    ignore_sigterm()
    endless(task)


def unpicklable(task: str) -> object:
    return (letter for letter in task)
