"""The constants of one generated program, which its functions share, and the limits on its size."""

from __future__ import annotations

from serene.embedded.program.errors import UnsupportedProgram
from serene.embedded.program.limits import MAX_SOURCE_BYTES, MAX_STACK_LIMBS


class Budget:
    def __init__(self) -> None:
        self.constants: dict[tuple[int, int], str] = {}  # (value, limbs) -> its name
        self._stack_limbs = 0
        self._written = 0

    def spend(self, limbs: int) -> None:
        """Counts a function's use of the stack. Generated functions run in threads, whose stacks are small."""
        self._stack_limbs += limbs
        if self._stack_limbs > MAX_STACK_LIMBS:
            raise UnsupportedProgram(f"intermediate values of more than {8 * MAX_STACK_LIMBS} bytes in total")

    def wrote(self, size: int) -> None:
        self._written += size
        if self._written > MAX_SOURCE_BYTES:
            raise UnsupportedProgram(f"the generated C code has more than {MAX_SOURCE_BYTES} bytes")
