"""Maps a string type's values (``@p4runtime_translation(uri, string)``) to numbers in packets.

A P4Runtime server chooses these numbers itself. Here a decimal text is mapped to its number, so that ports have the
names "1" and "2". ``@p4runtime_translation_mappings`` defines the numbers of its strings. The empty string is 0. Every
other string gets a new number when a controller first uses it, from the largest downwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from serene.embedded.p4runtime.status import Code, Failure, invalid
from serene.errors import choices

MOST_CHARACTERS = 1024  # of a string
MOST_STRINGS = 1 << 17  # of one type
_MAPPING = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*,\s*(\d+)\s*\}')


class NoNumberLeft(Failure):
    """All numbers of the type are in use."""


class StringType:
    """The values of one string type. In packets they have ``width`` bits.

    ``ports`` maps the names of the switch's ports to their numbers if it is the type of ports. Then ports are its only
    values.
    """

    def __init__(self, name: str, width: int, ports: Mapping[str, int] | None, annotations: Iterable[str]) -> None:
        self.name, self.width = name, width
        self._ports = ports
        self._strings: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._fixed: set[int] = set()
        for annotation in annotations:
            if annotation.startswith("@p4runtime_translation_mappings"):
                for text, number in _MAPPING.findall(annotation):
                    self._map(re.sub(r"\\(.)", r"\1", text), int(number))
        self._next = (1 << width) - 1

    def _map(self, text: str, number: int) -> None:
        if number >> self.width or text in self._numbers or number in self._strings:
            raise invalid(f"type {self.name!r}: {text!r} cannot be mapped to {number} in {self.width} bits")
        self._assign(text, number)
        self._fixed.add(number)

    def _assign(self, text: str, number: int) -> int:
        self._numbers[text] = number
        self._strings[number] = text
        return number

    def number(self, data: bytes, what: str) -> int:
        """The number of a controller's string. Raises NoNumberLeft if it needs a new number and all are in use."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise invalid(f"{what}: {data[:40]!r} is not UTF-8; expected a string of type {self.name!r}") from None
        if text in self._numbers:
            return self._numbers[text]
        if len(text) > MOST_CHARACTERS:
            raise invalid(f"{what}: a string of {len(text)} characters; at most {MOST_CHARACTERS}")
        number = self._meant(text)
        if self._ports is not None:
            if number is None:
                named = choices(sorted(self._ports))
                raise invalid(f"{what}: there is no port {text!r}; expected a port's number{named and ', or '}{named}")
            self._strings.setdefault(number, text)  # controllers may use a port's name and its number
            return number
        if len(self._numbers) >= min(MOST_STRINGS, 1 << self.width):
            raise self._full(what)
        return self._assign(text, self._free(what) if number is None or number in self._strings else number)

    def _meant(self, text: str) -> int | None:
        number = (self._ports or {}).get(text)
        if number is None and not text and self._ports is None:
            number = 0
        if number is None and text.isdecimal() and text.isascii() and str(int(text)) == text:
            number = int(text)
        return number if number is not None and not number >> self.width else None

    def _free(self, what: str) -> int:
        for _ in range(len(self._strings) + 1):
            number = self._next
            self._next = (self._next or 1 << self.width) - 1
            if number not in self._strings:
                return number
        raise self._full(what)

    def _full(self, what: str) -> NoNumberLeft:
        most = min(MOST_STRINGS, 1 << self.width)
        return NoNumberLeft(
            Code.RESOURCE_EXHAUSTED, f"{what}: all {most} values of type {self.name!r} are in use; delete entries first"
        )

    def string(self, number: int) -> bytes:
        """The string for a number in the program: the controller's string, or the number's digits."""
        return self._strings.get(number, str(number)).encode()

    def keep(self, used: set[int]) -> None:
        """Frees the numbers that no entry uses any more."""
        for number in [number for number in self._strings if number not in used and number not in self._fixed]:
            self._numbers.pop(self._strings.pop(number), None)

    def take_over(self, old: StringType) -> None:
        """Keeps the numbers that strings had in the previous program. Raises INVALID_ARGUMENT if that is impossible."""
        for number, text in old._strings.items():
            if self._strings.get(number) != text:
                self._map(text, number)
                self._fixed.discard(number)
