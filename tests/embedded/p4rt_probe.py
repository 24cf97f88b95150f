"""The probe of programs/p4rt_probe.p4: a packet that carries table keys and comes back with what the tables found."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from finsy.proto import p4r

from tests.embedded.p4rt_controller import Controller, load_p4info, number
from tests.embedded.packets import pack, unpack

PROGRAMS = Path(__file__).with_name("programs")
JSON = PROGRAMS / "p4rt_probe.json"
P4INFO = PROGRAMS / "p4rt_probe.p4info.txtpb"

CPU_PORT = 255
SOURCE = 0x0200_0000_0001
ETHERNET = (0x0200_0000_00FF).to_bytes(6, "big") + SOURCE.to_bytes(6, "big") + b"\x88\xb5"


@dataclass(frozen=True)
class Probe:
    """The probe's header. The fields have the names of the P4 header's, and are in the order of the wire."""

    a: int = 0
    b: int = 0
    c: int = 0
    nothing: int = 0
    address: int = 0
    wide: int = 0
    port: int = 0
    group: int = 0
    session: int = 0
    digests: int = 0
    mark: int = 0
    by_exact: int = 0
    by_lpm: int = 0
    by_ternary: int = 0
    by_range: int = 0
    by_optional: int = 0
    by_constant: int = 0
    by_initial: int = 0
    by_preset: int = 0
    by_keyless: int = 0
    by_scoped: int = 0
    by_idle: int = 0
    by_metered: int = 0
    by_wide: int = 0
    colour: int = 0

    def frame(self, tail: bytes = b"") -> bytes:
        return ETHERNET + pack((getattr(self, name), width) for name, width in WIDTHS.items()) + tail

    @classmethod
    def parse(cls, frame: bytes) -> Probe:
        return cls(*unpack(frame[len(ETHERNET) :], WIDTHS.values()))


ODD_WIDTHS = {"a": 8, "c": 12, "nothing": 4, "address": 32, "wide": 128, "digests": 8, "mark": 8, "colour": 8}
WIDTHS = {field.name: ODD_WIDTHS.get(field.name, 16) for field in fields(Probe)}  # in bits, in the order of the wire


class Probing(Controller):
    """A controller of the probe's program."""

    def __init__(self, address: str, device_id: int) -> None:
        super().__init__(address, device_id, load_p4info(P4INFO), JSON.read_bytes())

    def primary(self) -> Probing:
        """Becomes the primary controller, and pushes the program."""
        self.become_primary()
        self.push()
        return self

    def packet_out(self, probe: Probe | bytes, *, port: int = CPU_PORT, mark: int = 0) -> None:
        """By default the packet comes back."""
        payload = probe.frame() if isinstance(probe, Probe) else probe
        self.messages.send(packet=p4r.PacketOut(payload=payload, metadata=packet_metadata(port=port, pad=0, mark=mark)))

    def received(self) -> Probe:
        """The probe that comes back next."""
        return Probe.parse(self.messages.receive("packet").payload)

    def send(self, probe: Probe) -> Probe:
        """Sends the probe, and returns it as it comes back from the switch."""
        self.packet_out(probe)
        return self.received()

    def found(self, table: str, *probes: Probe) -> list[int]:
        """Returns what the probes found in a table."""
        return [getattr(self.send(probe), table) for probe in probes]

    def scoped(self, a: int, value: int | None = None) -> p4r.TableEntry:
        """An entry of the table by_scoped, or its key."""
        return (
            self.key("by_scoped", {"a": a})
            if value is None
            else self.entry("by_scoped", {"a": a}, "found_scoped", value)
        )

    def exact(self, a: int, b: int, value: int = 3, **fields: Any) -> p4r.TableEntry:
        return self.entry("by_exact", {"a": a, "b": b}, "found_exact", value, **fields)

    def ternary(self, value: int, mask: int, found: int = 1, priority: int = 1, **fields: Any) -> p4r.TableEntry:
        """An entry for field b; of any b with mask 0."""
        match = {"b": (value, mask)} if mask else {}
        return self.entry("by_ternary", match, "found_ternary", found, priority=priority, **fields)

    def lpm(self, address: int, length: int, found: int = 1) -> p4r.TableEntry:
        return self.entry("by_lpm", {"address": (address, length)} if length else {}, "found_lpm", found)

    # -- state ---------------------------------------------------------------------------------------------------

    def counter(self, name: str, index: int | None = None, **data: int) -> p4r.CounterEntry:
        return p4r.CounterEntry(
            counter_id=self.id("counters", name), index=_index(index), data=p4r.CounterData(**data) if data else None
        )

    def direct_counter(self, entry: p4r.TableEntry, **data: int) -> p4r.DirectCounterEntry:
        key = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
        key.is_default_action = entry.is_default_action
        return p4r.DirectCounterEntry(table_entry=key, data=p4r.CounterData(**data) if data else None)

    def counts(self, entry: p4r.CounterEntry | p4r.DirectCounterEntry) -> tuple[int, int]:
        data = self.read_one(entry).data
        return data.packet_count, data.byte_count

    def meter(self, index: int | None = None, config: p4r.MeterConfig | None = None) -> p4r.MeterEntry:
        return p4r.MeterEntry(meter_id=self.id("meters", "rate"), index=_index(index), config=config)

    def register(self, index: int | None = None, value: bytes | None = None) -> p4r.RegisterEntry:
        entry = p4r.RegisterEntry(register_id=self.id("registers", "last_source"), index=_index(index))
        if value is not None:
            entry.data.bitstring = value
        return entry

    def digest(self, **config: int) -> p4r.DigestEntry:
        given = p4r.DigestEntry.Config(**config) if config else None
        return p4r.DigestEntry(digest_id=self.id("digests", "learned_t"), config=given)


def _index(index: int | None) -> p4r.Index | None:
    return None if index is None else p4r.Index(index=index)


def packet_metadata(**values: int | bytes) -> list[p4r.PacketMetadata]:
    """A packet-out's metadata by field: port, pad, mark."""
    ids = {"port": 1, "pad": 2, "mark": 3, "unknown": 9}
    return [
        p4r.PacketMetadata(metadata_id=ids[name], value=value if isinstance(value, bytes) else number(value))
        for name, value in values.items()
    ]


TABLES = ("by_exact", "by_lpm", "by_ternary", "by_range", "by_optional")


def enlarged(size: int, *tables: str) -> bytes:
    """The probe's program, with tables of this size."""
    program = json.loads(JSON.read_text())
    for pipeline in program["pipelines"]:
        for table in pipeline["tables"]:
            if table["name"].split(".")[-1] in tables:
                table["max_size"] = size
    return json.dumps(program).encode()
