"""Warnings that name the line of the user's program that caused them."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

NOT_THE_USERS = ("serene", "torch")  # packages whose lines are not the user's


def warn_user(text: str) -> None:
    """Issues a RuntimeWarning. Call it in the thread of the user's program, at any depth below its line."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)
