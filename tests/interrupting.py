"""Interrupts at each place of some code, in turn: ``count`` up to the first for which there is no place."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupted_at(count: int, call: Callable[[], object], file: str, place: str = "line") -> bool:
    """Raises KeyboardInterrupt before a place in this call, the one of that number. Returns whether there was one.
    place: "line", or "opcode" for an instruction: a signal's handler runs between two of these. file: how the paths
    begin of the files whose places count."""
    left = count

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(file):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = place == "opcode", place == "line"
        if event == place:
            left -= 1
            if not left:
                raise KeyboardInterrupt
        return trace

    # The collector would run finalizers of earlier tests' objects in this call. Python ignores an interrupt there.
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
        gc.enable()
    return False
