"""A packet's trace as text: a line for each step, nested steps indented."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone

from serene.embedded.trace.steps import Step, Value

MOST_CHARACTERS = 400  # of a line: names and values come from the program, and may have any length
COMPILERS_TABLES = "tbl_"  # tables that p4c creates for single statements; only their action is shown


def text(packet: Step) -> str:
    return "\n".join(lines(packet))


def lines(packet: Step, show: Callable[[Step], bool] = lambda step: True) -> Iterator[str]:
    """The lines of a packet's trace, beginning with the packet itself."""
    values = packet.values
    time = datetime.fromtimestamp(int(str(values["time_ns"])) / 1e9, timezone.utc).strftime("%H:%M:%S.%f")
    yield f"packet on port {values['port']}, {values['length']} bytes, {time}"
    for step in packet.steps:
        yield from _indented(step, "  ", show)
    if values.get("cut"):
        yield "  ... (the trace is truncated)"


def _indented(step: Step, indent: str, show: Callable[[Step], bool]) -> Iterator[str]:
    line, within = _line(step) if show(step) else None, indent + "  "
    if line is None:
        within = indent
    else:
        yield _printable(indent + line)
    emitted = [inner.name for inner in step.steps if inner.kind == "emit"]
    for inner in step.steps:
        if inner.kind != "emit":
            yield from _indented(inner, within, show)
        elif inner.name == emitted[0] and show(inner):
            yield _printable(f"{within}headers {', '.join(emitted)}")
            emitted = [""]


def _printable(line: str) -> str:
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 3] + "..."


# Functions that format a step's line from its name and values, by kind.
LINES: Mapping[str, Callable[[str, dict[str, Value]], str]] = {
    "action": lambda name, values: f"action {name}({_pairs(values, '')})",
    "condition": lambda name, values: f"if ({values.get('source', name)}): {'yes' if values['is'] else 'no'}",
    "register read": lambda name, values: f"register read {_cell(name, values)} = {_short(values['value'])}",
    "register write": lambda name, values: f"register write {_cell(name, values)} = {_short(values['value'])}",
    "counter": lambda name, values: f"counter {_cell(name, values)} counts",
    "meter": lambda name, values: f"meter {_cell(name, values)} is {values['colour']}",
    "header": lambda name, values: f"header {name} {_pairs(values)}",
    "select": lambda _, values: f"select {_listed(values['key'])}",
    "request": lambda name, values: f"requests {name}" + (f" {values['number']}" if values else ""),
    "digest": lambda name, values: f"digest {name}: {_listed(values['values'])}",
    "output": lambda _, values: f"leaves by port {values['port']}, {values['length']} bytes",
    "drop": lambda name, _: f"dropped: {name}",
    "copies": lambda name, values: f"{name} {values['number']}: {values['replicas']} replicas",
    "ingress": lambda _, values: "ingress" if values["type"] == "normal" else f"ingress, {values['type']}",
    "egress": lambda _, v: f"egress to port {v['port']}, {v['type']}, instance {v['instance']}",
    "bytes": lambda name, values: f"bytes {name}: {values['hex']}",
    "log": lambda name, _: f"log: {name}",
    "checksum": lambda name, values: f"checksum {name} {values['result']}: {_short(values['value'])}",
}


def _line(step: Step) -> str | None:
    """A step's line; None if only the steps within it are shown."""
    kind, name, values = step.kind, step.name, step.values
    if kind == "table":
        return _table_line(name, values)
    if kind in LINES:
        return LINES[kind](name, values)
    return f"{kind} {name}{' ' + _pairs(values) if values else ''}".rstrip()


def _table_line(name: str, values: dict[str, Value]) -> str | None:
    if name.startswith(COMPILERS_TABLES) and "key" not in values:
        return None
    key = f" {_pairs(values['key'])}" if "key" in values else ""
    if not values["hit"]:
        return f"table {name}{key}: {'miss' if key else 'default action'}"
    priority = f", priority {values['priority']}" if "priority" in values else ""
    match = values["match"] if isinstance(values["match"], dict) else {}
    differs: dict[str, Value] = {field: value for field, value in match.items() if isinstance(value, str)}  # not exact
    return f"table {name}{key}: hit entry {values['entry']}{' ' + _pairs(differs) if differs else ''}{priority}"


def _cell(name: str, values: dict[str, Value]) -> str:
    return f"{name}[{_short(values['index'])}]"


def _listed(value: Value) -> str:
    return ", ".join(_short(one) for one in value) if isinstance(value, list) else ""


def _pairs(values: Value, brackets: str = "{}") -> str:
    items = values.items() if isinstance(values, dict) else ()
    inner = ", ".join(f"{name}={_short(value)}" for name, value in items)
    return f"{{{inner}}}" if brackets else inner


def _short(value: Value) -> str:
    """A number in decimal up to 16 bits, in hexadecimal above."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0xFFFF:
        return f"{value:#x}"
    return str(value)
