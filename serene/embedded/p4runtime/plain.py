"""Table entries that the engine decodes and encodes itself, many in one call (runtime/writes.h and reads.h)."""

from __future__ import annotations

import ctypes

import numpy as np
from finsy.proto import p4i, p4r

from serene.embedded import engine
from serene.embedded.p4runtime.matches import needs_priority
from serene.embedded.p4runtime.pipeline import MATCH_KINDS, Schema
from serene.embedded.program.ir import Table, limbs_of

READ = 1024  # entries that are read at a time
MOST_LIMBS = 1024  # of an entry, as in runtime/writes.h
KINDS = {"exact": 2, "ternary": 3, "lpm": 4, "range": 6, "optional": 7}  # as in runtime/writes.h


class _Tables(ctypes.Structure):
    """``struct plain_tables``."""

    _fields_ = (
        ("count", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name in ("tables", "fields", "actions", "params")),
    )


class _Place(ctypes.Structure):
    """``struct write_place``."""

    _fields_ = (("byte", ctypes.c_size_t), ("update", ctypes.c_uint32))


class PlainTables:
    """The tables of a P4Info whose entries the engine can write and read without Python."""

    def __init__(self, schema: Schema, switch: engine.Switch) -> None:
        self._switch = switch
        self._ids: set[int] = set()
        tables: list[list[int]] = []
        fields: list[list[int]] = []
        actions: list[list[int]] = []
        params: list[list[int]] = []
        for table in schema.tables.values():
            program = schema.program_table(table)
            if not _is_plain(schema, table, program):
                continue
            self._ids.add(table.preamble.id)
            own_fields = _fields(table, program)
            own_actions, own_params = _actions(schema, table, program, len(params))
            tables.append(
                [table.preamble.id, program.id, int(needs_priority(table)), len(own_fields), len(fields),
                 len(own_actions), len(actions)]
            )  # fmt: skip
            fields += own_fields
            actions += own_actions
            params += own_params
        self._arrays = [np.array(rows or [[0]], np.uint32) for rows in (tables, fields, actions, params)]
        self._tables = _Tables(len(tables), *(array.ctypes.data for array in self._arrays))

    def __contains__(self, table_id: int) -> bool:
        return table_id in self._ids

    def begin(self, request: bytes) -> PlainWrite:
        return PlainWrite(self._switch, self._tables, request)

    def read(self, table_id: int, first: int) -> tuple[list[p4r.Entity], int]:
        """At most READ entries from handle ``first`` on, and the handle to continue from. It stops at an entry that
        Python has to read, and at the table's end."""
        data, next_one = self._switch.read_plain(ctypes.byref(self._tables), table_id, first, READ)
        return list(p4r.ReadResponse.FromString(data).entities), next_one


class PlainWrite:
    """One encoded WriteRequest."""

    def __init__(self, switch: engine.Switch, tables: _Tables, request: bytes) -> None:
        self._switch, self._tables, self._request = switch, tables, request
        self._place = _Place(0, 0)

    def next_other(self, updates: int) -> int:
        """Performs the updates up to the next one that Python has to perform, and returns its number. If there is none,
        returns ``updates``, the number of all updates."""
        stopped = self._switch.write_plain(ctypes.byref(self._tables), self._request, ctypes.byref(self._place))
        if stopped == -2:  # the engine cannot read further: Python performs all others
            stopped = self._place.update
            self._place.update += 1
        return stopped if 0 <= stopped < updates else updates


def _is_plain(schema: Schema, table: p4i.Table, program: Table) -> bool:
    """Whether the table's entries need no Python, and each number in a message is the same in the engine."""
    widths = [(field.bitwidth, key.width) for field, key in zip(table.match_fields, program.keys, strict=True)]
    actions = {schema.action_name(reference.id) for reference in table.action_refs}
    return (
        bool(widths)
        and not schema.translation.has_strings(table)
        and len(actions) == len(table.action_refs)
        and program.profile is None
        and not program.idle_timeouts
        and not table.is_const_table
        and all(given == held > 0 for given, held in widths)
        and 2 * program.key_limbs + program.data_limbs <= MOST_LIMBS
    )


def _fields(table: p4i.Table, program: Table) -> list[list[int]]:
    rows, at = [], 0
    for field, key in zip(table.match_fields, program.keys, strict=True):
        rows.append([field.id, KINDS[MATCH_KINDS[field.match_type]], key.width, at])
        at += limbs_of(key.width)
    return rows


def _actions(schema: Schema, table: p4i.Table, program: Table, first: int) -> tuple[list[list[int]], list[list[int]]]:
    """The actions that the table's entries may have, and their parameters, which are numbered from ``first`` on."""
    actions: list[list[int]] = []
    params: list[list[int]] = []
    for reference in table.action_refs:
        info, held = schema.actions[reference.id], program.actions[schema.action_name(reference.id)]
        pairs = list(zip(info.params, held.parameters, strict=True))
        distinct = len({param.id for param in info.params}) == len(pairs)
        if (
            reference.scope == p4i.ActionRef.DEFAULT_ONLY
            or not distinct
            or not all(given.bitwidth == parameter.width > 0 for given, parameter in pairs)
        ):
            continue
        actions.append([reference.id, held.id, len(pairs), first + len(params)])
        at = 0
        for param, parameter in pairs:
            params.append([param.id, parameter.width, at])
            at += limbs_of(parameter.width)
    return actions, params
