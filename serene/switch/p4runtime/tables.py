"""Table entries in P4Runtime's terms, with the engine's handles. Direct counters and meters belong to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from serene.switch import control, engine
from serene.switch.p4runtime.direct import DirectResources
from serene.switch.p4runtime.idle import IdleTimeouts
from serene.switch.p4runtime.matches import (
    Match,
    action_of,
    canonical_action,
    canonical_match,
    check_priority,
    match_of,
    needs_priority,
    normal,
)
from serene.switch.p4runtime.pipeline import Schema
from serene.switch.p4runtime.profiles import Choice, Profiles
from serene.switch.p4runtime.status import Code, Failure, denied, invalid, not_found

Key = tuple[int, Match, int]  # table id, match, priority
MAX_METADATA_BYTES = 1 << 15  # bytes of an entry, so that it fits a message that clients accept
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


@dataclass
class Installed:
    entry: p4r.TableEntry  # in canonical form, without direct counter and meter
    handle: int | None  # None: the default entry
    choice: Choice | None = None  # for entries of indirect tables


class Tables:
    """All entries of all tables: the controllers', the program's own, and the default ones."""

    def __init__(self, schema: Schema, switch: engine.Switch, idle: IdleTimeouts, profiles: Profiles) -> None:
        self._profiles = profiles
        self._idle = idle
        self._schema = schema
        self._switch = switch
        self.direct = DirectResources(schema, switch)
        self._entries: dict[int, dict[Key, Installed]] = {id_: {} for id_ in schema.tables}
        # The program's own entries, as it defines them.
        self._initial: dict[int, dict[Key, p4r.TableEntry]] = {id_: {} for id_ in schema.tables}
        self._defaults: dict[int, Installed] = {}
        self.looked_at = 0  # entries examined by all reads so far, whatever they found
        for id_, table in schema.tables.items():
            self._defaults[id_] = Installed(self._program_default(table), None)
            for initial in switch.initial_entries[table.preamble.name]:
                self._remember_initial(table, initial)

    def _program_default(self, table: p4i.Table) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
        default = self._schema.program_table(table).default_action
        if default is not None:
            action, params = default
            entry.action.CopyFrom(canonical_action(self._schema, table, action.name, params) or p4r.TableAction())
        return entry

    def _remember_initial(self, table: p4i.Table, initial: control.InitialEntry) -> None:
        match = normal(table, initial.match)
        entry = p4r.TableEntry(table_id=table.preamble.id, priority=initial.priority, is_const=table.is_const_table)
        entry.match.extend(canonical_match(table, match))
        action = canonical_action(self._schema, table, initial.action, initial.params)
        entry.action.CopyFrom(action or p4r.TableAction())
        key = (table.preamble.id, match, initial.priority)
        self._entries[table.preamble.id][key] = Installed(entry, initial.handle)
        self._initial[table.preamble.id][key] = p4r.TableEntry()
        self._initial[table.preamble.id][key].CopyFrom(entry)
        if self._has_idle(table):
            self._idle.set(table.preamble.name, initial.handle, entry, new=True)

    def _has_idle(self, table: p4i.Table) -> bool:
        return self._schema.program_table(table).idle_timeouts

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, kind: int, entry: p4r.TableEntry) -> None:
        """One update; raises Failure and changes nothing where it cannot be done."""
        table = self._schema.table(entry.table_id)
        if entry.is_const:
            raise invalid(f"table {table.preamble.name!r}: only the program makes constant entries")
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
        key = self._key(table, entry)
        if table.is_const_table:
            raise denied(f"table {name!r} has constant entries only")
        if key in self._entries[entry.table_id]:
            raise Failure(Code.ALREADY_EXISTS, f"table {name!r} has an entry with this match already")
        if not entry.HasField("action"):
            raise invalid(f"table {name!r}: a new entry needs an action")
        self.direct.check(table, entry)
        choice = self._profiles.choice(table, entry.action)
        chosen = None if choice else action_of(self._schema, table, entry.action, default=False)
        try:
            if choice:
                place, group = choice.place, choice.group
                handle = self._switch.table_add_chosen(name, key[1], place, group=group, priority=entry.priority)
            else:
                assert chosen is not None
                handle = self._switch.table_add(name, key[1], *chosen, entry.priority)
        except control.ControlError as error:
            self._profiles.release(choice)
            if not isinstance(error, control.TableFull):
                raise
            raise Failure(Code.RESOURCE_EXHAUSTED, str(error)) from error
        held = p4r.TableEntry(table_id=entry.table_id, priority=entry.priority)
        held.controller_metadata, held.metadata = entry.controller_metadata, entry.metadata
        held.match.extend(canonical_match(table, key[1]))
        held.action.CopyFrom(canonical_action(self._schema, table, *chosen) if chosen else entry.action)
        self._entries[entry.table_id][key] = Installed(held, handle, choice)
        if choice:
            self._profiles.name(choice)
        self.direct.write(table, handle, entry)
        if self._has_idle(table):
            held.idle_timeout_ns = entry.idle_timeout_ns
            self._idle.set(name, handle, held, new=True)

    def _modify(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        name = table.preamble.name
        held = self._held(table, entry)
        self.direct.check(table, entry)
        if entry.HasField("action"):
            if table.is_const_table:
                raise denied(f"table {name!r} has constant entries: only their counters and meters can be modified")
            assert held.handle is not None
            choice = self._profiles.choice(table, entry.action)
            if choice:
                try:
                    self._switch.table_modify_chosen(name, held.handle, choice.place, group=choice.group)
                except control.ControlError:
                    self._profiles.release(choice)
                    raise
                held.entry.action.CopyFrom(entry.action)
                self._profiles.name(choice)
            else:
                action, params = action_of(self._schema, table, entry.action, default=False)
                self._switch.table_modify(name, held.handle, action, params)
                held.entry.action.CopyFrom(canonical_action(self._schema, table, action, params))
            self._profiles.unname(held.choice)
            held.choice = choice
            held.entry.controller_metadata, held.entry.metadata = entry.controller_metadata, entry.metadata
            if self._has_idle(table):
                held.entry.idle_timeout_ns = entry.idle_timeout_ns
                self._idle.set(name, held.handle, held.entry, new=False)
        self.direct.write(table, held.handle, entry)  # in P4Runtime, a MODIFY without an action can change only these

    def _delete(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        held = self._held(table, entry)
        if table.is_const_table:
            raise denied(f"table {table.preamble.name!r} has constant entries only")
        assert held.handle is not None
        self._switch.table_delete(table.preamble.name, held.handle)
        self._profiles.unname(held.choice)
        self.direct.forget(table, held.handle)
        self._idle.forget(table.preamble.name, held.handle)
        del self._entries[entry.table_id][self._key(table, entry)]

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
        """Takes over what controllers wrote into that program's tables, except counters. Raises Failure."""
        for id_, table in old._schema.tables.items():
            default = old._defaults[id_].entry
            changes = list(old._changes(table))
            if default != old._program_default(table):
                changes.append((MODIFY, default))
            if changes:
                self._schema.check_same_table(old._schema, id_)
            for kind, entry in changes:
                there = not entry.is_default_action and self._key(self._schema.table(id_), entry) in self._entries[id_]
                if kind == DELETE and not there:
                    continue
                self.write(MODIFY if kind == INSERT and there else kind, entry)

    def _changes(self, table: p4i.Table) -> Iterator[tuple[p4r.Update.Type.ValueType, p4r.TableEntry]]:
        """Yields the updates (DELETE or INSERT, and the entry) that turn the program's initial entries into these."""
        id_ = table.preamble.id
        for key, entry in self._initial[id_].items():
            if key not in self._entries[id_]:
                yield DELETE, entry
        for key, held in self._entries[id_].items():
            config = self.direct.read_meter(table, held.handle)
            if held.entry != self._initial[id_].get(key) or config is not None:
                entry = p4r.TableEntry()
                entry.CopyFrom(held.entry)
                if config is not None:
                    entry.meter_config.CopyFrom(config)
                if entry.is_const:  # a constant entry, of which controllers can write only the meter
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
        handles = [None, *(held.handle for held in self._entries[table.preamble.id].values())]
        counts = (self.direct.read_counter(table, handle) for handle in handles)
        return any(count.packet_count or count.byte_count for count in counts)

    def take_over_counters(self, old: Tables) -> None:
        """Takes over the direct counters of entries that both programs have, once packets no longer change them."""
        for id_ in self.shared_counters(old):
            table = old._schema.tables[id_]
            here = {key: held.handle for key, held in self._entries[id_].items()}
            for key, held in old._entries[id_].items():
                if key in here:
                    self.direct.write_counter(
                        self._schema.table(id_), here[key], old.direct.read_counter(table, held.handle)
                    )
            self.direct.write_counter(self._schema.table(id_), None, old.direct.read_counter(table, None))

    def _check_idle(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        name = table.preamble.name
        if entry.HasField("time_since_last_hit"):
            raise invalid(f"table {name!r}: time_since_last_hit can only be read")
        if not entry.idle_timeout_ns:
            return
        if entry.idle_timeout_ns < 0:
            raise invalid(f"table {name!r}: an idle timeout of {entry.idle_timeout_ns} ns; expected 0 (never) or more")
        if entry.is_default_action:
            raise invalid(f"table {name!r}: a default entry has no idle timeout")
        if table.idle_timeout_behavior == p4i.Table.NO_TIMEOUT or not self._has_idle(table):
            # PI's words, on which suites depend
            raise invalid("idle_timeout_ns must be set to 0 for tables which do not support idle timeout")

    def _key(self, table: p4i.Table, entry: p4r.TableEntry) -> Key:
        match = match_of(table, entry.match)
        check_priority(table, entry.priority)
        return (entry.table_id, match, entry.priority)

    def _held(self, table: p4i.Table, entry: p4r.TableEntry) -> Installed:
        held = self._entries[entry.table_id].get(self._key(table, entry))
        if held is None:
            priority = f" and priority {entry.priority}" if entry.priority else ""
            raise not_found(f"table {table.preamble.name!r} has no entry with this match{priority}")
        return held

    # -- reading ---------------------------------------------------------------------------------------------

    def read(self, wanted: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        """Yields the entries that match a read request; a field left at its default matches all."""
        looked: set[str] = set()
        for table, held in self._selected(wanted):
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
                chosen = [self._defaults[id_]] if wanted.is_default_action else list(self._entries[id_].values())
                self.looked_at += len(chosen)
                yield from ((table, held) for held in chosen)
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
        for (_, held_match, priority), held in self._candidates(table, match, wanted.priority):
            self.looked_at += 1
            if match in (None, held_match) and wanted.priority in (0, priority) and _fits(held.entry, wanted):
                yield table, held

    def _candidates(self, table: p4i.Table, match: Match | None, priority: int) -> Iterable[tuple[Key, Installed]]:
        """The one entry that the request identifies, or all of the table's if it leaves something open."""
        entries = self._entries[table.preamble.id]
        if match is None or (needs_priority(table) and not priority):
            return entries.items()
        key = (table.preamble.id, match, priority)
        return [(key, entries[key])] if key in entries else []

    def identified(self, wanted: p4r.TableEntry) -> tuple[p4i.Table, Installed]:
        """The entry whose direct counter or meter a write names."""
        table = self._schema.table(wanted.table_id)
        return table, self._defaults[wanted.table_id] if wanted.is_default_action else self._held(table, wanted)

    def chosen(self, wanted: p4r.TableEntry) -> list[tuple[p4i.Table, Installed]]:
        """Yields the entries whose direct counter or meter a read asks for; NOT_FOUND if it names a missing one."""
        found = list(self._selected(wanted))
        if wanted.table_id and wanted.match and not found:
            name = self._schema.table(wanted.table_id).preamble.name
            raise not_found(f"table {name!r} has no entry with this match")
        return found


def _fits(entry: p4r.TableEntry, wanted: p4r.TableEntry) -> bool:
    return (
        wanted.action.action.action_id in (0, entry.action.action.action_id)
        and wanted.controller_metadata in (0, entry.controller_metadata)
        and wanted.metadata in (b"", entry.metadata)
    )
