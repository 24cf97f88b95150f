"""Generates C for checksums and hashes: statements that write a calculation's input as bytes, and the call of the
algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
class Whole:
    """A header, which counts only while it is valid."""

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
        pieces = [
            self._string(element) or self._whole(element) or self._pieces(element, reader) for element in elements
        ]
        parts = [part for piece in pieces for part in (piece.parts if isinstance(piece, Whole) else [piece])]
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

        def flush(what: str) -> None:
            """Makes ``bytes + before`` the end of what is written."""
            nonlocal at
            if at % 8:
                raise UnsupportedProgram(f"calculation {name!r}: {what} begins inside a byte")
            if at:
                emitter.line(f"before += {at // 8};")
            at = 0

        def write(part: Fixed | Varying) -> None:
            nonlocal at
            if isinstance(part, Varying):
                flush("a varbit field")
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
            if isinstance(piece, Whole):
                flush("a header")
                emitter.line(f"if ({piece.valid}) {{")
                for part in piece.parts:
                    write(part)
                flush("what follows a header")
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

    def _string(self, element: Mapping[str, Any]) -> Varying | None:
        """The element as a byte string of varying length if it is a varbit field, else None."""
        if element["type"] != "field":
            return None
        header, field = element["value"]
        most = self._scope.program.field(header, field).most_bytes
        return self._varying(header, field, most) if most else None

    def _varying(self, header: str, field: str, most_bytes: int) -> Varying:
        return Varying(f"{self._scope.header(header)}.{self._scope.field_name(header, field)}", most_bytes)

    def _whole(self, element: Mapping[str, Any]) -> Whole | None:
        """The element as a header if it is one, else None."""
        if element["type"] != "header":
            return None
        header, parts = self._scope.known_header(str(element["value"])), list[Fixed | Varying]()
        for field in header.type.fields:
            if field.most_bytes:
                parts.append(self._varying(header.name, field.name, field.most_bytes))
            else:
                parts.append([(place_expr(self._scope.place(header.name, field.name)), field.width)])
        return Whole(self._scope.valid(header.name), parts)

    @staticmethod
    def _constant_bits(element: Mapping[str, Any]) -> int:
        return int(element.get("bitwidth") or 8 * ((len(element["value"]) - 1) // 2))

    def _pieces(self, element: Mapping[str, Any], reader: Reader) -> Fixed:
        kind, value = element["type"], element.get("value")
        if kind == "payload":
            return []
        if kind == "hexstr":
            width = self._constant_bits(element)
            return [(constant(int(str(value), 16) & mask(width)), width)]
        expr = reader.number(element)
        return [(expr, expr.place.width if expr.place is not None else expr.bits)]
