"""Sets the number of slots of a compiled program. In p4c's output this number is only the size of some registers.

These are the registers whose index the program computes from the job's first slot. They are found in the compiled
program. So another number of slots needs no compiler, and no list of register names has to match the P4 sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from serene.errors import SereneError

FIRST_SLOT = "first_slot"  # the parameter of the table `job` from which a packet's slot is computed
BMV2_CELL_BYTES = 172  # in addition to the value; simple_switch_grpc 1.15 grew by 426 MB for 40,000 slots of 62 cells
MAX_SLOTS = 1 << 23  # a register has at most 2^28 cells, and one register has 32 cells for each slot


class NotBySlot(SereneError):
    """A program's number of slots cannot be determined or changed."""


@dataclass(frozen=True)
class SlotRegister:
    """A register with cells for each slot. cells: of a slot; bits: of a cell."""

    name: str
    cells: int
    bits: int


@dataclass(frozen=True)
class SlotState:
    """A program's state per slot: the number of slots that it was compiled with, and the registers that have cells for
    each."""

    slots: int
    registers: tuple[SlotRegister, ...]

    @property
    def bytes_per_slot(self) -> int:
        return sum(register.cells * register.bits for register in self.registers) // 8

    @property
    def bmv2_bytes_per_slot(self) -> int:
        """BMv2's memory for it. BMv2 stores every cell as a separate number."""
        return self.bytes_per_slot + BMV2_CELL_BYTES * sum(register.cells for register in self.registers)

    @classmethod
    def of(cls, program: Mapping[str, Any]) -> SlotState:
        """program: p4c's JSON for BMv2. Raises NotBySlot if no register is indexed by slot, or if the cells of one are
        not a multiple of the slots."""
        by_slot = _indexed_by_slot(program)
        arrays = {array["name"]: array for array in program["register_arrays"] if array["name"] in by_slot}
        if not arrays:
            raise NotBySlot(f"no register of the program has an index that is computed from {FIRST_SLOT}")
        slots = min(array["size"] for array in arrays.values())
        for name, array in arrays.items():
            if slots < 1 or array["size"] % slots:
                raise NotBySlot(f"register {name} is indexed by slot and has {array['size']} cells for {slots} slots")
        return cls(
            slots,
            tuple(SlotRegister(name, array["size"] // slots, array["bitwidth"]) for name, array in arrays.items()),
        )


def _indexed_by_slot(program: Mapping[str, Any]) -> set[str]:
    """The registers that an action reads or writes at an index that is computed from the job's first slot."""
    from_first_slot: set[tuple[str, ...]] = set()  # fields that are computed from it
    assigned: list[tuple[tuple[str, ...], set[tuple[str, ...]]]] = []  # a field, and the fields in its expression
    indexed: list[tuple[str, set[tuple[str, ...]]]] = []  # a register, and the fields in its index
    for action in program["actions"]:
        parameters = [parameter["name"] for parameter in action["runtime_data"]]
        for primitive in action["primitives"]:
            given = primitive["parameters"]
            if primitive["op"] == "assign" and given[0]["type"] == "field":
                target = tuple(given[0]["value"])
                assigned.append((target, set(_fields(given[1]))))
                if any(parameters[number] == FIRST_SLOT for number in _parameters(given[1])):
                    from_first_slot.add(target)
            elif primitive["op"] == "register_read":
                indexed.append((given[1]["value"], set(_fields(given[2]))))
            elif primitive["op"] == "register_write":
                indexed.append((given[0]["value"], set(_fields(given[1]))))
    known = -1
    while known < len(from_first_slot):
        known = len(from_first_slot)
        from_first_slot |= {target for target, sources in assigned if sources & from_first_slot}
    return {register for register, fields in indexed if fields & from_first_slot}


def _fields(expression: Any) -> Iterator[tuple[str, ...]]:
    """The fields in an expression of the JSON."""
    yield from (tuple(value) for value in _of_type("field", expression))


def _parameters(expression: Any) -> Iterator[int]:
    """The numbers of the action's parameters in an expression."""
    yield from _of_type("runtime_data", expression)


def _of_type(kind: str, expression: Any) -> Iterator[Any]:
    if isinstance(expression, dict):
        if expression.get("type") == kind:
            yield expression["value"]
        else:
            yield from (found for part in expression.values() for found in _of_type(kind, part))
    elif isinstance(expression, list):
        yield from (found for part in expression for found in _of_type(kind, part))


def check_number(slots: int) -> None:
    """Raises NotBySlot unless a program can have this number of slots."""
    if not 1 <= slots <= MAX_SLOTS:
        raise NotBySlot(f"{slots} slots: expected 1 to {MAX_SLOTS}")


def resized(config: bytes, slots: int) -> bytes:
    """p4c's JSON with this number of slots; unchanged if it has that already. Raises NotBySlot."""
    check_number(slots)
    program = json.loads(config)
    state = SlotState.of(program)
    if slots == state.slots:
        return config
    cells = {register.name: register.cells for register in state.registers}
    for array in program["register_arrays"]:
        if array["name"] in cells:
            array["size"] = cells[array["name"]] * slots
    return json.dumps(program).encode()


def resized_p4info(p4info: str, state: SlotState, slots: int) -> str:
    """A P4Info text with this number of slots. state: of the JSON beside it. Raises NotBySlot if they do not match."""
    for register in state.registers:
        size = re.compile(
            rf'(\n    name: "{re.escape(register.name)}"\n(?:(?!\n}}).)*?\n  size: ){register.cells * state.slots}\n',
            re.S,
        )
        p4info, found = size.subn(rf"\g<1>{register.cells * slots}\n", p4info)
        if found != 1:
            raise NotBySlot(f"the P4Info has no register {register.name} of {register.cells * state.slots} cells")
    return p4info
