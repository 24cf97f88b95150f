"""Warnings at the line of the user's program that led to them."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

NOT_THE_USERS = ("serene", "torch")  # packages


def warn_user(text: str) -> None:
    """A RuntimeWarning. To be called in the thread of the user's program, somewhere below its line."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)
