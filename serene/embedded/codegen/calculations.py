"""Generates C for checksums and hashes: statements that write a calculation's input as bytes, and the call of the
algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from serene.embedded.codegen.expressions import Emitter, Expr, Reader, constant, place_expr
from serene.embedded.codegen.scope import Scope
from serene.embedded.program.crcs import WIDTHS
from serene.embedded.program.errors import UnsupportedProgram, known
from serene.embedded.program.ir import limbs_of, mask
from serene.errors import choices

Fixed = list[tuple[Expr, int]]  # numbers and their widths in bits

MAX_FRAME = 65536  # as in runtime/switch.h
ALGORITHMS = ("csum16", "xor16", "crc16", "crc32", "crcCCITT", "identity", *WIDTHS)


@dataclass(frozen=True)
class Varying:
    """A byte string whose length depends on the packet."""

    code: str
    most_bytes: int


@dataclass(frozen=True)
class OfHeader:
    """A header, or fields of it in a row, which count only while it is valid. They fill whole bytes."""

    valid: str
    parts: Sequence[Fixed | Varying]


class CalculationWriter:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def named(self, name: str, reader: Reader, emitter: Emitter) -> str:
        """C for the result of a calculation. ``emitter`` gets the statements that write its input."""
        calculation = known(self._scope.calculations, name, "calculation")
        return self.input(name, calculation["algo"], calculation["input"], reader, emitter)[0]

    def input(
        self, name: str, algorithm: str, elements: Sequence[Mapping[str, Any]], reader: Reader, emitter: Emitter
    ) -> tuple[str, str]:
        """Writes the elements into the array ``bytes``. Returns C for the algorithm's call, and for the size."""
        if algorithm not in ALGORITHMS:
            raise UnsupportedProgram(
                f"calculation {name!r}: algorithm {algorithm!r} is not supported (supported: {choices(ALGORITHMS)})"
            )
        payload = any(element["type"] == "payload" for element in elements)
        pieces = self._pieces(elements, reader)
        parts = [part for piece in pieces for part in (piece.parts if isinstance(piece, OfHeader) else [piece])]
        strings = [part for part in parts if isinstance(part, Varying)]
        bits = sum(width for part in parts if isinstance(part, list) for _, width in part)
        most = (bits + 7) // 8 + sum(string.most_bytes for string in strings)
        varies = any(not isinstance(piece, list) for piece in pieces)
        self._scope.budget.spend(limbs_of(8 * (most + 8 + MAX_FRAME * payload)))
        emitter.line(f"uint8_t bytes[{most + 8}{' + MAX_FRAME' if payload else ''}];")
        emitter.line(f"memset(bytes, 0, {most + 8});")
        if varies:
            emitter.line("uint32_t before = 0;")
        start = "bytes + before" if varies else "bytes"
        at = 0

        def flush() -> None:
            """Makes ``bytes + before`` the end of what is written."""
            nonlocal at
            if at:
                emitter.line(f"before += {at // 8};")
            at = 0

        def write(part: Fixed | Varying) -> None:
            nonlocal at
            if isinstance(part, Varying):
                if at % 8:
                    raise UnsupportedProgram(f"calculation {name!r}: a varbit field begins inside a byte")
                flush()
                emitter.line(f"memcpy({start}, {part.code}, {part.code}_bytes);")
                emitter.line(f"before += {part.code}_bytes;")
                return
            for number, width in part:
                if not width:
                    continue
                if width <= 64:
                    emitter.line(f"store_bits({start}, {at}, {width}, {emitter.narrow(number, width)[0]});")
                else:
                    emitter.line(f"store_wide({start}, {at}, {width}, {emitter.wide(number, limbs_of(width))});")
                at += width

        for piece in pieces:
            if isinstance(piece, OfHeader):
                flush()
                emitter.line(f"if ({piece.valid}) {{")
                for part in piece.parts:
                    write(part)
                flush()
                emitter.line("}")
            else:
                write(piece)
        size = f"{'before + ' if varies else ''}{(at + 7) // 8}"
        if payload:
            if at % 8:
                raise UnsupportedProgram(f"calculation {name!r}: the payload begins inside a byte")
            emitter.line("const uint32_t payload = packet->length - packet->parsed;")
            emitter.line(f"memcpy(bytes + {size}, packet->data + packet->parsed, payload);")
            size += " + payload"
        if algorithm in WIDTHS:
            return f"checksum_crc_custom(&packet->state->crcs[{self._scope.crc(name)}], bytes, {size})", size
        return f"checksum_{algorithm}(bytes, {size})", size

    def _pieces(self, elements: Sequence[Mapping[str, Any]], reader: Reader) -> list[Fixed | Varying | OfHeader]:
        """BMv2 leaves out what is of an invalid header."""
        found, bits = list[Fixed | Varying | OfHeader](), 0
        for header, group in groupby(elements, self._header_of):
            parts = [part for element in group for part in self._parts(element, reader)]
            width = sum(width for part in parts if isinstance(part, list) for _, width in part)
            if header and bits % 8 == width % 8 == 0:
                found.append(OfHeader(self._scope.valid(header), parts))
            else:
                found += parts
            bits += width
        return found

    def _header_of(self, element: Mapping[str, Any]) -> str:
        """The header of a packet that the element is, or is of; empty for others, which always count."""
        if element["type"] not in ("field", "header"):
            return ""
        name = str(element["value"] if element["type"] == "header" else element["value"][0])
        return "" if self._scope.known_header(name).metadata else name

    def _parts(self, element: Mapping[str, Any], reader: Reader) -> list[Fixed | Varying]:
        kind, value = element["type"], element.get("value")
        if kind == "payload":
            return []
        if kind == "header":
            header = self._scope.known_header(str(value))
            return [self._field(header.name, field.name) for field in header.type.fields]
        if kind == "field" and isinstance(varying := self._field(*element["value"]), Varying):
            return [varying]
        if kind == "hexstr":
            width = self._constant_bits(element)
            return [[(constant(int(str(value), 16) & mask(width)), width)]]
        expr = reader.number(element)
        return [[(expr, expr.place.width if expr.place is not None else expr.bits)]]

    def _field(self, header: str, name: str) -> Fixed | Varying:
        field = self._scope.program.field(header, name)
        if field.most_bytes:
            return Varying(f"{self._scope.header(header)}.{self._scope.field_name(header, name)}", field.most_bytes)
        return [(place_expr(self._scope.place(header, name)), field.width)]

    @staticmethod
    def _constant_bits(element: Mapping[str, Any]) -> int:
        return int(element.get("bitwidth") or 8 * ((len(element["value"]) - 1) // 2))
