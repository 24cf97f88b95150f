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
    """A header, or fields of it in a row, which count only while it is valid."""

    valid: str
    parts: Sequence[Fixed | Varying]

    @property
    def fills_bytes(self) -> bool:
        """Whether the fields after it begin at the same bit of a byte, whether it is valid or not."""
        return sum(width for part in self.parts if isinstance(part, list) for _, width in part) % 8 == 0


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
        headers = [piece for piece in pieces if isinstance(piece, OfHeader)]
        by_bits = not all(header.fills_bytes for header in headers)
        varies = bool(headers or strings)
        self._scope.budget.spend(limbs_of(8 * (most + 8 + MAX_FRAME * payload)))
        emitter.line(f"uint8_t bytes[{most + 8}{' + MAX_FRAME' if payload else ''}];")
        emitter.line(f"memset(bytes, 0, {most + 8});")
        if varies:
            emitter.line(f"uint32_t before = 0;    /* {'bits' if by_bits else 'bytes'} */")
        at = 0

        def place() -> str:
            """C for an array and for the bit in it that is written next."""
            return f"bytes, before + {at}" if by_bits else f"bytes{' + before' if varies else ''}, {at}"

        def flush() -> None:
            """Adds to ``before`` all that is written, in whole bytes unless it counts bits."""
            nonlocal at
            done = at if by_bits else at // 8
            if done:
                emitter.line(f"before += {done};")
            at -= done if by_bits else 8 * done

        def write(part: Fixed | Varying) -> None:
            nonlocal at
            if isinstance(part, Varying):
                size = f"{part.code}_bytes"
                if by_bits or at % 8:
                    emitter.line(f"for (uint32_t i = 0; i < {size}; i++)")
                    emitter.line(f"    store_bits({place()} + 8 * i, 8, {part.code}[i]);")
                else:
                    emitter.line(f"memcpy(bytes + before + {at // 8}, {part.code}, {size});")
                emitter.line(f"before += {'8 * ' if by_bits else ''}{size};")
                return
            for number, width in part:
                if not width:
                    continue
                if width <= 64:
                    emitter.line(f"store_bits({place()}, {width}, {emitter.narrow(number, width)[0]});")
                else:
                    emitter.line(f"store_wide({place()}, {width}, {emitter.wide(number, limbs_of(width))});")
                at += width

        for piece in pieces:
            if isinstance(piece, OfHeader):
                flush()
                begin = at
                emitter.line(f"if ({piece.valid}) {{")
                for part in piece.parts:
                    write(part)
                flush()
                emitter.line("}")
                assert at == begin
            else:
                write(piece)
        size = f"(before + {at} + 7) / 8" if by_bits else f"{'before + ' if varies else ''}{(at + 7) // 8}"
        if payload:
            emitter.line("const uint32_t payload = packet->length - packet->parsed;")
            emitter.line(f"memcpy(bytes + {size}, packet->data + packet->parsed, payload);")
            size += " + payload"
        if algorithm in WIDTHS:
            return f"checksum_crc_custom(&packet->state->crcs[{self._scope.crc(name)}], bytes, {size})", size
        return f"checksum_{algorithm}(bytes, {size})", size

    def _pieces(self, elements: Sequence[Mapping[str, Any]], reader: Reader) -> list[Fixed | Varying | OfHeader]:
        """BMv2 leaves out what is of an invalid header."""
        found = list[Fixed | Varying | OfHeader]()
        for header, group in groupby(elements, self._header_of):
            parts = [part for element in group for part in self._parts(element, reader)]
            if header:
                found.append(OfHeader(self._scope.valid(header), parts))
            else:
                found += parts
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
        if kind == "expression" and value is not None and value.get("op") == "d2b":  # as p4c writes a bool
            return self._parts(value["right"], reader)
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
