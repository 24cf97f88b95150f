"""Why C code was not compiled."""

from __future__ import annotations

from serene.errors import SereneError


class CompilerMissing(SereneError):
    """No C compiler on this machine."""


class CompileFailed(SereneError):
    """The C code was not compiled: the compiler's refusal, a limit, or no place to keep the result."""


class UnsafeCache(CompileFailed):
    """The directory of compiled libraries is another user's, or others may write to it."""
