"""Generates C for checksums and hashes: statements that write a calculation's input as bytes, and the call of the
algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from serene.embedded.codegen.expressions import Emitter, Expr, Reader, constant
from serene.embedded.codegen.scope import Scope
from serene.embedded.program.crcs import WIDTHS
from serene.embedded.program.errors import UnsupportedProgram, known
from serene.embedded.program.ir import limbs_of, mask
from serene.errors import choices

MAX_FRAME = 65536  # as in runtime/switch.h
ALGORITHMS = ("csum16", "xor16", "crc16", "crc32", "crcCCITT", "identity", *WIDTHS)


@dataclass(frozen=True)
class Varying:
    """A byte string whose length depends on the packet."""

    code: str
    most_bytes: int


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
        pieces = [self._string(element) or self._pieces(element, reader, emitter) for element in elements]
        strings = [piece for piece in pieces if isinstance(piece, Varying)]
        bits = sum(width for piece in pieces if isinstance(piece, list) for _, width in piece)
        most, varies = (bits + 7) // 8 + sum(string.most_bytes for string in strings), bool(strings)
        self._scope.budget.spend(limbs_of(8 * (most + 8 + MAX_FRAME * payload)))
        emitter.line(f"uint8_t bytes[{most + 8}{' + MAX_FRAME' if payload else ''}];")
        emitter.line(f"memset(bytes, 0, {most + 8});")
        if varies:
            emitter.line("uint32_t before = 0;")
        start = "bytes + before" if varies else "bytes"
        at = 0
        for piece in pieces:
            if isinstance(piece, Varying):
                if at % 8:
                    raise UnsupportedProgram(f"calculation {name!r}: a varbit field begins inside a byte")
                emitter.line(f"memcpy({start} + {at // 8}, {piece.code}, {piece.code}_bytes);")
                emitter.line(f"before += {at // 8} + {piece.code}_bytes;")
                at = 0
                continue
            for number, width in piece:
                if not width:
                    continue
                if width <= 64:
                    emitter.line(f"store_bits({start}, {at}, {width}, {emitter.narrow(number, width)[0]});")
                else:
                    emitter.line(f"store_wide({start}, {at}, {width}, {emitter.wide(number, limbs_of(width))});")
                at += width
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
        declared = self._scope.program.field(header, field)
        if not declared.most_bytes:
            return None
        code = f"{self._scope.header(header)}.{self._scope.field_name(header, field)}"
        return Varying(code, declared.most_bytes)

    @staticmethod
    def _constant_bits(element: Mapping[str, Any]) -> int:
        return int(element.get("bitwidth") or 8 * ((len(element["value"]) - 1) // 2))

    def _pieces(self, element: Mapping[str, Any], reader: Reader, emitter: Emitter) -> list[tuple[Expr, int]]:
        kind, value = element["type"], element.get("value")
        if kind == "payload":
            return []
        if kind == "header":
            header = self._scope.known_header(str(value))
            if header.type.variable is not None:
                raise UnsupportedProgram(f"a calculation on header {header.name!r}, which has a varbit field")
            fields = [(f, self._scope.field_expr(header.name, f.name, emitter)) for f in header.type.fields]
            return [(expr, f.width) for f, expr in fields]
        if kind == "hexstr":
            width = self._constant_bits(element)
            return [(constant(int(str(value), 16) & mask(width)), width)]
        expr = reader.number(element)
        return [(expr, expr.place.width if expr.place is not None else expr.bits)]
