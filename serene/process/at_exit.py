"""Garbage collection when Serene's programs start and end."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """A block that imports a program's modules. They are never garbage, and searching them would take a tenth of a
    command's start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def leave_garbage() -> None:
    """Skips garbage collection when this program ends: the kernel frees all its memory anyway.

    Python would traverse all imported objects several times, which takes a third of a short command's time.
    """
    atexit.register(gc.freeze)
