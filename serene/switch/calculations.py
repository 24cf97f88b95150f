"""Checksums and hashes: a calculation's input laid out as bytes, and the call that digests it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from serene.errors import choices
from serene.switch.expressions import Emitter, Expr, Reader, constant, limbs_of, mask
from serene.switch.program import UnsupportedProgram

if TYPE_CHECKING:
    from serene.switch.codegen import Generator

ALGORITHMS = ("csum16", "xor16", "crc16", "crc32", "crcCCITT", "identity")


class CalculationWriter:
    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def named(self, name: str, reader: Reader, emitter: Emitter) -> str:
        """C for the result of a calculation of the program; its input is laid out by ``emitter``."""
        calculation = self._generator.calculations[name]
        return self.input(name, calculation["algo"], calculation["input"], reader, emitter)[0]

    def input(
        self, name: str, algorithm: str, elements: Sequence[Mapping[str, Any]], reader: Reader, emitter: Emitter
    ) -> tuple[str, str]:
        """Lays the elements out in ``bytes``; C for the algorithm's call and for the size."""
        if algorithm not in ALGORITHMS:
            raise UnsupportedProgram(
                f"calculation {name!r}: algorithm {algorithm!r} is not supported (supported: {choices(ALGORITHMS)})"
            )
        most, varies = self._size(elements)
        payload = any(element["type"] == "payload" for element in elements)
        emitter.line(f"uint8_t bytes[{most + 8}{' + MAX_FRAME' if payload else ''}];")
        emitter.line(f"memset(bytes, 0, {most + 8});")
        if varies:
            emitter.line("uint32_t before = 0;")
        start = "bytes + before" if varies else "bytes"
        at = 0
        for element in elements:
            string = self._string(element)
            if string is not None:
                if at % 8:
                    raise UnsupportedProgram(f"calculation {name!r}: a varbit field within a byte is not supported")
                code = f"{self._generator.header(string[0])}.{self._generator.field_name(*string)}"
                emitter.line(f"memcpy({start} + {at // 8}, {code}, {code}_bytes);")
                emitter.line(f"before += {at // 8} + {code}_bytes;")
                at = 0
                continue
            for piece, width in self._pieces(element, reader, emitter):
                if width <= 64:
                    emitter.line(f"store_bits({start}, {at}, {width}, {emitter.narrow(piece, width)[0]});")
                else:
                    emitter.line(f"store_wide({start}, {at}, {width}, {emitter.wide(piece, limbs_of(width))});")
                at += width
        size = f"{'before + ' if varies else ''}{(at + 7) // 8}"
        if payload:
            if at % 8:
                raise UnsupportedProgram(f"calculation {name!r}: a payload after a broken byte is not supported")
            emitter.line("const uint32_t payload = packet->length - packet->parsed;")
            emitter.line(f"memcpy(bytes + {size}, packet->data + packet->parsed, payload);")
            size += " + payload"
        return f"checksum_{algorithm}(bytes, {size})", size

    def _string(self, element: Mapping[str, Any]) -> tuple[str, str] | None:
        """(header, field) where the element is a varbit field."""
        if element["type"] == "field":
            header, field = element["value"]
            if field != "$valid$" and self._generator.program.field(header, field).most_bytes:
                return header, field
        return None

    def _size(self, elements: Sequence[Mapping[str, Any]]) -> tuple[int, bool]:
        """Bytes at most, and whether a varbit field is among the elements."""
        bits, strings = 0, 0
        for element in elements:
            string = self._string(element)
            if string is not None:
                strings += self._generator.program.field(*string).most_bytes
            elif element["type"] == "header":
                if self._generator.known_header(element["value"]).type.variable:
                    raise UnsupportedProgram(f"a calculation on header {element['value']!r}, which has a varbit field")
                bits += self._generator.known_header(element["value"]).type.bits
            elif element["type"] == "field":
                bits += self._generator.program.field(*element["value"]).width
            elif element["type"] == "hexstr":
                bits += self._constant_bits(element)
            elif element["type"] != "payload":
                bits += 8 * 256  # an expression: no more than a wide field
        return (bits + 7) // 8 + strings, strings > 0

    @staticmethod
    def _constant_bits(element: Mapping[str, Any]) -> int:
        return int(element.get("bitwidth") or 8 * ((len(element["value"]) - 1) // 2))

    def _pieces(self, element: Mapping[str, Any], reader: Reader, emitter: Emitter) -> list[tuple[Expr, int]]:
        kind, value = element["type"], element.get("value")
        if kind == "payload":
            return []
        if kind == "header":
            header = self._generator.known_header(str(value))
            fields = [(f, self._generator.field_expr(header.name, f.name, emitter)) for f in header.type.fields]
            return [(expr, f.width) for f, expr in fields]
        if kind == "hexstr":
            width = self._constant_bits(element)
            return [(constant(int(str(value), 16) & mask(width)), width)]
        expr = reader.number(element)
        return [(expr, expr.place.width if expr.place is not None else expr.bits)]
