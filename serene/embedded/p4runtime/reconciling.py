"""RECONCILE_AND_COMMIT: copies the state that controllers and packets have written from one program to the next.

Parts that the P4 program itself defines (initial and constant entries, unchanged default actions) come from the new
program. Controllers' writes, counters and registers are copied; if that is impossible, the whole configuration is
refused. Transient state is reset: docs/engine.md lists it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from finsy.proto import p4r

from serene.embedded.control.types import ControlError
from serene.embedded.engine import Switch
from serene.embedded.p4runtime.entities import Entities
from serene.embedded.p4runtime.status import Failure, invalid
from serene.embedded.p4runtime.tables import Tables
from serene.embedded.program.ir import Array

INSERT, MODIFY = p4r.Update.INSERT, p4r.Update.MODIFY


def carry_over_entries(old: Entities, new: Entities) -> None:
    """Copies all controllers' writes except counters and registers. If it raises INVALID_ARGUMENT, the new program has
    a part of them."""
    with _errors_as_refusals():
        new.take_over_strings(old)
        _carry(old, new, INSERT, old.read(p4r.Entity(action_profile_member=p4r.ActionProfileMember())))
        _carry(old, new, INSERT, old.read(p4r.Entity(action_profile_group=p4r.ActionProfileGroup())))
        new.tables.take_over(old.tables)
        meters = (p4r.Entity(meter_entry=entry) for entry in old.meters.configured())
        _carry(old, new, MODIFY, meters)
        value_sets = old.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry()))
        _carry(old, new, MODIFY, (entity for entity in value_sets if entity.value_set_entry.members))
        replication = p4r.PacketReplicationEngineEntry()
        _carry(old, new, INSERT, old.read(p4r.Entity(packet_replication_engine_entry=replication)))
        _carry(old, new, INSERT, old.read(p4r.Entity(digest_entry=p4r.DigestEntry())))


def _carry(old: Entities, new: Entities, kind: p4r.Update.Type.ValueType, entities: Iterable[p4r.Entity]) -> None:
    for entity in entities:
        new.schema.check_same(old.schema, entity)
        new.write(p4r.Update(type=kind, entity=entity))


def check_counts(old: Switch, new: Switch, tables: tuple[Tables, Tables] | None) -> None:
    """Raises INVALID_ARGUMENT if counters or registers that the new program lacks are not 0."""
    with _errors_as_refusals():
        _shared_registers(old, new)
        _shared_counters(old, new)
        if tables is not None:
            tables[1].shared_counters(tables[0])


def carry_over_counts(old: Switch, new: Switch, tables: tuple[Tables, Tables] | None) -> None:
    """Copies counters and registers, including direct ones, while neither program runs. tables: the old program's and
    the new program's. Raises the same errors as ``check_counts``, because packets may have arrived since that check."""
    with _errors_as_refusals():
        for register in _shared_registers(old, new):
            new.register_copy(register, old)
        for counter in _shared_counters(old, new):
            new.counter_copy(counter, old)
        if tables is not None:
            tables[1].take_over_counters(tables[0])


def _shared_registers(old: Switch, new: Switch) -> list[str]:
    return list(_shared("register", old.program.registers, new.program.registers, old.register_used))


def _shared_counters(old: Switch, new: Switch) -> list[str]:
    return list(_shared("counter", old.program.counters, new.program.counters, old.counter_used))


def _shared(
    what: str, arrays: Mapping[str, Array], others: Mapping[str, Array], used: Callable[[str], bool]
) -> Iterator[str]:
    """The arrays that both programs have. If an array is not empty, it must have the same shape in both."""
    for array in arrays.values():
        if array.direct_table is not None:
            continue
        other = others.get(array.name)
        if other is not None and (other.size, other.width) == (array.size, array.width):
            yield array.name
        elif used(array.name):
            then = f"of {other.size} cells, {other.width} bits" if other else "gone"
            was = f"{array.name!r} ({array.size} cells, {array.width} bits)"
            raise invalid(f"{what} {was} is {then} in the new program")


@contextlib.contextmanager
def _errors_as_refusals() -> Iterator[None]:
    try:
        yield
    except (Failure, ControlError) as error:
        raise invalid(f"the forwarding state cannot be preserved; the old program stays: {error}") from error
