"""Computes the memory of a program's state, and checks that the machine has enough."""

from __future__ import annotations

import contextlib

from serene.embedded.program.errors import NoMemory, UnsupportedProgram
from serene.embedded.program.ir import Program, Table, limbs_of
from serene.embedded.program.limits import MAX_STATE_BYTES
from serene.process.memory import free_bytes
from serene.slots import NotBySlot, SlotState

CACHE_LINE = 64


def element_bytes(width: int) -> int:
    """The size of a register's element in memory."""
    return 8 * limbs_of(width) if width > 64 else next(bits for bits in (8, 16, 32, 64) if width <= bits) // 8


def state_bytes(program: Program) -> int:
    """Bytes of memory that a program's tables, counters, meters and registers take when all of them are used."""
    used = sum(_table_bytes(table) for table in program.tables.values())
    used += sum(16 * array.size for array in program.counters.values())
    used += sum(64 * array.size for array in program.meters.values())
    used += _register_bytes(program)
    for profile in program.action_profiles.values():
        used += profile.size * (40 + 8 * max((action.limbs for action in profile.actions.values()), default=0))
    return used


def _register_bytes(program: Program) -> int:
    """As in codegen/layout.py: registers of equal size are the columns of one array."""
    rows: dict[int, int] = {}
    for array in program.registers.values():
        rows[array.size] = rows.get(array.size, 0) + element_bytes(array.width)
    return sum(size * (row if row <= CACHE_LINE else -(-row // CACHE_LINE) * CACHE_LINE) for size, row in rows.items())


def check_state(program: Program) -> None:
    used = state_bytes(program)
    if used > MAX_STATE_BYTES:
        raise UnsupportedProgram(f"tables, counters, meters and registers of {used} bytes; {MAX_STATE_BYTES} at most")


def check_memory(program: Program) -> None:
    """Raises NoMemory if the machine has less free memory than the program's state takes. Called before the state is
    allocated: the kernel allocates pages when they are first used, so memory would run out during a training."""
    used, free = state_bytes(program), free_bytes()
    if free is None or used <= free:
        return
    message = (
        f"the program's state takes {used / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB of this machine's memory are free"
    )
    with contextlib.suppress(NotBySlot, KeyError, TypeError, IndexError):
        slots, registers = SlotState.of(program.json).slots, _register_bytes(program)
        most = (free - used + registers) * slots // registers
        message += f": {slots} slots; the largest number that fits is {max(most, 0)}"
    raise NoMemory(message)


def _table_bytes(table: Table) -> int:
    return (table.size + 1) * (128 + 16 * table.key_limbs + 8 * table.data_limbs)
