"""The errors of compiling C code."""

from __future__ import annotations

from serene.errors import SereneError


class CompilerMissing(SereneError):
    """This machine has no C compiler."""


class CompileFailed(SereneError):
    """The compiler refused the code or reached a limit, or the result could not be stored."""


class UnsafeCache(CompileFailed):
    """The directory of compiled libraries belongs to another user, or others may write to it."""
