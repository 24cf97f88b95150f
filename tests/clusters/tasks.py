"""What workers are given in the tests of executors. A task that is to misbehave says so in its name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def do(task: str) -> str:
    """name, or name:how. ``kill`` ends every process that does it; ``kill-once PATH`` the first one, which leaves its
    process id there; ``fail`` raises; ``data`` reads pictures that nobody has; ``wait PATH`` waits for PATH."""
    name, _, how = task.partition(":")
    what, _, path = how.partition(" ")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "kill-once" and _first(Path(path)):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "fail":
        raise ValueError(f"no {name}")
    if what == "data":
        from workers import data  # PyTorch takes seconds

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


def unpicklable(task: str) -> object:
    return (letter for letter in task)
