"""A packet's trace as text: a line for each step, nested steps indented."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone

from serene.switch.trace import Step, Value

MOST_CHARACTERS = 400  # longest line: names and values come from the program, and may be of any length
COMPILERS_TABLES = "tbl_"  # tables that p4c makes of single statements; their action tells everything


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


def _line(step: Step) -> str | None:
    """A step's line; None if only the steps within it are shown."""
    kind, name, values = step.kind, step.name, step.values
    if kind == "table":
        if name.startswith(COMPILERS_TABLES) and "key" not in values:
            return None
        key = f" {_pairs(values['key'])}" if "key" in values else ""
        if not values["hit"]:
            return f"table {name}{key}: {'miss' if key else 'default action'}"
        priority = f", priority {values['priority']}" if "priority" in values else ""
        match = values["match"] if isinstance(values["match"], dict) else {}
        differs: dict[str, Value] = {
            field: value for field, value in match.items() if isinstance(value, str)
        }  # not exact
        return f"table {name}{key}: hit entry {values['entry']}{' ' + _pairs(differs) if differs else ''}{priority}"
    if kind == "action":
        return f"action {name}({_pairs(values, '')})"
    if kind == "condition":
        return f"if ({values.get('source', name)}): {'yes' if values['is'] else 'no'}"
    if kind in ("register read", "register write"):
        return f"{kind} {name}[{_short(values['index'])}] = {_short(values['value'])}"
    if kind == "counter":
        return f"counter {name}[{_short(values['index'])}] counts"
    if kind == "meter":
        return f"meter {name}[{_short(values['index'])}] is {values['colour']}"
    if kind == "header":
        return f"header {name} {_pairs(values)}"
    if kind == "select":
        return f"select {', '.join(_short(one) for one in _list(values['key']))}"
    if kind == "request":
        return f"requests {name}" + (f" {values['number']}" if values else "")
    if kind == "digest":
        return f"digest {name}: {', '.join(_short(one) for one in _list(values['values']))}"
    if kind == "output":
        return f"leaves by port {values['port']}, {values['length']} bytes"
    if kind == "drop":
        return f"dropped: {name}"
    if kind == "copies":
        return f"{name} {values['number']}: {values['replicas']} replicas"
    if kind == "ingress":
        return "ingress" if values["type"] == "normal" else f"ingress, {values['type']}"
    if kind == "egress":
        return f"egress to port {values['port']}, {values['type']}, instance {values['instance']}"
    if kind == "bytes":
        return f"bytes {name}: {values['hex']}"
    if kind == "log":
        return f"log: {name}"
    if kind == "checksum":
        return f"checksum {name} {values['result']}: {_short(values['value'])}"
    return f"{kind} {name}{' ' + _pairs(values) if values else ''}".rstrip()


def _list(value: Value) -> list[int]:
    return value if isinstance(value, list) else []


def _pairs(values: Value, brackets: str = "{}") -> str:
    items = values.items() if isinstance(values, dict) else ()
    inner = ", ".join(f"{name}={_short(value)}" for name, value in items)
    return f"{{{inner}}}" if brackets else inner


def _short(value: Value) -> str:
    """A number in decimal up to 16 bits, in hexadecimal above."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0xFFFF:
        return f"{value:#x}"
    return str(value)
