"""A target of STF scripts that traces every packet and checks the traces: against the packets that left, against a twin
that traces nothing, and against tables, registers and counters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from serene.embedded import Program
from serene.embedded.program.ir import Table
from serene.embedded.trace.steps import Step
from serene.embedded.trace.text import text
from tests.embedded.stf_embedded import EmbeddedTarget


class Witness(EmbeddedTarget):
    """twin: the same program, which traces nothing."""

    def __init__(self, json: bytes, twin: EmbeddedTarget, compiler_flags: tuple[str, ...] = ()) -> None:
        super().__init__(json, compiler_flags)
        self._twin = twin
        self.seen: Counter[str] = Counter()
        self._written: dict[tuple[str, int], object] = {}
        self._counted: Counter[tuple[str, int]] = Counter()

    def send(self, port: int, data: bytes) -> None:
        outputs, trace = self.switch.process(port, data, trace=True)
        assert outputs == self._twin.switch.process(port, data)
        self._check(port, data, outputs, trace)

    def _check(self, port: int, data: bytes, outputs: Sequence[tuple[int, bytes]], trace: Step) -> None:
        assert (trace.values["port"], trace.values["length"]) == (port, len(data))
        assert trace.outputs == [(out, len(packet)) for out, packet in outputs], text(trace)
        assert trace.json()["kind"] == "packet" and len(text(trace).splitlines()) > 1
        self.seen.update(step.kind for step in trace.all(*KINDS))
        for step in trace.all("egress", "ingress"):
            assert len([each for each in step.steps if each.kind in ENDS]) == 1 or _asked_again(step), text(trace)
        for step in trace.all("table"):
            if step.values["hit"]:
                _check_match(self.program.tables[step.name], step)
        for step in trace.all("register read", "register write"):
            self._check_register(step)
        for step in trace.all("counter"):
            self._counted[step.name, int(str(step.values["index"]))] += 1

    def _check_register(self, step: Step) -> None:
        index, value = int(str(step.values["index"])), step.values["value"]
        if index >= self.program.registers[step.name].size:
            assert value == "outside"
        elif step.kind == "register write":
            self._written[step.name, index] = value
        else:
            assert value == self._written.get((step.name, index), _nothing(self.program, step.name)), step

    def check_state(self) -> None:
        """Checks that registers and counters equal the values last traced."""
        for (name, index), value in self._written.items():
            width = self.program.registers[name].width
            held = self.switch.register_read(name, index)
            if width > 128:
                assert value == f"0x{held >> (width - 128):032x}... ({width} bits)"
            else:
                assert value == held
        for (name, index), count in self._counted.items():
            if index < self.program.counters[name].size:
                assert self.switch.counter_read(name, index).packets == count, (name, index)


ENDS = ("output", "drop", "egress", "copies")
KINDS = (
    "ingress", "egress", "parser", "action", "copies", "state", "select", "header", "parser error", "checksum", "table",
    "action profile", "condition", "register read", "register write", "counter", "meter", "request", "emit", "output",
    "drop",
)  # fmt: skip


def _asked_again(step: Step) -> bool:
    """Whether a pass makes clones or begins anew: it need not have exactly one end then."""
    return any(each.kind in ("copies", "ingress") for each in step.steps)


def _nothing(program: Program, register: str) -> object:
    width = program.registers[register].width
    return 0 if width <= 128 else f"0x{0:032x}... ({width} bits)"


def _check_match(table: Table, step: Step) -> None:
    """Checks that the entry hit by a traced lookup matches the traced key."""
    key, match = step.values.get("key", {}), step.values["match"]
    assert isinstance(key, Mapping) and isinstance(match, Mapping)
    for one in table.keys:
        if [each.name for each in table.keys].count(one.name) > 1:
            continue
        value, wanted = int(str(key[one.name])), match[one.name]
        numbers = [int(number, 0) for number in re.findall(r"0x[0-9a-f]+|\d+", str(wanted))]
        if one.match_type == "lpm":
            prefix, length = numbers
            assert value >> (one.width - length) == prefix >> (one.width - length)
        elif one.match_type == "range":
            assert numbers[0] <= value <= numbers[1]
        elif one.match_type in ("ternary", "optional"):
            assert wanted == "anything" or value & numbers[1] == numbers[0]
        else:
            assert value == wanted
