"""STF, the packet tests of p4c's samples: the language, and a runner over any switch.

A script adds entries, sends packets and says what has to come out. As with p4c's own driver for BMv2, the expected
packets have to come out in order at each port, and ports that the script never names are not checked.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from serene.embedded import Exact, Lpm, Match, Optional, Range, Ternary
from serene.embedded.program.ir import Action, Key, Table, mask

if TYPE_CHECKING:
    from tests.embedded.bmv2 import Bmv2Target
    from tests.embedded.stf_embedded import EmbeddedTarget

DIGIT_BITS = {"0x": 4, "0b": 1, "0o": 3}
COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
FRAME_CHECK_BYTES = 4  # a frame's checksum, which the scripts count and no software switch sees


class StfError(Exception):
    """A script that is not STF, or that names what the program lacks."""


class StfMismatch(AssertionError):
    """The switch did something other than what the script expects."""


@dataclass(frozen=True)
class Call:
    """An action with its arguments, as text."""

    name: str
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Add:
    table: str
    priority: int | None  # the larger wins
    keys: tuple[tuple[str, str], ...]
    action: Call
    label: str | None


@dataclass(frozen=True)
class SetDefault:
    table: str
    action: Call


@dataclass(frozen=True)
class Send:
    port: int
    data: bytes


@dataclass(frozen=True)
class Expect:
    port: int
    pattern: str | None  # hex digits, * for any digit, a $ at the end if nothing may follow; None: any packets


@dataclass(frozen=True)
class CheckCounter:
    counter: str
    index: str  # a number, or $ and an entry's label
    unit: str  # packets or bytes
    comparison: str
    value: int


@dataclass(frozen=True)
class Direct:
    """A command of simple_switch's command line: multicast, mirroring, registers, meters."""

    name: str
    arguments: tuple[str, ...]


Statement = Add | SetDefault | Send | Expect | CheckCounter | Direct

_NAME = r"[\w$.\[\]]+"
_ADD = re.compile(rf"({_NAME})\s+(?:(\d+)\s+)?((?:{_NAME}\s*:\s*\S+\s+)*)({_NAME})\s*\((.*?)\)\s*(?:=\s*(\w+))?$")
_SET_DEFAULT = re.compile(rf"({_NAME})\s+({_NAME})\s*\((.*?)\)$")
_CHECK = re.compile(rf"({_NAME})\((\$?\w+)\)(?:\s+(packets|bytes)\s*(==|!=|<=?|>=?)\s*(\d+))?$")
_QUOTED = re.compile(r'"([^"]*)"')
_DIRECT = ("mirroring_", "mc_", "counter_", "register_", "meter_")


def parse(text: str) -> list[Statement]:
    """Reads a script into its statements. Raises StfError, which names the line."""
    statements: list[Statement] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTED.sub(lambda name: _plain(name[1]), raw).partition("#")[0].strip()
        if not line:
            continue
        try:
            statement = _statement(line)
        except ValueError as error:
            raise StfError(f"line {number}: {line!r}: {error}") from error
        if statement is not None:
            statements.append(statement)
    return statements


def _statement(line: str) -> Statement | None:
    word, _, rest = line.partition(" ")
    word, rest = word.lower(), rest.strip()
    if word == "packet":
        port, _, data = rest.partition(" ")
        return Send(int(port), bytes.fromhex("".join(data.split())))
    if word == "expect":
        port, _, data = rest.partition(" ")
        return Expect(int(port), "".join(data.split()).lower() or None)
    if word == "add" and (match := _ADD.match(rest)):
        table, priority, keys, action, arguments, label = match.groups()
        return Add(table, int(priority) if priority else None, _pairs(keys.split()), _call(action, arguments), label)
    if word == "setdefault" and (match := _SET_DEFAULT.match(rest)):
        return SetDefault(match[1], _call(match[2], match[3]))
    if word == "check_counter" and (match := _CHECK.match(rest)):
        counter, index, unit, comparison, value = match.groups()
        return CheckCounter(counter, index, unit or "packets", comparison or "==", int(value or 0))
    if word.startswith(_DIRECT):
        return Direct(word, tuple(rest.split()))
    if word in ("wait", "remove", "no_packet"):  # p4c's driver does nothing at these either
        return None
    raise ValueError("not an STF statement")


def _plain(name: str) -> str:
    """A name of ours for a quoted one: p4testgen's may have any characters, as the key ``a[3:1] & 7``."""
    return re.sub(r"[^\w$.\[\]]", "_", name)


def _call(name: str, arguments: str) -> Call:
    return Call(name, _pairs(part for part in arguments.split(",") if part.strip()))


def _pairs(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    pairs = [text.partition(":") for text in texts]
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


# -- from the script's names and texts to the program's --------------------------------------------------------


def number(text: str) -> int:
    """Reads a number: hexadecimal, octal and binary with 0x, 0o or 0b, otherwise decimal, also with leading zeros."""
    return int(text, 0) if text[:2].lower() in DIGIT_BITS else int(text)


def _by_suffix(objects: Mapping[str, object], wanted: str, what: str) -> str:
    if wanted in objects:
        return wanted
    found = [name for name in objects if _plain(name) == wanted] or [name for name in objects if name.endswith(wanted)]
    if len(found) > 1:  # whole words first
        found = [name for name in found if name.endswith("." + wanted)] or found
    if len(found) != 1:
        raise StfError(f"{what} {wanted!r}: {', '.join(found) or 'no such name'} among {', '.join(objects)}")
    return found[0]


def _key_index(table: Table, wanted: str) -> int:
    """The index of the key that a script calls ``wanted``: its name, the end of its name, or a header's validity. In
    scripts ``a$0.b`` is element 0 of stack a."""
    wanted = re.sub(r"\$(\d+)", r"[\1]", wanted)
    names = [_plain(key.name) for key in table.keys]
    targets = [".".join(key.target) for key in table.keys]
    for candidates in (names, targets):
        for wish in (wanted, wanted + "$", wanted + ".$valid$", re.sub(r"\.?valid$", ".$valid$", wanted)):
            for test in (str.__eq__, lambda name, wish: name.endswith("." + wish)):
                found = [index for index, name in enumerate(candidates) if test(name, wish)]
                if found:
                    return found[0]
    raise StfError(f"table {table.name!r} has no key {wanted!r}; it has {', '.join(names)}")


def _ternary(text: str, width: int) -> tuple[int, int]:
    prefix, digits = text[:2].lower(), text[2:]
    if prefix not in DIGIT_BITS:
        return number(text), mask(width)
    base, full = 1 << DIGIT_BITS[prefix], {"0x": "f", "0o": "7", "0b": "1"}[prefix]
    keep = int("".join("0" if digit == "*" else full for digit in digits), base)
    return int(digits.replace("*", "0"), base), keep


def match_of(key: Key, text: str | None) -> Match:
    """A key's value in the script, ``None`` where the script does not mention the key."""
    kind, width = key.match_type, key.width
    if kind == "range":
        return Range(0, mask(width)) if text is None else Range(number(text), number(text))
    if kind == "optional":
        return Optional(None if text is None else number(text))
    if kind == "ternary":
        value, keep = _ternary(text, width) if text is not None else (0, 0)
        return Ternary(value & keep & mask(width), keep & mask(width))
    if kind == "lpm":
        if text is None:
            return Lpm(0, 0)
        if "/" in text:
            prefix, _, length = text.partition("/")
            return Lpm(number(prefix), number(length))
        bits = DIGIT_BITS.get(text[:2].lower())
        if bits is None:
            return Lpm(number(text), width)
        return Lpm(_ternary(text, width)[0], min((len(text) - 2 - text.count("*")) * bits, width))
    return Exact(number(text) if text is not None else 0)


# A switch that runs the program. What its ``add`` returns identifies an entry; ``outputs`` are the packets so far, by
# port; counters are (packets, bytes).
Target: TypeAlias = "EmbeddedTarget | Bmv2Target"


class Runner:
    """Plays a script on a target. Raises StfMismatch where they disagree, StfError where the script makes no sense.
    complete: the script names every packet that comes out, so that none may come out at another port."""

    def __init__(self, target: Target, complete: bool = False) -> None:
        self._target = target
        self._complete = complete
        self._tables = target.program.tables
        self._handles: dict[str, tuple[Table, int]] = {}
        self._nodes: list[list[tuple[int, int]]] = []
        self._groups: dict[int, list[tuple[int, int]]] = {}
        self._expected: dict[int, list[str]] = defaultdict(list)
        self._any: set[int] = set()
        self._named: set[int] = set()

    def run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Add):
                self._add(statement)
            elif isinstance(statement, SetDefault):
                table = self._tables[_by_suffix(self._tables, statement.table, "table")]
                self._target.set_default(table, *self._action(table, statement.action))
            elif isinstance(statement, Send):
                self._named.add(statement.port)
                self._target.send(statement.port, statement.data)
            elif isinstance(statement, Expect):
                self._named.add(statement.port)
                if statement.pattern is None:
                    self._any.add(statement.port)
                else:
                    self._expected[statement.port].append(statement.pattern)
            elif isinstance(statement, CheckCounter):
                self._check_counter(statement)
            else:
                self._direct(statement)
        self._compare()

    def _action(self, table: Table, call: Call) -> tuple[Action, list[int]]:
        action = table.actions[_by_suffix(table.actions, call.name, f"action of table {table.name!r}")]
        given = dict(call.arguments)
        names = [parameter.name for parameter in action.parameters]
        if set(given) != set(names):
            raise StfError(f"action {action.name!r} takes ({', '.join(names)}), not ({', '.join(given)})")
        return action, [number(given[p.name]) & mask(p.width) for p in action.parameters]

    def _add(self, statement: Add) -> None:
        table = self._tables[_by_suffix(self._tables, statement.table, "table")]
        texts: dict[int, str] = {_key_index(table, name): text for name, text in statement.keys}
        match = [match_of(key, texts.get(index)) for index, key in enumerate(table.keys)]
        priority = statement.priority or 0 if table.kind == "ternary" else 0
        handle = self._target.add(table, match, *self._action(table, statement.action), priority)
        if statement.label:
            self._handles[statement.label] = (table, handle)

    def _check_counter(self, check: CheckCounter) -> None:
        counters = self._target.program.counters
        name = _by_suffix(counters, check.counter, "counter")
        self._target.outputs()  # the packets before this are counted
        if check.index.startswith("$"):
            values = self._target.direct_counter(*self._handles[check.index[1:]])
        else:
            values = self._target.counter(name, number(check.index))
        packets, size = values
        got = packets if check.unit == "packets" else size + FRAME_CHECK_BYTES * packets
        if not COMPARISONS[check.comparison](got, check.value):
            raise StfMismatch(
                f"counter {name}({check.index}): {got} {check.unit}, not {check.comparison} {check.value}"
            )

    def _direct(self, command: Direct) -> None:
        if command.name == "mc_mgrp_create":
            self._groups[int(command.arguments[0])] = []
        elif command.name == "mc_node_create":
            instance, *ports = map(int, command.arguments)
            self._nodes.append([(port, instance) for port in ports])
        elif command.name == "mc_node_associate":
            group, node = map(int, command.arguments)
            self._groups[group] += self._nodes[node]
            self._target.group(group, self._groups[group])
        elif command.name == "mirroring_add":
            session, port = map(int, command.arguments)
            self._target.clone_session(session, [(port, 0)])
        elif command.name == "mirroring_add_mc":
            session, group = map(int, command.arguments)
            self._target.clone_session(session, self._groups[group])
        # The results of mirroring_get and register_read are not checked, as p4c's driver does not check them either.

    def _compare(self) -> None:
        got = self._target.outputs()
        checked = self._named | set(got) if self._complete else self._named
        for port in sorted(checked - self._any):
            patterns, packets = self._expected[port], got.get(port, [])
            if len(patterns) != len(packets):
                sent = ", ".join(packet.hex() for packet in packets)
                raise StfMismatch(f"port {port}: {len(packets)} packets, not {len(patterns)}: {sent}")
            for place, (pattern, packet) in enumerate(zip(patterns, packets, strict=True)):
                if not matches(pattern, packet):
                    raise StfMismatch(f"port {port}, packet {place}: {packet.hex()}, not {pattern}")


def matches(pattern: str, packet: bytes) -> bool:
    """Whether a packet begins as the pattern says; a pattern that ends in $ has to match the whole packet."""
    digits, exact = packet.hex(), pattern.endswith("$")
    pattern = pattern.rstrip("$")
    if len(digits) < len(pattern) or (exact and len(digits) != len(pattern)):
        return False
    return all(want in ("*", have) for want, have in zip(pattern, digits, strict=False))
