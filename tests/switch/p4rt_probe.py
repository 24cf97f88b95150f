"""The probe of programs/p4rt_probe.p4: a packet that carries table keys and comes back with what the tables found."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from tests.switch.p4rt_controller import Controller, Stream

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

    WIDTHS: ClassVar = {
        "a": 8, "c": 12, "nothing": 4, "address": 32, "wide": 128, "digests": 8, "mark": 8, "colour": 8,
    }  # fmt: skip

    def frame(self, tail: bytes = b"") -> bytes:
        bits, total = 0, 0
        for field in fields(self):
            width = self.WIDTHS.get(field.name, 16)
            total = total << width | getattr(self, field.name)
            bits += width
        return ETHERNET + total.to_bytes(bits // 8, "big") + tail

    @classmethod
    def parse(cls, frame: bytes) -> Probe:
        names = [field.name for field in fields(cls)]
        size = sum(cls.WIDTHS.get(name, 16) for name in names) // 8
        total = int.from_bytes(frame[len(ETHERNET) : len(ETHERNET) + size], "big")
        values = {}
        for name in reversed(names):
            width = cls.WIDTHS.get(name, 16)
            values[name] = total & ((1 << width) - 1)
            total >>= width
        return cls(**values)


def send(controller: Controller, stream: Stream, probe: Probe) -> Probe:
    """Sends the probe, and returns it as it comes back from the switch."""
    controller.packet_out(stream, probe.frame())
    return Probe.parse(stream.receive("packet").payload)
