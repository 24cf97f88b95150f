"""From a program to the C file that runs it.

The file is: a packet's headers and metadata as structs (``struct phv``), the program's state, one function per
action, the parser, the two pipelines as labels and gotos (as p4c left them), checksums and the deparser. Everything
that is the same for all programs is in runtime/, included before and after.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from serene.switch.actions import ActionWriter
from serene.switch.expressions import Emitter, Expr, Place, Reader, constant, limbs_of, mask, place_expr
from serene.switch.parser import ParserWriter
from serene.switch.program import Header, NotBmv2Json, Pipeline, Program, Table, UnsupportedProgram

SMALL_HEADER_BYTES = 128  # larger ones are cleared when they are made valid, not for every packet
CHECKSUMS = ("csum16", "xor16", "crc16", "crc32", "crcCCITT", "identity")


def identifier(name: str) -> str:
    """A C identifier that a reader recognises the P4 name in."""
    text = re.sub(r"\W", "_", name)
    return text if text and not text[0].isdigit() else "_" + text


class Names:
    """The C names of a program's objects, unique even where P4 names differ in punctuation only."""

    def __init__(self) -> None:
        self._taken: set[str] = {"h", "d", "i", "packet", "state", "valid", "standard_metadata"}

    def unique(self, name: str) -> str:
        base = text = identifier(name)
        count = 1
        while text in self._taken:
            count += 1
            text = f"{base}_{count}"
        self._taken.add(text)
        return text


class Generator:
    """Writes one program. ``source()`` is the result; everything else serves the writers of its parts."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.constants: dict[tuple[int, int], str] = {}
        names = Names()
        self._header_names = {
            name: "standard_metadata" if name == "standard_metadata" else names.unique(name)
            for name, header in program.headers.items()
            if header.stack is None
        }
        self._stack_names = {name: names.unique(name) for name in program.stacks}
        self._type_names = {name: names.unique(name) for name in program.header_types}
        self.field_names: dict[str, dict[str, str]] = {}
        for header_type in program.header_types.values():
            taken = Names()
            self.field_names[header_type.name] = {f.name: taken.unique(f.name) for f in header_type.fields}
        self._registers = {name: names.unique("register_" + name) for name in program.registers}
        self._action_names = {action.id: names.unique("action_" + action.name) for action in program.actions}
        self.calculations = {item["name"]: item for item in program.json.get("calculations") or ()}
        self.field_lists = {item["id"]: item for item in program.json.get("field_lists") or ()}
        self.errors = dict(program.json.get("errors") or ())

    # -- names of things in C --------------------------------------------------------------------------------

    def header(self, name: str, of: str = "h") -> str:
        header = self._known_header(name)
        if header.stack is not None:
            return f"{of}->{self._stack_names[header.stack]}[{header.index}]"
        return f"{of}->{self._header_names[name]}"

    def valid(self, name: str, of: str = "h") -> str:
        header = self._known_header(name)
        if header.metadata:
            return "1"
        if header.stack is not None:
            return f"{of}->valid_{self._stack_names[header.stack]}[{header.index}]"
        return f"{of}->valid_{self._header_names[name]}"

    def stack(self, name: str) -> str:
        if name not in self._stack_names:
            raise UnsupportedProgram(f"header stack {name!r} is not known (a stack of unions?)")
        return self._stack_names[name]

    def stack_type(self, name: str) -> str:
        return self.program.stacks[name][0].type.name

    def type(self, name: str) -> str:
        return self._type_names[name]

    def _known_header(self, name: str) -> Header:
        if name not in self.program.headers:
            raise NotBmv2Json(f"there is no header {name!r}")
        return self.program.headers[name]

    def place(self, header: str, field: str, of: str = "h") -> Place:
        if field == "$valid$":
            return Place(self.valid(header, of), 1)
        declared = self.program.field(header, field)
        name = self.field_names[self._known_header(header).type.name][field]
        return Place(f"{self.header(header, of)}.{name}", declared.width, declared.signed)

    def register(self, name: str) -> Place:
        """The place of the element at C index ``at`` of a register array."""
        array = self.program.registers[name]
        return Place(f"state->{self._registers[name]}[at]", array.width)

    def action(self, id_: int) -> str:
        return self._action_names[id_]

    def special(self, kind: str, value: Any, emitter: Emitter) -> Expr | None:
        """Operands that only header stacks have."""
        if kind == "stack_field":  # a field of the last extracted element
            stack, name = self.stack(value[0]), value[1]
            header_type = self.program.header_types[self.stack_type(value[0])]
            declared = next(f for f in header_type.fields if f.name == name)
            at = f"h->{stack}[h->next_{stack} ? h->next_{stack} - 1 : 0]"
            code = f"{at}.{self.field_names[header_type.name][name]}"
            return place_expr(Place(code, declared.width, declared.signed))
        if kind == "last_stack_index":
            stack = self.stack(value["right"]["value"])
            return Expr("c", 0, mask(32), (f"((uint64_t)h->next_{stack} - 1 & 0xffffffffull)",), ones=mask(32))
        if kind == "size":
            return constant(len(self.program.stacks[value["right"]["value"]]))
        if kind == "access_field":
            return self.element_field(value, emitter)
        return None

    def element_field(self, value: Mapping[str, Any], emitter: Emitter) -> Expr:
        """A field of a stack's element at an index known only at run time."""
        node = value["left"]["value"]
        if node.get("op") != "dereference_header_stack":
            raise UnsupportedProgram(f"field access to {node.get('op')!r} is not supported")
        name = node["left"]["value"]
        header_type = self.program.header_types[self.stack_type(name)]
        declared = header_type.fields[value["right"]]
        index = emitter.exact(self.reader(emitter).number(node["right"]))
        at = f"h->{self.stack(name)}[{index} < {len(self.program.stacks[name])} ? {index} : 0]"
        code = f"{at}.{self.field_names[header_type.name][declared.name]}"
        return place_expr(Place(code, declared.width, declared.signed))

    def reader(self, emitter: Emitter, local: Any = None) -> Reader:
        def no_local(index: int) -> Place:
            raise NotBmv2Json(f"action parameter {index} outside of an action")

        return Reader(emitter, self.place, local or no_local, self.special)

    def emitter(self) -> Emitter:
        return Emitter(self.constants)

    # -- the file --------------------------------------------------------------------------------------------

    def source(self) -> str:
        body = [
            self._actions(),
            ParserWriter(self).source(),
            *(self._pipeline(pipeline) for pipeline in self.program.pipelines.values()),
            self._checksums("verify_checksums", "verify"),
            self._checksums("update_checksums", "update"),
            self._deparser(),
            self._copy_fields(),
            self._learn(),
        ]
        constants = [
            f"static const uint64_t {name}[{limbs}] = "
            f"{{{', '.join(f'{(value >> (64 * i)) & mask(64):#x}ull' for i in range(limbs))}}};"
            for (value, limbs), name in self.constants.items()
        ]
        runtime_before = ("wide.h", "switch.h", "table.h", "stateful.h", "checksum.h")
        runtime_after = ("pipeline.h", "ports.h", "api.h")
        parts = [
            f"/* Generated from {self.program.name}. */",
            "\n".join(f'#include "{name}"' for name in runtime_before),
            self._headers(),
            self._state(),
            "\n".join(constants),
            *body,
            "\n".join(f'#include "{name}"' for name in runtime_after),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    @staticmethod
    def _c_field(name: str, width: int) -> str:
        if width > 64:
            return f"uint64_t {name}[{limbs_of(width)}];"
        size = next(bits for bits in (8, 16, 32, 64) if width <= bits)
        return f"uint{size}_t {name};"

    def _headers(self) -> str:
        lines = []
        for name, header_type in self.program.header_types.items():
            lines.append(f"struct {self.type(name)} {{")
            names = self.field_names[name]
            lines += [f"    {self._c_field(names[f.name], f.width)}" for f in header_type.fields]
            lines += ["};", ""] if header_type.fields else ["    uint8_t empty;", "};", ""]
        singles = [h for h in self.program.headers.values() if h.stack is None]
        small = [h for h in singles if not h.metadata and h.type.bits <= 8 * SMALL_HEADER_BYTES]
        large = [h for h in singles if not h.metadata and h.type.bits > 8 * SMALL_HEADER_BYTES]
        lines.append("struct phv {")
        declare = "    struct {type} {name};".format
        for h in singles:
            if h.metadata:
                lines.append(declare(type=self.type(h.type.name), name=self._header_names[h.name]))
        lines.append("    uint8_t metadata_end;")
        lines += [f"    uint8_t valid_{self._header_names[h.name]};" for h in singles if not h.metadata]
        for name, elements in self.program.stacks.items():
            stack = self._stack_names[name]
            lines.append(f"    uint8_t next_{stack}, valid_{stack}[{len(elements)}];")
            lines.append(f"    struct {self.type(elements[0].type.name)} {stack}[{len(elements)}];")
        lines += [declare(type=self.type(h.type.name), name=self._header_names[h.name]) for h in small]
        lines.append("    uint64_t cleared_end;    /* what lies below is cleared when it is made valid */")
        lines += [declare(type=self.type(h.type.name), name=self._header_names[h.name]) for h in large]
        lines.append("};")
        emitted = [h.type.bits // 8 for h in self.program.headers.values() if not h.metadata]
        lines.append(f"enum {{ MAX_HEADERS = {sum(emitted) + 8} }};")
        lines.append(
            "static inline void metadata_clear(struct phv *h) { memset(h, 0, offsetof(struct phv, metadata_end)); }\n"
            "static inline void phv_clear(struct phv *h) { memset(h, 0, offsetof(struct phv, cleared_end)); }"
        )
        return "\n".join(lines)

    def large(self, header: Header) -> bool:
        return header.stack is None and header.type.bits > 8 * SMALL_HEADER_BYTES

    def _state(self) -> str:
        program, tables = self.program, list(self.program.tables.values())
        lines = [
            "/* What a pass through the pipeline asks for beyond its headers. */",
            "struct requests {",
            "    uint8_t exit, clone, digest, resubmit, recirculate;",
            "    uint32_t clone_session, clone_fields, digest_list, resubmit_fields, recirculate_fields, truncate;",
            "};",
            "",
            "struct packet {",
            "    struct phv h;",
            "    struct state *state;",
            "    const uint8_t *data;     /* as received */",
            "    uint32_t length, parsed;",
            "    struct requests requests;",
            "};",
            "",
            "struct state {",
            "    struct runtime runtime;",
            f"    struct table tables[{max(len(tables), 1)}];",
            f"    struct counter_array counters[{max(len(program.counters), 1)}];",
            f"    struct meter_array meters[{max(len(program.meters), 1)}];",
            f"    struct register_array registers[{max(len(program.registers), 1)}];",
        ]
        for name, array in program.registers.items():
            c_type = self._c_field("x", array.width).split()[0]
            limbs = (
                f"(*{self._registers[name]})[{limbs_of(array.width)}]"
                if array.width > 64
                else (f"*{self._registers[name]}")
            )
            lines.append(f"    {c_type} {limbs};")
        for name, bits in program.value_sets.items():
            lines.append(f"    struct table {self.value_set(name)};    /* {bits} bits */")
        lines += ["};", "", "static int state_init(struct state *state) {"]
        for table in tables:
            lines += self._table_init(table)
        for array in program.counters.values():
            lines += self._array_init("counters", "struct count", array.id, array.size)
        for array in program.meters.values():
            size = program.tables[array.direct_table].size if array.direct_table else array.size
            lines += self._array_init("meters", "struct meter", array.id, size)
            lines.append(f"    state->meters[{array.id}].counts_bytes = {int(array.kind == 'bytes')};")
        for name, array in program.registers.items():
            target = f"state->{self._registers[name]}"
            lines += [
                f"    if (!({target} = calloc({array.size}, sizeof *{target}))) return 0;",
                f"    state->registers[{array.id}] =",
                f"        (struct register_array){{{array.size}, sizeof *{target}, {target}}};",
            ]
        for name, bits in program.value_sets.items():
            lines.append(
                f"    if (!table_init(&state->{self.value_set(name)}, TABLE_EXACT, 1024, {limbs_of(bits)}, 0, NULL)) "
                "return 0;"
            )
        lines += ["    return 1;", "}", "", "static void state_free(struct state *state) {"]
        lines.append(f"    for (int i = 0; i < {len(tables)}; i++) table_free(&state->tables[i]);")
        for kind, count in (
            ("counters", program.counters),
            ("meters", program.meters),
            ("registers", program.registers),
        ):
            lines.append(f"    for (int i = 0; i < {len(count)}; i++) free(state->{kind}[i].items);")
        lines += [f"    table_free(&state->{self.value_set(name)});" for name in program.value_sets]
        lines.append("}")
        return "\n".join(lines)

    @staticmethod
    def _array_init(kind: str, c_type: str, index: int, size: int) -> list[str]:
        return [
            f"    state->{kind}[{index}].size = {size};",
            f"    if (!(state->{kind}[{index}].items = calloc({max(size, 1)}, sizeof({c_type})))) return 0;",
        ]

    def value_set(self, name: str) -> str:
        return f"value_set_{identifier(name)}"

    def _table_init(self, table: Table) -> list[str]:
        limbs = sum(limbs_of(key.width) for key in table.keys)
        data = max((self.data_limbs(action.parameters) for action in table.actions.values()), default=0)
        if table.kind == "lpm" and limbs > 8:
            raise UnsupportedProgram(f"table {table.name!r}: an lpm key of more than 512 bits is not supported")
        ranges = []
        for key in table.keys:
            if key.match_type == "range" and key.width > 64:
                raise UnsupportedProgram(f"table {table.name!r}: a range of more than 64 bits is not supported")
            ranges += [str(int(key.match_type == "range"))] * limbs_of(key.width)
        size = table.size if table.keys else 1
        return [
            f"    static const uint8_t ranges_{table.id}[] = {{{', '.join(ranges) or '0'}}};",
            f"    if (!table_init(&state->tables[{table.id}], TABLE_{table.kind.upper()}, {size}, {limbs}, {data}, "
            f"ranges_{table.id})) return 0;",
            f"    state->tables[{table.id}].standard.action = UINT32_MAX;",
        ]

    @staticmethod
    def data_limbs(parameters: Any) -> int:
        return sum(limbs_of(parameter.width) for parameter in parameters)

    def _actions(self) -> str:
        return "\n\n".join(ActionWriter(self, action).source() for action in self.program.actions)

    # -- pipelines -------------------------------------------------------------------------------------------

    def _pipeline(self, pipeline: Pipeline) -> str:
        labels = {table.name: f"table_{table.id}" for table in pipeline.tables}
        for index, conditional in enumerate(pipeline.conditionals):
            labels[conditional.name] = f"condition_{index}"

        def go(name: str | None) -> str:
            return f"goto {labels[name]};" if name else "return;"

        lines = [
            f"static void {pipeline.name}(struct packet *packet) {{",
            "    struct phv *const h = &packet->h;",
            "    struct state *const state = packet->state;",
            "    (void)h; (void)state;",
            f"    {go(pipeline.init)}",
        ]
        for table in pipeline.tables:
            lines += [f"{labels[table.name]}: {{  /* {table.name} */", *self._apply(table, go), "}"]
        for conditional in pipeline.conditionals:
            emitter = self.emitter()
            test = self.reader(emitter).truth(conditional.expression)
            lines += [f"{labels[conditional.name]}: {{", *(f"    {line}" for line in emitter.lines)]
            lines += [f"    if ({test}) {go(conditional.true_next)}", f"    {go(conditional.false_next)}", "}"]
        return "\n".join([*lines, "}"])

    def _apply(self, table: Table, go: Any) -> list[str]:
        fixed = table.default_action if not table.keys and table.const_default else None
        at = f"state->tables[{table.id}]"
        lines = []
        if fixed and not table.with_counters and not fixed[0].parameters:
            lines.append(f"    {self.action(fixed[0].id)}(packet, NULL);")
            lines.append("    if (packet->requests.exit) return;")
            return [*lines, f"    {go(self._next(table, fixed[0].name, False))}"]
        if table.keys:
            lines += self._key(table)
            limbs = sum(limbs_of(key.width) for key in table.keys)
            lines.append(f"    struct entry *entry = table_lookup(&{at}, TABLE_{table.kind.upper()}, key, {limbs});")
        else:
            lines.append("    struct entry *entry = NULL;")
        lines += ["    const int hit = entry != NULL;", "    (void)hit;", f"    if (!hit) entry = &{at}.standard;"]
        if table.with_counters:
            lines += ["    entry->packets++;", "    entry->bytes += packet->length;"]
        if table.direct_meter:
            lines += self._direct_meter(table)
        lines.append("    switch (entry->action) {")
        for action in table.actions.values():
            call = f"{self.action(action.id)}(packet, table_data(&{at}, entry));"
            lines.append(f"    case {action.id}: {call} break;")
        lines += ["    default: break;", "    }", "    if (packet->requests.exit) return;"]
        if "__HIT__" in table.next_tables:
            lines += [f"    if (hit) {go(table.next_tables['__HIT__'])}", f"    {go(table.next_tables['__MISS__'])}"]
            return lines
        if len({self._next(table, name, False) for name in table.actions} | {table.base_default_next}) == 1:
            return [*lines, f"    {go(table.base_default_next)}"]
        lines.append("    switch (entry->action) {")
        for action in table.actions.values():
            lines.append(f"    case {action.id}: {go(self._next(table, action.name, False))}")
        return [*lines, f"    default: {go(table.base_default_next)}", "    }"]

    @staticmethod
    def _next(table: Table, action: str, hit: bool) -> str | None:
        if "__MISS__" in table.next_tables:
            return table.next_tables["__HIT__" if hit else "__MISS__"]
        return table.next_tables.get(action, table.base_default_next)

    def _key(self, table: Table) -> list[str]:
        emitter = self.emitter()
        total = sum(limbs_of(key.width) for key in table.keys)
        emitter.line(f"uint64_t key[{total}];")
        at = 0
        for key in table.keys:
            place = self.place(*key.target)
            if key.width <= 64:
                keep = f" & {key.mask:#x}ull" if key.mask is not None else ""
                emitter.line(f"key[{at}] = {place.code}{keep};")
            else:
                if key.mask is not None:
                    raise UnsupportedProgram(f"table {table.name!r}: a masked key of {key.width} bits is not supported")
                emitter.line(f"wide_copy(key + {at}, {place.limbs}, {place.code}, {place.limbs});")
            at += limbs_of(key.width)
        return [f"    {line}" for line in emitter.lines]

    def _direct_meter(self, table: Table) -> list[str]:
        meter = self.program.meters[table.direct_meter or ""]
        target = next(item["result_target"] for item in self.program.json["meter_arrays"] if item["name"] == meter.name)
        place = self.place(*target)
        index = f"entry - state->tables[{table.id}].entries"
        return [
            f"    if (hit) {place.code} = meter_execute(&state->meters[{meter.id}].items[{index}], "
            f"{int(meter.kind == 'bytes')}, packet->length, "
            "(now_ns() - state->runtime.started_ns) / 1000);"
        ]

    # -- checksums, deparser, field lists, digests -----------------------------------------------------------

    def hash_bytes(self, name: str, reader: Reader, emitter: Emitter) -> tuple[str, str]:
        """Lays a calculation's input out in ``bytes``; C for its algorithm's call and for its size."""
        calculation = self.calculations[name]
        algorithm = calculation["algo"]
        if algorithm not in CHECKSUMS:
            raise UnsupportedProgram(
                f"calculation {name!r}: algorithm {algorithm!r} is not supported (supported: {', '.join(CHECKSUMS)})"
            )
        pieces: list[Expr] = []
        payload = False
        for element in calculation["input"]:
            if element["type"] == "header":
                header = self.program.headers[element["value"]]
                pieces += [place_expr(self.place(header.name, f.name)) for f in header.type.fields]
            elif element["type"] == "payload":
                payload = True
            elif element["type"] == "hexstr":
                width = element.get("bitwidth", 8 * ((len(element["value"]) - 1) // 2))
                pieces.append(Expr("&", 0, mask(width), (constant(int(element["value"], 16)), constant(mask(width)))))
            else:
                pieces.append(reader.number(element))
        bits = sum(piece.bits for piece in pieces)
        size = (bits + 7) // 8
        if payload and bits % 8:
            raise UnsupportedProgram(f"calculation {name!r}: a payload after a broken byte is not supported")
        emitter.line(f"uint8_t bytes[{size + 8}{' + MAX_FRAME' if payload else ''}];")
        emitter.line(f"memset(bytes, 0, {size + 8});")
        at = 0
        for piece in pieces:
            width = piece.bits if piece.place is None else piece.place.width
            if width <= 64:
                emitter.line(f"store_bits(bytes, {at}, {width}, {emitter.narrow(piece, width)[0]});")
            else:
                emitter.line(f"store_wide(bytes, {at}, {width}, {emitter.wide(piece, limbs_of(width))});")
            at += width
        length = str(size)
        if payload:
            emitter.line("uint32_t payload = packet->length - packet->parsed;")
            emitter.line(f"memcpy(bytes + {size}, packet->data + packet->parsed, payload);")
            length = f"{size} + payload"
        return f"checksum_{algorithm}(bytes, {length})", length

    def _checksums(self, function: str, which: str) -> str:
        lines = [
            f"static void {function}(struct packet *packet) {{",
            "    struct phv *const h = &packet->h;",
            "    (void)h;",
        ]
        for item in self.program.json.get("checksums") or ():
            if not item.get(which, which == "update"):
                continue
            emitter = self.emitter()
            reader = self.reader(emitter)
            condition = reader.truth(item["if_cond"]) if item.get("if_cond") else "1"
            before, emitter.lines = emitter.lines, []
            call, _ = self.hash_bytes(item["calculation"], reader, emitter)
            target = self.place(*item["target"])
            if which == "verify":
                emitter.line(f"if (({call} & {mask(target.width):#x}ull) != {target.code})")
                emitter.line("    h->standard_metadata.checksum_error = 1;")
            else:
                emitter.store(target, Expr("c", 0, mask(64), (call,)))
            lines += ["    {", *(f"        {line}" for line in before), f"        if ({condition}) {{"]
            lines += [*(f"            {line}" for line in emitter.lines), "        }", "    }"]
        return "\n".join([*lines, "}"])

    def _deparser(self) -> str:
        deparser = self.program.json["deparsers"][0]
        lines = [
            "/* Writes the valid headers in order; their length in bytes. */",
            "static uint32_t deparse(struct packet *packet, uint8_t *to) {",
            "    struct phv *const h = &packet->h;",
            "    uint32_t at = 0;",
            "    (void)h;",
        ]
        for name in deparser["order"]:
            header = self.program.headers[name]
            if header.type.bits % 8:
                raise UnsupportedProgram(f"header {name!r} is not a whole number of bytes")
            lines.append(f"    if ({self.valid(name)}) {{")
            at = 0
            for field in header.type.fields:
                place = self.place(name, field.name)
                if field.width <= 64:
                    lines.append(f"        store_bits(to + at, {at}, {field.width}, (uint64_t){place.code});")
                else:
                    lines.append(f"        store_wide(to + at, {at}, {field.width}, {place.code});")
                at += field.width
            lines += [f"        at += {at // 8};", "    }"]
        return "\n".join([*lines, "    return at;", "}"])

    def _copy_fields(self) -> str:
        lines = [
            "static void copy_fields(uint32_t list, struct phv *to, const struct phv *from) {",
            "    (void)to; (void)from;",
            "    switch (list) {",
        ]
        for id_, item in self.field_lists.items():
            lines.append(f"    case {id_}:")
            for element in item["elements"]:
                if element["type"] == "field":
                    header, field = element["value"]
                    to, source = (self.place(header, field, of) for of in ("to", "from"))
                    copy = (
                        f"{to.code} = {source.code};"
                        if to.width <= 64
                        else (f"wide_copy({to.code}, {to.limbs}, {source.code}, {to.limbs});")
                    )
                    lines.append(f"        {copy}")
                elif element["type"] == "header":
                    name = element["value"]
                    lines.append(f"        {self.header(name, 'to')} = {self.header(name, 'from')};")
                else:
                    raise UnsupportedProgram(f"field list {item['name']!r}: a {element['type']!r} is not supported")
            lines.append("        break;")
        return "\n".join([*lines, "    default: break;", "    }", "}"])

    def _learn(self) -> str:
        lines = [
            "static void learn(struct packet *packet, uint32_t list) {",
            "    struct phv *const h = &packet->h;",
            "    struct ring *digests = &packet->state->runtime.digests;",
            "    (void)h;",
            "    switch (list) {",
        ]
        for id_, (_, fields) in self.program.digests.items():
            places = [self.place(*field) for field in fields]
            total = sum(place.limbs for place in places)
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
                "        break;",
                "    }",
            ]
        return "\n".join([*lines, "    default: (void)digests; break;", "    }", "}"])


def generate(program: Program) -> str:
    """The C source of a program; raises UnsupportedProgram, naming what the switch lacks."""
    return Generator(program).source()
