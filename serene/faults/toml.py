"""Reads fault files: from TOML to `Faults`. Errors name the place, what is wrong, and the valid choices."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from serene.errors import choices
from serene.faults.plan import Action, BadFaults, Direction, Event, Faults, PacketFaults

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def load(path: str | Path) -> Faults:
    """Reads a fault file. Raises BadFaults, whose message begins with the file's name."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFaults(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not a text'}") from None
    try:
        return replace(parse(text), path=path)
    except BadFaults as error:
        raise BadFaults(f"{path}: {error}") from None


def parse(text: str) -> Faults:
    """The faults that a file's text describes. Raises BadFaults."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and text nested too deeply
        raise BadFaults(f"not TOML: {error}") from None
    fields = _checked(document, {"seed": _whole_number, "packets": _list, "events": _list}, "the file")
    return Faults(
        seed=fields.get("seed", 0),
        packets=tuple(
            _from_table(PacketFaults, table, PACKETS, f"[[packets]] number {number}")
            for number, table in enumerate(fields.get("packets", ()), 1)
        ),
        events=tuple(
            _from_table(Event, table, EVENTS, f"[[events]] number {number}", needs=("iteration", "action"))
            for number, table in enumerate(fields.get("events", ()), 1)
        ),
        text=text,
    )


Reader = Callable[[object], Any]
WHOLE = 2**63  # TOML's whole numbers are smaller; Python's parser accepts any


class _WrongValue(Exception):
    """A wrong value. The message names the expected one."""


def _whole_number(value: object) -> int:
    if type(value) is not int or not 0 <= value < WHOLE:
        raise _WrongValue("a whole number, 0 or more, below 2^63")
    return value


def _number(value: object) -> float:
    if type(value) is int and abs(value) < WHOLE:
        return float(value)
    if type(value) is not float or math.isnan(value):
        raise _WrongValue("a number")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise _WrongValue("tables under [[packets]] or [[events]]")
    return value


def _numbers(what: str) -> Reader:
    def read(value: object) -> tuple[int, ...]:
        if not isinstance(value, list) or not value:
            raise _WrongValue(f"a list of {what}, as [0, 2]")
        return tuple(_whole_number(item) for item in value)

    return read


def _kinds(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise _WrongValue('a list of kinds of packets, as ["PUSH", "ANSWER"]')
    return tuple(value)


def _direction(value: object) -> Direction:
    if value not in list(Direction):
        raise _WrongValue(choices(f'"{direction.value}"' for direction in Direction))
    return Direction(value)


def _action(value: object) -> Action:
    if value not in list(Action):
        raise _WrongValue(choices(f'"{action.value}"' for action in Action))
    return Action(value)


PACKETS: dict[str, Reader] = {
    "workers": _numbers("worker ids"),
    "racks": _numbers("racks"),
    "direction": _direction,
    "kinds": _kinds,
    **dict.fromkeys(("loss", "duplication", "reordering"), _number),
    **dict.fromkeys(("late_s", "delay_s", "jitter_s", "start_s", "end_s"), _number),
}
EVENTS: dict[str, Reader] = {
    "iteration": _whole_number,
    "action": _action,
    "worker": _whole_number,
    "rack": _whole_number,
    "seconds": _number,
}


def _from_table(
    kind: Callable[..., Any],
    table: Mapping[str, object],
    readers: dict[str, Reader],
    where: str,
    needs: tuple[str, ...] = (),
) -> Any:
    fields = _checked(table, readers, where)
    missing = [name for name in needs if name not in fields]
    if missing:
        raise BadFaults(f"{where} needs {' and '.join(missing)}")
    try:
        return kind(**fields)
    except BadFaults as error:
        raise BadFaults(f"{where}: {error}") from None


def _checked(table: Mapping[str, object], readers: Mapping[str, Reader], where: str) -> dict[str, Any]:
    unknown = [name for name in table if name not in readers]
    if unknown:
        raise BadFaults(f"{where} has no {choices(unknown)}; expected {choices(readers)}")
    fields = {}
    for name, value in table.items():
        try:
            fields[name] = readers[name](value)
        except _WrongValue as wrong:
            raise BadFaults(f"{where}: {name} = {_as_text(value)}: expected {wrong}") from None
    return fields


def _as_text(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python does not format numbers of thousands of digits, but reads them in hexadecimal
        return "..."
