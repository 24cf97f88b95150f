"""Table entries: adding, modifying, deleting and counting them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from serene.embedded.control.loaded import Loaded, limb_array, limbs, named
from serene.embedded.control.types import (
    ControlError,
    CounterValue,
    DuplicateEntry,
    InitialEntry,
    Match,
    NoSuchEntry,
    NoSuchName,
    TableFull,
    encode_field,
    match_from_json,
)
from serene.embedded.program.ir import Action, Table, mask
from serene.errors import choices

FULL, DUPLICATE, NO_MEMORY = -1, -2, -4  # as in runtime/table.h
ROWS = 1024  # entries that are read at a time
READ_BYTES = 1 << 20  # bytes of entries that are encoded at a time
ROW = np.dtype(  # as in runtime/api.h
    [("handle", "u4"), ("action", "u4"), ("rank", "i4"), ("noted", "u4"), ("metadata", "u8"), ("packets", "u8"),
     ("bytes", "u8")]
)  # fmt: skip


class Row(NamedTuple):
    """A table entry in the engine's form."""

    handle: int
    action: int  # the action's id, or PROFILE_ENTRY
    rank: int  # the priority in ternary tables, the prefix length in LPM tables
    noted: int
    metadata: int  # the controller's number
    packets: int
    bytes: int
    limbs: list[int]  # of the key, of its mask (of ranges: the high bounds), and of its data


class TableControl(Loaded):
    def table_add(
        self, table: str, match: Sequence[Match], action: str, params: Sequence[int] = (), priority: int = 0
    ) -> int:
        """Adds an entry and returns its handle. In ternary tables the larger priority wins, as in P4Runtime."""
        target = self._table(table)
        chosen = self._action(target, action)
        return self._insert(target, match, priority, chosen.id, self._encode_data(target, chosen, params))

    def _insert(
        self, table: Table, match: Sequence[Match], priority: int, action: int, data: ctypes.Array[ctypes.c_uint64]
    ) -> int:
        key, keep, rank = self._encode_match(table, match, priority)
        handle = self._lib.switch_table_insert(
            self._state, table.id, limb_array(key), limb_array(keep), rank, ctypes.c_uint32(action), data
        )
        if handle == FULL:
            raise TableFull(f"table {table.name!r} is full ({table.size} entries)")
        if handle == NO_MEMORY:
            raise TableFull(f"table {table.name!r}: not enough memory for one more entry")
        if handle == DUPLICATE:
            raise DuplicateEntry(f"table {table.name!r} has an entry with this match already")
        return int(handle)

    def table_find(self, table: str, match: Sequence[Match], priority: int = 0) -> int | None:
        """The handle of the entry with exactly this match and, in ternary tables, this priority."""
        target = self._table(table)
        key, keep, rank = self._encode_match(target, match, priority)
        handle = self._lib.switch_table_find(self._state, target.id, limb_array(key), limb_array(keep), rank)
        return int(handle) if handle >= 0 else None

    def table_note(self, table: str, handle: int, metadata: int, *, noted: bool) -> None:
        """Sets an entry's metadata, a 64-bit number of the controller. ``noted``: the caller stores more about the
        entry, so ``write_plain`` leaves changes of this entry to the caller."""
        target = self._table(table)
        if self._lib.switch_table_notes(self._state, target.id, handle, ctypes.c_uint64(metadata), int(noted)):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def write_plain(self, tables: Any, request: bytes, place: Any) -> int:
        """Performs updates of a WriteRequest, from a place on. Argument types and result: p4runtime/plain.py."""
        return int(self._lib.switch_write(self._state, tables, request, ctypes.c_size_t(len(request)), place))

    def read_plain(self, tables: Any, table_id: int, first: int, most: int) -> tuple[bytes, int]:
        """Entries from handle ``first`` on as entities of a ReadResponse, and the handle after them."""
        buffer = np.empty(READ_BYTES, np.uint8)
        next_one, count = ctypes.c_uint32(first), ctypes.c_uint32()
        used = self._lib.switch_read(
            self._state, tables, table_id, ctypes.byref(next_one), most, ctypes.c_void_p(buffer.ctypes.data),
            ctypes.c_size_t(READ_BYTES), ctypes.byref(count),
        )  # fmt: skip
        return buffer[:used].tobytes(), next_one.value

    def table_rows(self, table: str) -> Iterator[Row]:
        """Yields all entries by their handles."""
        target, first = self._table(table), 0
        while rows := self._rows(target, first, ROWS):
            yield from rows
            first = rows[-1].handle + 1

    def table_next(self, table: str, handle: int) -> Row | None:
        """The entry with this handle, or the next existing one."""
        rows = self._rows(self._table(table), handle, 1)
        return rows[0] if rows else None

    def _rows(self, table: Table, first: int, most: int) -> list[Row]:
        rows = np.empty(most, ROW)
        limbs = np.empty((most, 2 * table.key_limbs + table.data_limbs), np.uint64)
        count = self._lib.switch_table_rows(
            self._state, table.id, first, most, *(ctypes.c_void_p(array.ctypes.data) for array in (rows, limbs))
        )
        return [
            Row._make((*row, words)) for row, words in zip(rows[:count].tolist(), limbs[:count].tolist(), strict=True)
        ]

    def table_modify(self, table: str, handle: int, action: str, params: Sequence[int] = ()) -> None:
        """Sets an entry's action and parameters. A packet uses either the old entry or the new one."""
        target = self._table(table)
        chosen = self._action(target, action)
        data = self._encode_data(target, chosen, params)
        if self._lib.switch_table_change(self._state, target.id, handle, chosen.id, data):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def table_delete(self, table: str, handle: int) -> None:
        if self._lib.switch_table_remove(self._state, self._table(table).id, handle):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def table_set_default(self, table: str, action: str, params: Sequence[int] = ()) -> None:
        target = self._table(table)
        if target.const_default:
            raise ControlError(f"table {table!r} has a constant default action")
        self._set_default(target, self._action(target, action), params)

    def table_reset_default(self, table: str) -> None:
        """Restores the program's own default action."""
        target = self._table(table)
        if target.default_action is None:
            nothing = limb_array([0] * target.data_limbs)
            self._lib.switch_table_default(self._state, target.id, ctypes.c_uint32(0xFFFFFFFF), nothing)
        else:
            self._set_default(target, *target.default_action)

    def _set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        self._lib.switch_table_default(self._state, table.id, action.id, self._encode_data(table, action, params))

    def direct_counter_read(self, table: str, handle: int | None) -> CounterValue:
        """A table entry's own counter; ``None`` is the default entry."""
        count = (ctypes.c_uint64 * 2)()
        self._direct_count(table, handle, 0, count)
        return CounterValue(count[0], count[1])

    def direct_counter_write(self, table: str, handle: int | None, value: CounterValue) -> None:
        self._direct_count(table, handle, 1, (ctypes.c_uint64 * 2)(value.packets, value.bytes))

    def _direct_count(self, table: str, handle: int | None, write: int, count: ctypes.Array[ctypes.c_uint64]) -> None:
        target = self._table(table)
        if not target.with_counters:
            raise ControlError(f"table {table!r} has no direct counter")
        if self._lib.switch_direct_count(self._state, target.id, -1 if handle is None else handle, write, count):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def table_touched(self, table: str) -> set[int]:
        """The handles of entries that packets have hit since the last call. The table has to have idle timeouts."""
        target = self._table(table)
        if not target.idle_timeouts:
            raise ControlError(f"table {table!r} has no idle timeouts")
        touched = np.empty(max(target.size, 1), np.uint8)
        used = self._lib.switch_table_touched(self._state, target.id, ctypes.c_void_p(touched.ctypes.data))
        return set(np.flatnonzero(touched[:used]).tolist())

    def _table(self, name: str) -> Table:
        return named(self.program.tables, name, "table")

    @staticmethod
    def _action(table: Table, name: str) -> Action:
        if name not in table.actions:
            raise NoSuchName(f"table {table.name!r} has no action {name!r}; its actions: {choices(table.actions)}")
        return table.actions[name]

    @classmethod
    def _encode_data(cls, table: Table, action: Action, params: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
        data = cls.parameter_limbs(action, params)
        return limb_array(data + [0] * (table.data_limbs - len(data)))

    @staticmethod
    def parameter_limbs(action: Action, params: Sequence[int]) -> list[int]:
        """An action's parameters in the generated code's form. Raises ControlError for values that do not fit."""
        expected = [f"{parameter.name} ({parameter.width} bits)" for parameter in action.parameters]
        if len(params) != len(action.parameters):
            raise ControlError(
                f"action {action.name!r} takes {len(expected)} parameters ({', '.join(expected)}), not {len(params)}"
            )
        data: list[int] = []
        for parameter, value in zip(action.parameters, params, strict=True):
            if value < 0 or value > mask(parameter.width):
                raise ControlError(
                    f"action {action.name!r}: {value} does not fit {parameter.name}, {parameter.width} bits"
                )
            data += limbs(value, parameter.width)
        return data

    @staticmethod
    def _encode_match(table: Table, match: Sequence[Match], priority: int) -> tuple[list[int], list[int], int]:
        """The key's limbs, those of its mask, and its rank among the entries that match a packet."""
        if len(match) != len(table.keys):
            names = ", ".join(f"{key.name} ({key.match_type})" for key in table.keys)
            raise ControlError(f"table {table.name!r} matches on {names or 'nothing'}, not on {len(match)} fields")
        values: list[int] = []
        masks: list[int] = []
        prefix = 0
        for key, field in zip(table.keys, match, strict=True):
            value, keep, length = encode_field(table, key, field)
            values += limbs(value, key.width)
            masks += limbs(keep, key.width)
            prefix += length
        return values, masks, {"exact": 0, "lpm": prefix, "ternary": priority}[table.kind]

    def _install_initial(self, table: Table) -> tuple[InitialEntry, ...]:
        if table.default_action is not None:
            self._set_default(table, *table.default_action)
        # In BMv2's JSON the smaller priority wins, in the engine the larger. The numbers are p4c's for P4Runtime.
        order = sorted(range(len(table.entries)), key=lambda place: table.entries[place].priority)
        priorities = {place: len(order) - rank for rank, place in enumerate(order)}
        installed = []
        for place, entry in enumerate(table.entries):
            match = tuple(match_from_json(key, item) for key, item in zip(table.keys, entry.match, strict=True))
            priority = priorities[place] if table.kind == "ternary" else 0
            handle = self.table_add(table.name, match, entry.action.name, entry.params, priority)
            installed.append(InitialEntry(handle, match, entry.action.name, entry.params, priority))
        return tuple(installed)
