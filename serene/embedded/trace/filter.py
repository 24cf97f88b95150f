"""Filters for traced packets: ``udp.dst == 24142 and serene.op != 3``.

A field belongs to a header that the parser extracted from the received packet, and has its name in the program. It may
be abbreviated to letters of its name, in order, if these match no other field of the header (dst for destination_port).
"""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from serene.embedded.program.ir import Program
from serene.embedded.trace.steps import Step
from serene.errors import SereneError, choices

OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
MOST_COMPARISONS = 32
EXAMPLE = "udp.dst == 24142 and ipv4.ttl < 64"


class BadFilter(SereneError):
    """The filter is malformed, or names a header or field that this program does not have."""


@dataclass(frozen=True)
class Comparison:
    header: str
    field: str
    compare: Callable[[int, int], bool]
    number: int

    def holds(self, headers: Mapping[str, Step]) -> bool:
        """Whether the packet matches; False if it lacks the header, or the field is too wide to be compared."""
        value = headers[self.header].values.get(self.field) if self.header in headers else None
        return isinstance(value, int) and self.compare(value, self.number)


@dataclass(frozen=True)
class Filter:
    comparisons: tuple[Comparison, ...] = ()
    dropped: bool = False  # only packets that were dropped, wholly or in part

    def wants(self, packet: Step) -> bool:
        if self.dropped and next(packet.all("drop"), None) is None:
            return False
        if not self.comparisons:
            return True
        parser = next(packet.all("parser"), None)
        headers = {step.name: step for step in parser.steps if step.kind == "header"} if parser else {}
        return all(comparison.holds(headers) for comparison in self.comparisons)


def parse(text: str, program: Program, *, dropped: bool = False) -> Filter:
    """Parses a filter. Raises BadFilter, which names the valid choices."""
    parts = re.split(r"\s+and\s+|\s*&&\s*", text.strip()) if text.strip() else []
    if re.search(r"\s+or\s+|\|\|", text):
        raise BadFilter(f"{text[:80]!r}: join comparisons with 'and'; for 'or' run two traces")
    if len(parts) > MOST_COMPARISONS:
        raise BadFilter(f"{len(parts)} comparisons; {MOST_COMPARISONS} at most")
    return Filter(tuple(_comparison(part, program) for part in parts), dropped)


def _comparison(text: str, program: Program) -> Comparison:
    found = re.fullmatch(r"\s*(.+?)\.([\w$]+)\s*(==|!=|<=|>=|<|>)\s*(\S+)\s*", text)
    if not found:
        raise BadFilter(f"{text[:80]!r}: expected HEADER.FIELD OPERATOR NUMBER, as in {EXAMPLE!r}")
    header, field, compare, number = found.groups()
    headers = {name: item for name, item in program.headers.items() if not item.metadata}
    if header not in headers:
        raise BadFilter(f"no header {header!r}; expected {choices(sorted(headers))}")
    fields = [one.name for one in headers[header].type.fields]
    return Comparison(header, _field(header, field, fields), OPERATORS[compare], _number(number))


def _field(header: str, given: str, fields: list[str]) -> str:
    if given in fields:
        return given
    meant = [name for name in fields if name.startswith(given)] or [
        name for name in fields if _abbreviates(given, name)
    ]
    if len(meant) != 1:
        found = choices(meant) or "no field"
        raise BadFilter(f"header {header!r}: {given!r} matches {found}; expected {choices(fields)}")
    return meant[0]


def _abbreviates(given: str, name: str) -> bool:
    rest = iter(name)
    return given[0] == name[:1] and all(letter in rest for letter in given)


def _number(text: str) -> int:
    """A number written in decimal or hexadecimal, or as an IP or MAC address."""
    if re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
        return int(text.replace(":", ""), 16)
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return int(ipaddress.ip_address(text))
    except ValueError:
        raise BadFilter(f"{text[:80]!r}: expected a number, an IP address or a MAC address") from None
