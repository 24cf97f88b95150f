"""Direct counters and meters, which belong to table entries."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from serene.embedded import engine
from serene.embedded.control import types as control
from serene.embedded.p4runtime.meters import rates
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import invalid, unimplemented


class DirectResources:
    """Counters and meters in TableEntry, DirectCounterEntry and DirectMeterEntry. Handle None is the default entry."""

    def __init__(self, schema: Schema, switch: engine.Switch) -> None:
        self._schema = schema
        self._switch = switch
        self._meters: dict[tuple[int, int], p4r.MeterConfig] = {}  # table id, handle

    def check(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        """Raises INVALID_ARGUMENT for a counter or meter that the table lacks, or for values out of range."""
        if entry.HasField("meter_counter_data"):
            raise unimplemented("meters do not count by colour on this switch: leave meter_counter_data out")
        if entry.HasField("counter_data"):
            self.check_counter(table, entry.counter_data)
        if entry.HasField("meter_config"):
            self.check_meter(table)
            if entry.is_default_action:
                raise unimplemented(f"table {table.preamble.name!r}: a default entry has no meter on this switch")
            rates(entry.meter_config)

    def check_counter(self, table: p4i.Table, data: p4r.CounterData | None = None) -> None:
        if table.preamble.id not in self._schema.direct_counters:
            raise invalid(f"table {table.preamble.name!r} has no direct counter")
        if data is not None:
            counter_value(data)

    def check_meter(self, table: p4i.Table) -> None:
        if table.preamble.id not in self._schema.direct_meters:
            raise invalid(f"table {table.preamble.name!r} has no direct meter")

    def write(self, table: p4i.Table, handle: int | None, entry: p4r.TableEntry) -> None:
        """Writes a checked entry's values. A missing counter is unchanged; a missing meter lets everything pass."""
        if entry.HasField("counter_data"):
            self.write_counter(table, handle, entry.counter_data)
        if table.preamble.id in self._schema.direct_meters and handle is not None:
            self.write_meter(table, handle, entry.meter_config if entry.HasField("meter_config") else None)

    def read_into(self, entry: p4r.TableEntry, table: p4i.Table, handle: int | None, wanted: p4r.TableEntry) -> None:
        """Adds counter and meter to an entry if the request's fields ask for them."""
        if wanted.HasField("meter_counter_data"):
            raise unimplemented("meters do not count by colour on this switch: leave meter_counter_data out")
        if wanted.HasField("counter_data") and table.preamble.id in self._schema.direct_counters:
            entry.counter_data.CopyFrom(self.read_counter(table, handle))
        if wanted.HasField("meter_config"):
            config = self.read_meter(table, handle)
            if config is not None:
                entry.meter_config.CopyFrom(config)

    def forget(self, table: p4i.Table, handle: int) -> None:
        """Resets the meter of a deleted entry, whose handle another entry will get."""
        if (table.preamble.id, handle) in self._meters:
            self.write_meter(table, handle, None)

    def read_counter(self, table: p4i.Table, handle: int | None) -> p4r.CounterData:
        value = self._switch.direct_counter_read(table.preamble.name, handle)
        return p4r.CounterData(packet_count=value.packets, byte_count=value.bytes)

    def write_counter(self, table: p4i.Table, handle: int | None, data: p4r.CounterData) -> None:
        self._switch.direct_counter_write(table.preamble.name, handle, counter_value(data))

    def read_meter(self, table: p4i.Table, handle: int | None) -> p4r.MeterConfig | None:
        return self._meters.get((table.preamble.id, handle)) if handle is not None else None

    def write_meter(self, table: p4i.Table, handle: int, config: p4r.MeterConfig | None) -> None:
        meter = self._schema.direct_meters[table.preamble.id]
        self._switch.meter_set(meter.preamble.name, handle, rates(config) if config is not None else None)
        self._meters.pop((table.preamble.id, handle), None)
        if config is not None:
            self._meters[table.preamble.id, handle] = p4r.MeterConfig()
            self._meters[table.preamble.id, handle].CopyFrom(config)


def counter_value(data: p4r.CounterData) -> control.CounterValue:
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(f"a counter of {data.packet_count} packets and {data.byte_count} bytes; expected 0 or more")
    return control.CounterValue(data.packet_count, data.byte_count)
