"""A TNA program as a data plane for tests, with tables and groups as the controller writes them, and frames in and
out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from serene.entries import Entry, Group
from serene.wire import ENCAPSULATION_BYTES, HEADER, Op
from tests.dataplane.conftest import DataPlane
from tests.frames import with_ip_checksum
from tests.programs import P4SRC, TOFINO_VARIABLE, V1MODEL
from tests.tofino.machine import Machine
from tests.tofino.p4text import Module, parse

PORT_METADATA = {"tofino": 8, "tofino2": 24}  # bytes: PORT_METADATA_SIZE of tna.p4 and t2na.p4


def machine(build: Build, seed: int = 0) -> Machine:
    ports = build.ports["CPU_PORT"], build.ports["LOOP_PORT"]
    return Machine(build.module, *ports, seed, port_metadata=PORT_METADATA[build.chip])


class TofinoDataPlane(DataPlane):
    port_at = 0

    def __init__(self, build: Build, seed: int = 0) -> None:
        super().__init__(V1MODEL)  # the reasons why packets are dropped are the same
        self._build, self._seed = build, seed
        self.clear()

    def clear(self) -> None:
        self.machine = machine(self._build, self._seed)
        self.cpu_port = self.machine.cpu_port
        self.lanes = len(self._build.module.types["values_t"][1])
        self._punted.clear()
        self.begin()

    def insert(self, entry: Entry) -> None:
        self.machine.insert(*entry.key, entry.action, list(entry.params.values()))

    modify = put = insert

    def close(self) -> None: ...

    def delete(self, entry: Entry) -> None:
        self.machine.delete(*entry.key)

    def group(self, group: Group) -> None:
        self.machine.groups[group.number] = list(group.replicas)

    def counter(self, name: str, index: int = 0) -> int:
        return self.machine.counters[name, index]

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return self.machine.process(port, frame)

    def learned(self) -> list[tuple[int, int]]:
        digests, self.machine.digests = self.machine.digests, []
        return [(source, port) for source, port in digests]


class WideTofinoDataPlane(TofinoDataPlane):
    """The Tofino program with the 320 lanes of v1model's, for tests written for those: the lanes that Tofino's packets
    lack are cut off before the switch, and are zero in what comes back. A packet that the switch only used to open its
    slot is sent again, as a worker would."""

    WIDE = 320

    def send(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        narrow = self._resized(frame, self.WIDE, self.lanes)
        outputs = super().send(port, narrow)
        again = [
            (out, data) for out, data in outputs if self._op(data) == Op.NUDGE and self._who(data) == self._who(frame)
        ]
        if again:
            outputs = sorted([item for item in outputs if item not in again] + super().send(port, narrow))
        return [(out, self._resized(data, self.lanes, self.WIDE)) for out, data in outputs]

    @staticmethod
    def _op(frame: bytes) -> int:
        return frame[ENCAPSULATION_BYTES + 1] if len(frame) > ENCAPSULATION_BYTES + 1 else 0

    @staticmethod
    def _who(frame: bytes) -> bytes:
        """The bytes of a frame that hold its job and worker."""
        return frame[ENCAPSULATION_BYTES + 2 : ENCAPSULATION_BYTES + 4]

    def _resized(self, frame: bytes, lanes: int, wanted: int) -> bytes:
        """The frame with ``wanted`` lanes instead of ``lanes``. Anything but a valid frame of ``lanes`` lanes is
        returned unchanged."""
        head = ENCAPSULATION_BYTES + HEADER.itemsize
        if len(frame) != head + 4 * lanes or self._op(frame) not in (Op.PUSH, Op.PULL, Op.ANSWER):
            return frame
        lengths = [int.from_bytes(frame[at : at + 2], "big") for at in (16, 38)]
        if lengths != [len(frame) - 14, len(frame) - 34] or with_ip_checksum(frame) != frame:
            return frame
        resized = bytearray(frame[: head + 4 * min(lanes, wanted)] + bytes(4 * max(wanted - lanes, 0)))
        resized[16:18], resized[38:40] = ((len(resized) - at).to_bytes(2, "big") for at in (14, 34))
        return with_ip_checksum(bytes(resized))


CONSTANT = r"const bit<9> (\w+) = (\d+);"


@dataclass(frozen=True)
class Build:
    """The output for a chip. program: as p4c's frontend printed it, which has folded the constants. ports: the chip's
    own, by their names in the sources."""

    chip: str
    program: Path
    ports: dict[str, int]

    @property
    def directory(self) -> Path:
        return P4SRC / "build" / self.chip

    @cached_property
    def module(self) -> Module:
        return parse(self.program.read_text())


def _builds() -> list[Build]:
    chips = ("tofino2", "tofino")  # in the order in which tna/sizes.p4 has their ports
    sizes = (P4SRC / "tna" / "sizes.p4").read_text()
    ports = [dict(re.findall(CONSTANT, part)) for part in sizes[sizes.index("const bit<9>") :].split("#else\n")]
    return [
        Build(chip, P4SRC / "build" / chip / "serene.p4", {name: int(port) for name, port in own.items()})
        for chip, own in zip(chips, ports, strict=True)
    ]


def chosen() -> list[Build]:
    """Those to be tested: both, or, for `make mutants`, that of Tofino 1 with the program that it names."""
    tofino_2, tofino_1 = _builds()
    named = os.environ.get(TOFINO_VARIABLE)
    return [tofino_1, tofino_2] if named is None else [Build(tofino_1.chip, Path(named), tofino_1.ports)]
