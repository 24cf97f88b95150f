"""The memory layout of a program's packets and state.

A packet's headers and metadata are one struct (``struct phv``). The part that is cleared for every packet comes first.
Large headers come last, and are cleared only if they become valid without parsing. Registers with the same number of
elements are columns of one array of rows, because programs usually access them with the same index. So a packet
accesses a few neighbouring cache lines and one page, not a line and a page for each register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from serene.embedded.codegen.scope import Scope
from serene.embedded.program.crcs import DEFAULTS, WIDTHS
from serene.embedded.program.errors import UnsupportedProgram
from serene.embedded.program.ir import Array, Field, Header, Table, limbs_of
from serene.embedded.program.limits import MAX_PACKET_BYTES, MOST_VALUES
from serene.embedded.program.memory import CACHE_LINE, element_bytes

SMALL_HEADER_BYTES = 128


def c_field(name: str, field: Field) -> str:
    """The declaration of a field: a scalar, limbs, or a byte string with its length."""
    if field.most_bytes:
        return f"uint32_t {name}_bytes; uint8_t {name}[{field.most_bytes}];"
    if field.width > 64:
        return f"uint64_t {name}[{limbs_of(field.width)}];"
    return f"{_scalar(field.width)} {name};"


def _scalar(width: int) -> str:
    return f"uint{8 * element_bytes(width)}_t"


def is_large(header: Header) -> bool:
    return header.stack is None and header.type.most_bytes > SMALL_HEADER_BYTES


def rows(registers: Sequence[Array]) -> dict[int, list[Array]]:
    """Registers by their number of elements. Within a row the narrow ones come first, so that they share a cache
    line."""
    grouped: dict[int, list[Array]] = {}
    for array in sorted(registers, key=lambda array: (min(array.width, 65), array.id)):
        grouped.setdefault(array.size, []).append(array)
    return grouped


class LayoutWriter:
    """The structs of a program, and the functions that allocate and free its state."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._program = scope.program

    def headers(self) -> str:
        scope, program = self._scope, self._program
        lines = []
        for name, header_type in program.header_types.items():
            names = scope.field_names[name]
            lines.append(f"struct {scope.type(name)} {{")
            lines += [f"    {c_field(names[f.name], f)}" for f in header_type.fields] or ["    uint8_t empty;"]
            lines += ["};", ""]
        singles = [h for h in program.headers.values() if h.stack is None]
        packet = [h for h in singles if not h.metadata]

        def declare(header: Header) -> str:
            return f"    struct {scope.type(header.type.name)} {scope.own_name(header)};"

        lines.append("struct phv {")
        lines += [declare(h) for h in singles if h.metadata]
        lines.append("    uint8_t metadata_end;")
        lines += [f"    uint8_t valid_{scope.own_name(h)};" for h in packet]
        lines += [f"    uint8_t {scope.next_name(stack)};" for stack in program.union_stacks]
        for name, elements in program.stacks.items():
            stack = scope.stack(name)
            if not scope.in_union_stack(name):
                lines.append(f"    uint8_t {scope.next_name(name)};")
            lines.append(f"    uint8_t valid_{stack}[{len(elements)}];")
            # One more element, for writes outside of the stack, which must have no effect.
            lines.append(f"    struct {scope.type(elements[0].type.name)} {stack}[{len(elements) + 1}];")
        lines += [declare(h) for h in packet if not is_large(h)]
        lines.append("    uint64_t cleared_end;    /* the headers below are cleared when they become valid */")
        lines += [declare(h) for h in packet if is_large(h)]
        lines.append("};")
        order = program.json["deparsers"][0]["order"]  # a header may be in it more than once
        emitted = sum(program.header(name).type.most_bytes for name in order)
        if emitted > MAX_PACKET_BYTES:
            raise UnsupportedProgram(f"the deparser emits up to {emitted} bytes; {MAX_PACKET_BYTES} at most")
        lines.append(f"enum {{ MAX_HEADERS = {emitted + 8} }};")
        lines.append(
            "static inline void metadata_clear(struct phv *h) { memset(h, 0, offsetof(struct phv, metadata_end)); }"
        )
        lines.append("static inline void phv_clear(struct phv *h) {")
        lines.append("    memset(h, 0, offsetof(struct phv, cleared_end));")
        lines += [f"    {self._empty('h', h)}" for h in packet if is_large(h) and h.type.variable]
        lines.append("}")
        lines.append("static inline void phv_copy(struct phv *to, const struct phv *from) {")
        lines.append("    memcpy(to, from, offsetof(struct phv, cleared_end));")
        for h in packet:
            if is_large(h):
                name = scope.own_name(h)
                otherwise = f" else {self._empty('to', h)}" if h.type.variable else ""
                lines.append(f"    if (from->valid_{name}) to->{name} = from->{name};{otherwise}")
        lines.append("}")
        return "\n".join(lines)

    def _empty(self, of: str, header: Header) -> str:
        """Empties the varbit field of a large header that was not cleared, because invalid headers may be read."""
        assert header.type.variable is not None
        field = self._scope.field_name(header.name, header.type.variable.name)
        return f"{of}->{self._scope.own_name(header)}.{field}_bytes = 0;"

    def state(self) -> str:
        program, tables = self._program, list(self._program.tables.values())
        grouped = rows(list(program.registers.values()))
        lines = []
        for size, arrays in grouped.items():
            row_bytes = sum(element_bytes(array.width) for array in arrays)
            aligned = f" __attribute__((aligned({CACHE_LINE})))" if row_bytes > CACHE_LINE else ""
            lines.append(f"struct row_{size} {{")
            for array in arrays:
                lines.append(f"    {c_field(self._scope.column(array.name), Field(array.name, array.width))}")
            lines += [f"}}{aligned};", ""]
        lines += [
            "struct state {",
            "    struct runtime runtime;",
            f"    struct table tables[{max(len(tables), 1)}];",
            f"    struct counter_array counters[{max(len(program.counters), 1)}];",
            f"    struct meter_array meters[{max(len(program.meters), 1)}];",
            f"    struct register_array registers[{max(len(program.registers), 1)}];",
            f"    struct profile action_profiles[{max(len(program.action_profiles), 1)}];",
            f"    struct crc crcs[{max(len(program.crcs), 1)}];",
        ]
        lines += [f"    struct row_{size} *rows_{size};" for size in grouped]
        for name in program.value_sets:
            lines.append(f"    struct table {self._scope.value_set(name)};")
        lines.append(f"    struct table *value_sets[{max(len(program.value_sets), 1)}];")
        lines += ["};", "", "static int state_init(struct state *state) {"]
        for table in tables:
            lines += self._table_init(table)
        for array in program.counters.values():
            lines += self._array_init("counters", "struct count", array.id, array.size)
        for array in program.meters.values():
            size = program.tables[array.direct_table].size if array.direct_table else array.size
            lines += self._array_init("meters", "struct meter", array.id, size)
            lines.append(f"    state->meters[{array.id}].counts_bytes = {int(array.kind == 'bytes')};")
        for size, arrays in grouped.items():
            lines.append(f"    if (!(state->rows_{size} = rows_make({size}, sizeof(struct row_{size})))) return 0;")
            for array in arrays:
                member = f"state->rows_{size}->{self._scope.column(array.name)}"
                lines.append(
                    f"    state->registers[{array.id}] = (struct register_array)"
                    f"{{{size}, sizeof {member}, sizeof(struct row_{size}), &{member}}};"
                )
        for profile in program.action_profiles.values():
            most = max((action.limbs for action in profile.actions.values()), default=0)
            lines.append(
                f"    if (!profile_init(&state->action_profiles[{profile.id}], {profile.size}, {most})) return 0;"
            )
        for number, (name, bits) in enumerate(program.value_sets.items()):
            lines.append(f"    state->value_sets[{number}] = &state->{self._scope.value_set(name)};")
            shape = f"{MOST_VALUES}, {limbs_of(bits)}, 0, NULL"
            lines.append(f"    if (!table_init(state->value_sets[{number}], TABLE_EXACT, {shape})) return 0;")
        for number, algorithm in enumerate(program.crcs.values()):
            crc = DEFAULTS[algorithm]
            numbers = ", ".join(f"{int(part):#x}ull" for part in astuple(crc))
            lines.append(f"    state->crcs[{number}] = (struct crc){{{WIDTHS[algorithm]}, {numbers}}};")
        lines += ["    return 1;", "}", "", "static void state_free(struct state *state) {"]
        lines.append(f"    for (int i = 0; i < {len(tables)}; i++) table_free(&state->tables[i]);")
        for kind, count in (("counters", program.counters), ("meters", program.meters)):
            lines.append(f"    for (int i = 0; i < {len(count)}; i++) free(state->{kind}[i].items);")
        lines += [f"    rows_free(state->rows_{size}, {size}, sizeof(struct row_{size}));" for size in grouped]
        lines += [f"    profile_free(&state->action_profiles[{p.id}]);" for p in program.action_profiles.values()]
        lines += [f"    table_free(&state->{self._scope.value_set(name)});" for name in program.value_sets]
        lines.append("}")
        return "\n".join(lines)

    @staticmethod
    def _array_init(kind: str, c_type: str, index: int, size: int) -> list[str]:
        return [
            f"    state->{kind}[{index}].size = {size};",
            f"    if (!(state->{kind}[{index}].items = calloc({max(size, 1)}, sizeof({c_type})))) return 0;",
        ]

    def _table_init(self, table: Table) -> list[str]:
        ranges = []
        for key in table.keys:
            ranges += [str(int(key.match_type == "range"))] * limbs_of(key.width)
        size = table.size if table.keys else 1
        return [
            f"    static const uint8_t ranges_{table.id}[] = {{{', '.join(ranges) or '0'}}};",
            f"    if (!table_init(&state->tables[{table.id}], TABLE_{table.kind.upper()}, {size}, {table.key_limbs}, "
            f"{table.data_limbs}, ranges_{table.id})) return 0;",
        ]
