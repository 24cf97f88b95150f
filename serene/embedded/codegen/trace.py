"""Generates the statements that record a packet's processing. They exist only in a library compiled with -DTRACE
(runtime/trace.h). Events refer to the program's parts by number; trace/steps.py uses the same numbers."""

from __future__ import annotations

from serene.embedded.codegen.expressions import Place
from serene.embedded.codegen.scope import Scope
from serene.embedded.program.ir import Field, HeaderType

MOST_WIDE_BITS = 128  # of a wider number, only the most significant bits are recorded
SIGNED = 1 << 32  # added to the bits of a log_msg's value if it is in two's complement


def words(code: str, width: int) -> list[str]:
    """C for the 64-bit words that record a number: one word up to 64 bits, else two."""
    if width <= 64:
        return [f"(uint64_t){code}"]
    return [f"TRACE_TOP({code}, {width}).limbs[{i}]" for i in range(2)]


def word_count(field: Field) -> int:
    return 2 if field.width > 64 else 1


def event(kind: str, number: str | int, *values: str) -> str:
    """A C statement that records an event; ``packet`` has to be in scope."""
    if values:
        return f"TRACE_EVENT(packet, TRACE_{kind}, {number}, {', '.join(values)});"
    return f"TRACE_POINT(packet, TRACE_{kind}, {number});"


def place_words(place: Place) -> list[str]:
    return words(place.code, place.width)


def trace_headers(scope: Scope) -> str:
    """A C function for each header type in packets that records its fields; of a varbit field, only its length."""
    packet_types = {header.type.name for header in scope.program.headers.values() if not header.metadata}
    lines = ["#ifdef TRACE"]
    for name, header_type in scope.program.header_types.items():
        if name in packet_types:
            lines += _trace_header(scope, header_type)
    return "\n".join([*lines, "#endif"])


def _trace_header(scope: Scope, header_type: HeaderType) -> list[str]:
    c_type, names = scope.type(header_type.name), scope.field_names[header_type.name]
    count = sum(word_count(field) for field in header_type.fields)
    lines = [
        f"static void trace_{c_type}(struct packet *packet, uint32_t id, const struct {c_type} *from) {{",
        f"    uint64_t *to = trace_room(&packet->state->runtime, TRACE_HEADER, id, {count});",
        "    if (!to) return;",
    ]
    at = 0
    for field in header_type.fields:
        code = f"from->{names[field.name]}"
        for word in words(f"{code}_bytes" if field.most_bytes else code, field.width):
            lines.append(f"    to[{at}] = {word};")
            at += 1
    return [*lines, "    (void)to; (void)from;", "}"]
