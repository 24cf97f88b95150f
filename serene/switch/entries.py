"""Table entries: adding, modifying, deleting and counting them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from serene.errors import choices
from serene.switch.control import (
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
from serene.switch.expressions import mask
from serene.switch.loaded import Loaded, limb_array, limbs, named
from serene.switch.program import Action, Table


class TableControl(Loaded):
    def table_add(
        self, table: str, match: Sequence[Match], action: str, params: Sequence[int] = (), priority: int = 0
    ) -> int:
        """Adds an entry and returns its handle. In ternary tables the larger priority wins, as in P4Runtime."""
        target = self._table(table)
        key, keep, prefix = self._encode_match(target, match)
        chosen = self._action(target, action)
        handle = self._lib.switch_table_insert(
            self._state, target.id, limb_array(key), limb_array(keep), prefix, priority, chosen.id,
            self._encode_data(target, chosen, params),
        )  # fmt: skip
        if handle == -1:
            raise TableFull(f"table {table!r} is full ({target.size} entries)")
        if handle == -2:
            raise DuplicateEntry(f"table {table!r} has an entry with this match already")
        return int(handle)

    def table_modify(self, table: str, handle: int, action: str, params: Sequence[int] = ()) -> None:
        """Gives an entry another action or other parameters; a packet sees either the old entry or the new one."""
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
        """Back to the program's own default action."""
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
        """The handles of entries that packets hit since the last call; of a table with idle timeouts."""
        target = self._table(table)
        if not target.idle_timeouts:
            raise ControlError(f"table {table!r} has no idle timeouts")
        touched = (ctypes.c_uint8 * max(target.size, 1))()
        self._lib.switch_table_touched(self._state, target.id, touched)
        return {handle for handle, hit in enumerate(bytes(touched)) if hit}

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
        """An action's parameters as the generated code reads them. Raises ControlError for values that do not fit."""
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
    def _encode_match(table: Table, match: Sequence[Match]) -> tuple[list[int], list[int], int]:
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
        return values, masks, prefix

    def _install_initial(self, table: Table) -> tuple[InitialEntry, ...]:
        if table.default_action is not None:
            self._set_default(table, *table.default_action)
        # In BMv2's JSON the smaller number wins, in the engine the larger. Numbered as p4c does for P4Runtime.
        order = sorted(range(len(table.entries)), key=lambda place: table.entries[place].priority)
        priorities = {place: len(order) - rank for rank, place in enumerate(order)}
        installed = []
        for place, entry in enumerate(table.entries):
            match = tuple(match_from_json(key, item) for key, item in zip(table.keys, entry.match, strict=True))
            priority = priorities[place] if table.kind == "ternary" else 0
            handle = self.table_add(table.name, match, entry.action.name, entry.params, priority)
            installed.append(InitialEntry(handle, match, entry.action.name, entry.params, priority))
        return tuple(installed)
