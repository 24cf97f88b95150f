"""Writes and reads table entries, including their direct counters and meters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from serene.embedded import engine
from serene.embedded.control import types as control
from serene.embedded.control.entries import Row
from serene.embedded.p4runtime.direct import DirectResources
from serene.embedded.p4runtime.entry_view import EntryView
from serene.embedded.p4runtime.idle import IdleTimeouts
from serene.embedded.p4runtime.matches import (
    Match,
    action_of,
    canonical_action,
    check_priority,
    match_of,
    needs_priority,
)
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.plain import READ, PlainTables
from serene.embedded.p4runtime.profiles import Choice, Profiles
from serene.embedded.p4runtime.status import Code, Failure, denied, invalid, not_found

Key = tuple[int, Match, int]  # table id, match, priority
MAX_METADATA_BYTES = 1 << 15  # of an entry, so that its message is small enough for clients
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


@dataclass(slots=True)
class Installed:
    """A default entry, or a view of an entry in the engine."""

    entry: p4r.TableEntry  # in canonical form, without direct counter and meter
    handle: int | None  # None: the default entry
    choice: Choice | None = None  # for entries of indirect tables


class Tables:
    """All entries of all tables: the controllers' entries, the program's own, and the default entries.

    The engine stores the entries. This class stores only data for which the engine has no place: metadata, idle
    timeouts, and direct meters' configurations. The engine marks entries that have such data, and leaves their changes
    to this class."""

    def __init__(self, schema: Schema, switch: engine.Switch, idle: IdleTimeouts, profiles: Profiles) -> None:
        self._profiles = profiles
        self._idle = idle
        self._schema = schema
        self._switch = switch
        self.direct = DirectResources(schema, switch)
        self.plain = PlainTables(schema, switch)
        self._views = {id_: EntryView(schema, table, profiles) for id_, table in schema.tables.items()}
        self._with_idle = {id_ for id_, table in schema.tables.items() if schema.program_table(table).idle_timeouts}
        self._metadata: dict[tuple[int, int], bytes] = {}  # by table id and handle, for entries that have metadata
        # The program's own entries in their initial form.
        self._initial: dict[int, dict[Key, p4r.TableEntry]] = {id_: {} for id_ in schema.tables}
        self._defaults: dict[int, Installed] = {}
        self.looked_at = 0  # number of entries that all reads so far have examined
        for id_, table in schema.tables.items():
            self._defaults[id_] = Installed(self._program_default(table), None)
            for held in self._entries(table):
                match = match_of(table, held.entry.match)
                self._initial[id_][id_, match, held.entry.priority] = held.entry
                if self._has_idle(table):
                    assert held.handle is not None
                    self._idle.set(table.preamble.name, held.handle, held.entry, new=True)

    def _program_default(self, table: p4i.Table) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
        default = self._schema.program_table(table).default_action
        if default is not None:
            action, params = default
            entry.action.CopyFrom(canonical_action(self._schema, table, action.name, params) or p4r.TableAction())
        return entry

    def _has_idle(self, table: p4i.Table) -> bool:
        return table.preamble.id in self._with_idle

    def _entries(self, table: p4i.Table) -> Iterator[Installed]:
        return (self._installed(table, row) for row in self._switch.table_rows(table.preamble.name))

    def _installed(self, table: p4i.Table, row: Row) -> Installed:
        id_ = table.preamble.id
        entry, choice = self._views[id_].entry(row)
        if row.noted:
            entry.metadata = self._metadata.get((id_, row.handle), b"")
        if self._has_idle(table):
            entry.idle_timeout_ns = self._idle.timeout_ns(table.preamble.name, row.handle)
        return Installed(entry, row.handle, choice)

    def _note(self, table: p4i.Table, handle: int, entry: p4r.TableEntry) -> None:
        """After an entry was written, stores the data for which the engine has no place."""
        id_ = table.preamble.id
        self._metadata.pop((id_, handle), None)
        if entry.metadata:
            self._metadata[id_, handle] = entry.metadata
        noted = bool(entry.metadata) or self.direct.read_meter(table, handle) is not None
        self._switch.table_note(table.preamble.name, handle, entry.controller_metadata, noted=noted)

    def write_meter(self, table: p4i.Table, held: Installed, config: p4r.MeterConfig | None) -> None:
        """Configures an entry's direct meter. A default entry has none."""
        if held.handle is not None:
            self.direct.write_meter(table, held.handle, config)
            self._note(table, held.handle, held.entry)

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, kind: int, entry: p4r.TableEntry) -> None:
        """Performs one update. If it raises Failure, nothing has changed."""
        table = self._schema.table(entry.table_id)
        if entry.is_const:
            raise invalid(f"table {table.preamble.name!r}: only the program defines constant entries")
        if kind != DELETE:
            self._check_idle(table, entry)
            if len(entry.metadata) > MAX_METADATA_BYTES:
                raise invalid(f"metadata of {len(entry.metadata)} bytes; an entry has {MAX_METADATA_BYTES} at most")
        if entry.is_default_action:
            self._write_default(kind, table, entry)
        elif kind == INSERT:
            self._insert(table, entry)
        elif kind == MODIFY:
            self._modify(table, entry)
        else:
            self._delete(table, entry)

    def _insert(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        name = table.preamble.name
        if not table.match_fields:
            raise invalid(f"table {name!r} has no key, so no entries: modify its default action")
        _, match, priority = self._key(table, entry)
        if table.is_const_table:
            raise denied(f"table {name!r} has constant entries only")
        if self._switch.table_find(name, match, priority) is not None:
            raise Failure(Code.ALREADY_EXISTS, f"table {name!r} has an entry with this match already")
        if not entry.HasField("action"):
            raise invalid(f"table {name!r}: a new entry needs an action")
        self.direct.check(table, entry)
        choice = self._profiles.choice(table, entry.action)
        try:
            if choice:
                place, group = choice.place, choice.group
                handle = self._switch.table_add_chosen(name, match, place, group=group, priority=priority)
            else:
                action, params = action_of(self._schema, table, entry.action, default=False)
                handle = self._switch.table_add(name, match, action, params, priority)
        except control.ControlError as error:
            self._profiles.release(choice)
            if not isinstance(error, control.TableFull):
                raise
            raise Failure(Code.RESOURCE_EXHAUSTED, str(error)) from error
        if choice:
            self._profiles.name(choice)
        self.direct.write(table, handle, entry)
        self._note(table, handle, entry)
        if self._has_idle(table):
            self._idle.set(name, handle, entry, new=True)

    def _modify(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        name = table.preamble.name
        held = self._held(table, entry)
        assert held.handle is not None
        self.direct.check(table, entry)
        kept = held.entry
        if entry.HasField("action"):
            if table.is_const_table:
                raise denied(f"table {name!r} has constant entries: only their counters and meters can be modified")
            choice = self._profiles.choice(table, entry.action)
            if choice:
                try:
                    self._switch.table_modify_chosen(name, held.handle, choice.place, group=choice.group)
                except control.ControlError:
                    self._profiles.release(choice)
                    raise
                self._profiles.name(choice)
            else:
                action, params = action_of(self._schema, table, entry.action, default=False)
                self._switch.table_modify(name, held.handle, action, params)
            self._profiles.unname(held.choice)
            kept = entry
            if self._has_idle(table):
                self._idle.set(name, held.handle, entry, new=False)
        self.direct.write(table, held.handle, entry)  # in P4Runtime, a MODIFY without an action can only change these
        self._note(table, held.handle, kept)

    def _delete(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        held = self._held(table, entry)
        if table.is_const_table:
            raise denied(f"table {table.preamble.name!r} has constant entries only")
        assert held.handle is not None
        self._switch.table_delete(table.preamble.name, held.handle)
        self._profiles.unname(held.choice)
        self.direct.forget(table, held.handle)
        self._idle.forget(table.preamble.name, held.handle)
        self._metadata.pop((entry.table_id, held.handle), None)

    def _write_default(self, kind: int, table: p4i.Table, entry: p4r.TableEntry) -> None:
        name = table.preamble.name
        if kind != MODIFY:
            raise invalid(f"table {name!r}: a default entry can only be modified")
        if entry.match or entry.priority:
            raise invalid(f"table {name!r}: a default entry has no match and no priority")
        if table.const_default_action_id:
            raise denied(f"table {name!r} has a constant default action")
        self.direct.check(table, entry)
        held = self._defaults[entry.table_id]
        if entry.HasField("action"):
            action, params = action_of(self._schema, table, entry.action, default=True)
            self._switch.table_set_default(name, action, params)
            held.entry.action.CopyFrom(canonical_action(self._schema, table, action, params))
            held.entry.controller_metadata, held.entry.metadata = entry.controller_metadata, entry.metadata
        else:
            self._switch.table_reset_default(name)
            held.entry.CopyFrom(self._program_default(table))
        self.direct.write(table, None, entry)

    # -- from another program --------------------------------------------------------------------------------

    def take_over(self, old: Tables) -> None:
        """Copies controllers' writes from another program's tables, except counters. Raises Failure."""
        for id_, table in old._schema.tables.items():
            default = old._defaults[id_].entry
            changes = list(old._changes(table))
            if default != old._program_default(table):
                changes.append((MODIFY, default))
            if changes:
                self._schema.check_same_table(old._schema, id_)
            for kind, entry in changes:
                there = not entry.is_default_action and self._find(self._schema.table(id_), entry) is not None
                if kind == DELETE and not there:
                    continue
                self.write(MODIFY if kind == INSERT and there else kind, entry)

    def _changes(self, table: p4i.Table) -> Iterator[tuple[p4r.Update.Type.ValueType, p4r.TableEntry]]:
        """Yields the updates (DELETE or INSERT, and the entry) that turn the program's initial entries into these."""
        id_ = table.preamble.id
        for entry in self._initial[id_].values():
            if self._find(table, entry) is None:
                yield DELETE, entry
        for held in self._entries(table):
            config = self.direct.read_meter(table, held.handle)
            initial = self._initial[id_].get(self._key(table, held.entry)) if self._initial[id_] else None
            if held.entry != initial or config is not None:
                entry = p4r.TableEntry()
                entry.CopyFrom(held.entry)
                if config is not None:
                    entry.meter_config.CopyFrom(config)
                if entry.is_const:  # controllers can write only the meter of a constant entry
                    entry.ClearField("is_const")
                    entry.ClearField("action")
                yield INSERT, entry

    def shared_counters(self, old: Tables) -> list[int]:
        """The tables with direct counters in both programs. Raises Failure if other direct counters are not 0."""
        shared = []
        for id_, table in old._schema.tables.items():
            if id_ not in old._schema.direct_counters:
                continue
            try:
                self._schema.check_same_key(old._schema, id_)
                self.direct.check_counter(self._schema.table(id_))
            except Failure:
                if old._has_counted(table):
                    raise
            else:
                shared.append(id_)
        return shared

    def _has_counted(self, table: p4i.Table) -> bool:
        default = self.direct.read_counter(table, None)
        return bool(default.packet_count or default.byte_count) or any(
            row.packets or row.bytes for row in self._switch.table_rows(table.preamble.name)
        )

    def take_over_counters(self, old: Tables) -> None:
        """Copies the direct counters of entries that both programs have, when packets no longer change them."""
        for id_ in self.shared_counters(old):
            table = old._schema.tables[id_]
            own = self._schema.table(id_)
            for held in old._entries(table):
                handle = self._find(own, held.entry)
                if handle is not None:
                    self.direct.write_counter(own, handle, old.direct.read_counter(table, held.handle))
            self.direct.write_counter(own, None, old.direct.read_counter(table, None))

    def _check_idle(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        name = table.preamble.name
        if entry.HasField("time_since_last_hit"):
            raise invalid("has_time_since_last_hit must not be set in WriteRequest")  # PI's message, as below
        if not entry.idle_timeout_ns:
            return
        if entry.idle_timeout_ns < 0:
            raise invalid(f"table {name!r}: an idle timeout of {entry.idle_timeout_ns} ns; expected 0 (never) or more")
        if entry.is_default_action:
            raise invalid(f"table {name!r}: a default entry has no idle timeout")
        if table.idle_timeout_behavior == p4i.Table.NO_TIMEOUT or not self._has_idle(table):
            # PI's message, which test suites expect
            raise invalid("idle_timeout_ns must be set to 0 for tables which do not support idle timeout")

    def _key(self, table: p4i.Table, entry: p4r.TableEntry) -> Key:
        match = match_of(table, entry.match)
        check_priority(table, entry.priority)
        return (entry.table_id, match, entry.priority)

    def _find(self, table: p4i.Table, entry: p4r.TableEntry) -> int | None:
        """The handle of the entry with this match and priority."""
        _, match, priority = self._key(table, entry)
        return self._switch.table_find(table.preamble.name, match, priority)

    def _held(self, table: p4i.Table, entry: p4r.TableEntry) -> Installed:
        name, handle = table.preamble.name, self._find(table, entry)
        row = None if handle is None else self._switch.table_next(name, handle)
        if row is None:
            priority = f" and priority {entry.priority}" if entry.priority else ""
            raise not_found(f"table {name!r} has no entry with this match{priority}")
        return self._installed(table, row)

    # -- reading ---------------------------------------------------------------------------------------------

    def read(self, wanted: p4r.TableEntry) -> Iterator[p4r.Entity]:
        """Yields the entries that match a read request. A field with its default value matches all."""
        if wanted != p4r.TableEntry(table_id=wanted.table_id):
            yield from (p4r.Entity(table_entry=entry) for entry in self._read_some(wanted))
            return
        for table in [self._schema.table(wanted.table_id)] if wanted.table_id else self._schema.tables.values():
            for entity in self._read_all(table):
                self.looked_at += 1
                yield entity

    def _read_all(self, table: p4i.Table) -> Iterator[p4r.Entity]:
        first = 0
        while table.preamble.id in self.plain:
            entities, first = self.plain.read(table.preamble.id, first)
            yield from entities
            if len(entities) < READ:
                row = self._switch.table_next(table.preamble.name, first)
                if row is None:
                    return
                yield p4r.Entity(table_entry=self._installed(table, row).entry)
                first = row.handle + 1
        for held in self._entries(table):
            yield p4r.Entity(table_entry=held.entry)

    def _read_some(self, wanted: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        looked: set[str] = set()
        for table, held in self._selected(wanted):
            entry = held.entry
            if held.handle is None:  # the other entries are views
                entry = p4r.TableEntry()
                entry.CopyFrom(held.entry)
            self.direct.read_into(entry, table, held.handle, wanted)
            if wanted.HasField("time_since_last_hit") and held.handle is not None and self._has_idle(table):
                if table.preamble.name not in looked:
                    self._idle.look(table.preamble.name)
                    self.looked_at += self._schema.program_table(table).size // 64  # C compares many times faster
                    looked.add(table.preamble.name)
                elapsed = self._idle.since_last_hit_ns(table.preamble.name, held.handle)
                entry.time_since_last_hit.elapsed_ns = elapsed
            yield entry

    def _selected(self, wanted: p4r.TableEntry) -> Iterator[tuple[p4i.Table, Installed]]:
        if not wanted.table_id:  # other filters do not apply then
            for id_, table in self._schema.tables.items():
                for held in [self._defaults[id_]] if wanted.is_default_action else self._entries(table):
                    self.looked_at += 1
                    yield table, held
            return
        table = self._schema.table(wanted.table_id)
        if wanted.HasField("time_since_last_hit") and not self._has_idle(table):
            raise invalid(f"table {table.preamble.name!r} has no idle timeouts")
        if wanted.is_default_action:
            if wanted.match or wanted.priority:
                raise invalid(f"table {table.preamble.name!r}: a default entry has no match and no priority")
            yield table, self._defaults[wanted.table_id]
            return
        match = match_of(table, wanted.match) if wanted.match else None
        if wanted.priority and not needs_priority(table):
            check_priority(table, wanted.priority)
        for row in self._candidates(table, match, wanted.priority):
            self.looked_at += 1
            if self._views[wanted.table_id].fits(row, match, wanted):
                held = self._installed(table, row)
                if wanted.metadata in (b"", held.entry.metadata):
                    yield table, held

    def _candidates(self, table: p4i.Table, match: Match | None, priority: int) -> Iterable[Row]:
        """The entry that the request identifies, or all entries of the table if it does not identify one."""
        name = table.preamble.name
        if match is None or (needs_priority(table) and not priority):
            return self._switch.table_rows(name)
        handle = self._switch.table_find(name, match, priority)
        row = None if handle is None else self._switch.table_next(name, handle)
        return [] if row is None else [row]

    def identified(self, wanted: p4r.TableEntry) -> tuple[p4i.Table, Installed]:
        """The entry whose direct counter or meter a write names."""
        table = self._schema.table(wanted.table_id)
        return table, self._defaults[wanted.table_id] if wanted.is_default_action else self._held(table, wanted)

    def chosen(self, wanted: p4r.TableEntry) -> list[tuple[p4i.Table, Installed]]:
        """The entries whose direct counter or meter a read names. Raises NOT_FOUND if it names a missing one."""
        found = list(self._selected(wanted))
        if wanted.table_id and wanted.match and not found:
            name = self._schema.table(wanted.table_id).preamble.name
            raise not_found(f"table {name!r} has no entry with this match")
        return found
