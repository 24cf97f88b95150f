"""Generates C for checksums, deparsing, copied metadata and digests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serene.embedded.codegen.calculations import CalculationWriter
from serene.embedded.codegen.expressions import Expr, Place
from serene.embedded.codegen.scope import Scope
from serene.embedded.codegen.trace import event, place_words
from serene.embedded.program.errors import UnsupportedProgram, where
from serene.embedded.program.ir import Field, Header, mask


class DeparserWriter:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def checksums(self, function: str, which: str) -> str:
        """The checksum functions of one kind: ``which`` is "verify" or "update"."""
        scope = self._scope
        lines = [
            f"STAGE_FUNCTION void {function}(struct packet *packet) {{",
            "    struct phv *const h = &packet->h;",
            "    (void)h;",
        ]
        for number, item in enumerate(scope.program.json.get("checksums") or ()):
            if item.get(which, which == "update"):
                with where(f"checksum of {'.'.join(item['target'])!r}"):
                    lines += self._checksum(item, which, number)
        return "\n".join([*lines, "}"])

    def _checksum(self, item: Mapping[str, Any], which: str, number: int) -> list[str]:
        scope = self._scope
        emitter = scope.emitter()
        reader = scope.reader(emitter)
        condition = reader.truth(item["if_cond"]) if item.get("if_cond") else "1"
        before, emitter.lines = emitter.lines, []
        call = CalculationWriter(scope).named(item["calculation"], reader, emitter)
        target = scope.target(*item["target"])
        if which == "verify":
            if target.width > 64:
                raise UnsupportedProgram(f"a checksum of {target.width} bits")
            failed = scope.target("standard_metadata", "checksum_error")
            condition = f"{scope.valid(item['target'][0])} && {condition}"  # as on BMv2
            emitter.line(f"const int wrong = {call} != {target.code};")
            emitter.line(f"if (wrong) {failed.code} = 1;")
            emitter.line(event("CHECKSUM", number, "wrong", f"(uint64_t){target.code}"))
        else:
            emitter.store(target, Expr("c", 0, mask(64), (call,)))
            emitter.line(event("CHECKSUM", number, "2", *place_words(target)))
        lines = ["    {", *(f"        {line}" for line in before), f"        if ({condition}) {{"]
        return [*lines, *(f"            {line}" for line in emitter.lines), "        }", "    }"]

    def deparser(self) -> str:
        scope = self._scope
        lines = [
            "/* Writes the valid headers in order. Returns their length in bytes. */",
            "STAGE_FUNCTION uint32_t deparse(struct packet *packet, uint8_t *to) {",
            "    struct phv *const h = &packet->h;",
            "    uint32_t at = 0;",
            "    (void)h;",
        ]
        for name in scope.program.json["deparsers"][0]["order"]:
            header = scope.packet_header(name)
            if header.type.bits % 8:
                raise UnsupportedProgram(f"header {name!r} is not a whole number of bytes")
            traced = event("EMIT", scope.header_number(name))
            lines += [f"    if ({scope.valid(name)}) {{", *self._emit(header), f"        {traced}", "    }"]
        return "\n".join([*lines, "    return at;", "}"])

    def _emit(self, header: Header) -> list[str]:
        lines: list[str] = []
        at = 0
        run: list[Field] = []  # fields since the last byte boundary

        def flush() -> None:
            nonlocal at
            bits = sum(field.width for field in run)
            places = [self._scope.place(header.name, field.name) for field in run]
            if 0 < bits <= 64 and bits % 8 == 0 and at % 8 == 0:
                terms, left = [], bits
                for place in places:
                    left -= place.width
                    terms.append(f"(uint64_t){place.code} << {left}" if left else f"(uint64_t){place.code}")
                lines.append(f"        store_bytes(to + at + {at // 8}, {bits // 8}, {' | '.join(terms)});")
                at += bits
            else:
                for place in places:
                    store = "store_bits" if place.width <= 64 else "store_wide"
                    cast = "(uint64_t)" if place.width <= 64 else ""
                    lines.append(f"        {store}(to + at, {at}, {place.width}, {cast}{place.code});")
                    at += place.width
            run.clear()

        for field in header.type.fields:
            if field.most_bytes:
                flush()
                if at % 8:
                    raise UnsupportedProgram(f"header {header.name!r}: varbit {field.name!r} begins inside a byte")
                code = f"{self._scope.header(header.name)}.{self._scope.field_name(header.name, field.name)}"
                lines.append(f"        memcpy(to + at + {at // 8}, {code}, {code}_bytes);")
                lines.append(f"        at += {at // 8} + {code}_bytes;")
                at = 0
                continue
            if not field.width:
                continue
            run.append(field)
            if (at + sum(each.width for each in run)) % 8 == 0:
                flush()
        flush()
        return [*lines, f"        at += {at // 8};"]

    def copy_fields(self) -> str:
        scope = self._scope
        lines = [
            "STAGE_FUNCTION void copy_fields(uint32_t list, struct phv *to, const struct phv *from) {",
            "    (void)to; (void)from;",
            "    switch (list) {",
        ]
        for id_, item in scope.field_lists.items():
            lines.append(f"    case {id_}:")
            for element in item["elements"]:
                if element["type"] == "field":
                    header, field = element["value"]
                    if field == "$valid$":
                        scope.packet_header(header)
                    to, source = (scope.place(header, field, of) for of in ("to", "from"))
                    lines.append(f"        {_copy(to, source)}")
                elif element["type"] == "header":
                    name = element["value"]
                    lines.append(f"        {scope.header(name, 'to')} = {scope.header(name, 'from')};")
                else:
                    raise UnsupportedProgram(f"field list {item['name']!r}: a {element['type']!r} is not supported")
            lines.append("        break;")
        return "\n".join([*lines, "    default: break;", "    }", "}"])

    def learn(self) -> str:
        lines = [
            "STAGE_FUNCTION void learn(struct packet *packet, uint32_t list) {",
            "    struct phv *const h = &packet->h;",
            "    struct ring *digests = &packet->state->runtime.digests;",
            "    (void)h;",
            "    switch (list) {",
        ]
        for id_, (_, fields) in self._scope.program.digests.items():
            places = [self._scope.place(*field) for field in fields]
            places += [self._scope.place(header, "$valid$") for _, header in self._scope.program.digest_headers(id_)]
            total = sum(place.limbs for place in places)
            self._scope.budget.spend(total)
            lines += [f"    case {id_}: {{", f"        uint64_t values[{max(total, 1)}];"]
            at = 0
            for place in places:
                if place.width <= 64:
                    lines.append(f"        values[{at}] = {place.code};")
                else:
                    lines.append(f"        wide_copy(values + {at}, {place.limbs}, {place.code}, {place.limbs});")
                at += place.limbs
            lines += [
                f"        ring_push(digests, &list, sizeof list, values, {8 * total});",
                f"        TRACED(trace_words(&packet->state->runtime, TRACE_DIGEST, {id_}, values, {total});)",
                "        break;",
                "    }",
            ]
        return "\n".join([*lines, "    default: (void)digests; break;", "    }", "}"])


def _copy(to: Place, source: Place) -> str:
    if to.width <= 64:
        return f"{to.code} = {source.code};"
    return f"wide_copy({to.code}, {to.limbs}, {source.code}, {to.limbs});"
