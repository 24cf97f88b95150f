"""RECONCILE_AND_COMMIT: what controllers and packets have made of one program, in the next one.

What the program itself says (its own entries, constant ones, default actions that nobody has changed) is the new one's.
All else is carried over, or the whole configuration is refused: nothing is lost silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from finsy.proto import p4r

from serene.switch.control import ControlError
from serene.switch.engine import Switch
from serene.switch.p4runtime.entities import Entities
from serene.switch.p4runtime.status import Failure, invalid
from serene.switch.program import Array

INSERT, MODIFY = p4r.Update.INSERT, p4r.Update.MODIFY


def carry_over_entries(old: Entities, new: Entities) -> None:
    """All that controllers have written but counters and registers. Raises INVALID_ARGUMENT; the new one is half full
    then."""
    try:
        _carry(old, new, INSERT, p4r.Entity(action_profile_member=p4r.ActionProfileMember()))
        _carry(old, new, INSERT, p4r.Entity(action_profile_group=p4r.ActionProfileGroup()))
        new.tables.take_over(old.tables)
        _carry(old, new, MODIFY, p4r.Entity(meter_entry=p4r.MeterEntry()))
        _carry(old, new, MODIFY, p4r.Entity(value_set_entry=p4r.ValueSetEntry()))
        replication = p4r.PacketReplicationEngineEntry()
        _carry(old, new, INSERT, p4r.Entity(packet_replication_engine_entry=replication))
        _carry(old, new, INSERT, p4r.Entity(digest_entry=p4r.DigestEntry()))
    except Failure as failure:
        raise _lost(failure.message) from failure


def _carry(old: Entities, new: Entities, kind: p4r.Update.Type.ValueType, wanted: p4r.Entity) -> None:
    for entity in old.read(wanted):
        if _says_something(entity):
            new.schema.check_same(old.schema, entity)
            new.write(p4r.Update(type=kind, entity=entity))


def _says_something(entity: p4r.Entity) -> bool:
    """Meters and value sets are read also where nobody has written them."""
    kind = entity.WhichOneof("entity")
    if kind == "meter_entry":
        return bool(entity.meter_entry.HasField("config"))
    return kind != "value_set_entry" or bool(entity.value_set_entry.members)


def carry_over_arrays(old: Switch, new: Switch) -> None:
    """Counters and registers that are no table's, between two programs of which neither runs. Raises
    INVALID_ARGUMENT."""
    try:
        for register in _shared("register", old.program.registers.values(), new.program.registers, old):
            new.register_copy(register.name, old)
        for counter in _shared("counter", old.program.counters.values(), new.program.counters, old):
            for index, value in enumerate(old.counter_read_all(counter.name)):
                if value.packets or value.bytes:
                    new.counter_write(counter.name, index, value)
    except ControlError as error:
        raise _lost(str(error)) from error


def _shared(what: str, arrays: Iterable[Array], others: Mapping[str, Array], old: Switch) -> Iterable[Array]:
    """Those that both programs have. One with something in it has to be as it was."""
    for array in arrays:
        if array.direct_table is not None:
            continue
        other = others.get(array.name)
        if other is not None and (other.size, other.width) == (array.size, array.width):
            yield array
        elif _used(what, array, old):
            then = f"of {other.size} cells, {other.width} bits" if other else "gone"
            raise _lost(f"{what} {array.name!r} ({array.size} cells, {array.width} bits) is {then} in the new program")


def _used(what: str, array: Array, switch: Switch) -> bool:
    if what == "register":
        return any(switch.register_read_all(array.name))
    return any(value.packets or value.bytes for value in switch.counter_read_all(array.name))


def _lost(why: str) -> Failure:
    return invalid(f"the forwarding state cannot be preserved, and the old program runs on: {why}")
