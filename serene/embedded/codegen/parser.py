"""Generates the parser as labels and gotos: extraction, lookahead, selection, parser errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serene.embedded.codegen.actions import JUMPS, ActionWriter
from serene.embedded.codegen.calculations import MAX_FRAME
from serene.embedded.codegen.expressions import Emitter, Expr, Place, Reader, constant, place_expr
from serene.embedded.codegen.names import identifiers
from serene.embedded.codegen.operands import Operands
from serene.embedded.codegen.scope import Scope
from serene.embedded.codegen.trace import event
from serene.embedded.program.errors import NotBmv2Json, UnsupportedProgram, known, unique, where
from serene.embedded.program.ir import Action, HeaderType, limbs_of, mask

TOO_SHORT, NO_MATCH, STACK_OUT_OF_BOUNDS = "PacketTooShort", "NoMatch", "StackOutOfBounds"
HEADER_TOO_SHORT = "HeaderTooShort"  # BMv2's error for a varbit field above its largest size


class ParserWriter:
    """Generates ``void parse(struct packet *packet)``, which fills the headers, or sets
    standard_metadata.parser_error."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._parser = scope.program.json["parsers"][0]
        states = [state["name"] for state in self._parser["parse_states"]]
        unique(states, "parser state")
        self._labels = identifiers("state", states)
        self._at = {name: at for at, name in enumerate(states)}

    def source(self) -> str:
        lines = [
            *self._extractors(),
            "STAGE_FUNCTION void parse(struct packet *packet) {",
            "    struct phv *const h = &packet->h;",
            "    struct state *const state = packet->state;",
            "    uint32_t error = 0;",
            "    (void)state; (void)h;",
            "    packet->parsed = 0;",
            f"    {event('PARSER', 0)}",
        ]
        init = self._parser.get("init_state")
        if init:
            lines.append(f"    goto {self._label(init)};")
        for state in self._parser["parse_states"]:
            lines += [f"{self._label(state['name'])}: {{", f"    {event('STATE', self._at[state['name']])}"]
            lines += [f"    {line}" for line in self._state(state)]
            lines.append("}")
        failed = event("PARSER_ERROR", "error")
        lines += ["done:", "    (void)error;", f"    TRACED(if (error) {failed})", f"    {event('END', 0)}"]
        if any(f.name == "parser_error" for f in self._scope.program.headers["standard_metadata"].type.fields):
            lines.append("    h->standard_metadata.parser_error = error;")
        return "\n".join([*lines, "}"])

    def _go(self, name: str, to: str | None) -> str:
        """C that jumps to a state. A backward jump counts as a step, and a packet has a limited number of steps.
        Otherwise a state that consumes nothing could loop for ever."""
        if not to:
            return "goto done;"
        label = self._label(to)
        if self._at[to] > self._at[name]:
            return f"goto {label};"
        return f"{{ if (!STEP(packet)) goto done; goto {label}; }}"

    def _label(self, state: str) -> str:
        return known(self._labels, state, "parser state")

    def _error(self, name: str) -> str:
        return f"{{ error = {self._scope.errors.get(name, 0)}; goto done; }}"

    def _need(self, size: str) -> str:
        return f"if (packet->length - packet->parsed < {size}) {self._error(TOO_SHORT)}"

    def _extractors(self) -> list[str]:
        lines = []
        for name, header_type in self._scope.program.header_types.items():
            if not any(h.type.name == name and not h.metadata for h in self._scope.program.headers.values()):
                continue
            lines += [*self._extractor(header_type), ""]
        return lines

    def _extractor(self, header_type: HeaderType) -> list[str]:
        """A function that extracts a header. ``size``: the number of bytes of its varbit field."""
        c_type, names = self._scope.type(header_type.name), self._scope.field_names[header_type.name]
        lines = [f"INLINE void extract_{c_type}(struct {c_type} *to, const uint8_t *data, uint32_t size) {{"]
        at = 0
        for field in header_type.fields:
            target = f"to->{names[field.name]}"
            if field.most_bytes:
                if at % 8:
                    raise UnsupportedProgram(f"header type {header_type.name!r}: a varbit field begins inside a byte")
                lines += [f"    {target}_bytes = size;", f"    memcpy({target}, data + {at // 8}, size);"]
                lines.append("    data += size;")
            elif not field.width:
                lines.append(f"    {target} = 0;")
            elif field.width <= 64:
                lines.append(f"    {target} = load_bits(data, {at}, {field.width});")
            else:
                lines.append(f"    load_wide({target}, data, {at}, {field.width});")
            at += field.width
        return [*lines, "    (void)to; (void)data; (void)size;", "}"]

    def _state(self, state: Mapping[str, Any]) -> list[str]:
        emitter = self._scope.emitter()
        reader = Reader(emitter, self._scope.field_expr, self._no_local, self._special)
        with where(f"parser state {state['name']!r}"):
            for operation in state["parser_ops"]:
                emitter.line("{")
                self._operation(operation, emitter, reader)
                emitter.line("}")
            self._transitions(state, emitter, reader)
        return emitter.lines

    @staticmethod
    def _no_local(index: int) -> Place:
        raise NotBmv2Json(f"action parameter {index} in the parser")

    def _special(self, kind: str, value: Any, emitter: Emitter) -> Expr | None:
        if kind == "lookahead":
            return self._lookahead(value[0], value[1], emitter)
        return self._scope.special(kind, value, emitter)

    def _lookahead(self, offset: int, width: int, emitter: Emitter) -> Expr:
        emitter.line(self._need(str((offset + width + 7) // 8)))
        if not width:
            return constant(0)
        if width <= 64:
            code = f"load_bits(packet->data + packet->parsed, {offset}, {width})"
            return Expr("c", 0, mask(width), (code,), ones=mask(width))
        name = emitter.temporary(limbs_of(width))
        emitter.line(f"load_wide({name}, packet->data + packet->parsed, {offset}, {width});")
        return place_expr(Place(name, width))

    # -- operations ------------------------------------------------------------------------------------------

    def _operation(self, operation: Mapping[str, Any], emitter: Emitter, reader: Reader) -> None:
        op, operands = operation["op"], Operands(operation["parameters"])
        if op == "extract":
            self._extract(operands[0], emitter)
        elif op == "extract_VL":
            self._extract(operands[0], emitter, reader.number(operands[1]))
        elif op == "set":
            emitter.store(self._scope.target(*operands.field(0)), reader.number(operands[1]))
        elif op == "verify":
            emitter.line(f"if (!{reader.truth(operands[0])}) {{ error = {emitter.exact(reader.number(operands[1]))};")
            emitter.line("goto done; }")
        elif op == "shift":
            self._skip(str(min(_constant(operands[0].get("value"), 0), MAX_FRAME + 1)), emitter)
        elif op == "advance":
            bits = emitter.exact(reader.number(operands[0]))
            emitter.line(f"const uint64_t skipped = {bits};")
            emitter.line("if (skipped % 8) " + self._error("ParserInvalidArgument"))
            self._skip("skipped / 8", emitter)
        elif op == "primitive":
            primitive = operands[0]
            if primitive.get("op") in (None, *JUMPS):
                raise NotBmv2Json(f"primitive {primitive.get('op')!r} in the parser")
            for line in ActionWriter(self._scope, Action("parser", 0, (), ())).primitive(primitive):
                emitter.line(line)
        else:
            raise UnsupportedProgram(f"parser operation {op!r} is not supported")

    def _skip(self, size: str, emitter: Emitter) -> None:
        emitter.line(self._need(size))
        emitter.line(f"packet->parsed += {size};")

    def _extract(self, operand: Mapping[str, Any], emitter: Emitter, bits: Expr | None = None) -> None:
        """Extracts a header. ``bits``: the expression for the length of its varbit field."""
        kind, name = operand.get("type"), operand.get("value")
        scope = self._scope
        if kind == "regular":
            header_type, target = scope.packet_header(str(name)).type, scope.header(str(name))
            valid, after = scope.set_valid(str(name)), []
            number = str(scope.header_number(str(name)))
        elif kind in ("stack", "union_stack"):
            stack = str(name) if kind == "stack" else ".".join(name or ())
            header_type, elements = scope.stack_type(stack), scope.program.stacks[stack]
            at = f"h->{scope.next_name(stack)}"
            emitter.line(f"if ({at} >= {len(elements)}) {self._error(STACK_OUT_OF_BOUNDS)}")
            target = f"h->{scope.stack(stack)}[{at}]"
            others = [s for s in scope.stacks_of(name[0]) if s != stack] if isinstance(name, tuple) else []
            valid = [f"h->valid_{scope.stack(stack)}[{at}] = 1;"]
            valid += [f"h->valid_{scope.stack(other)}[{at}] = 0;" for other in others]
            after = [f"{at}++;"]
            numbers = ", ".join(str(scope.header_number(element.name)) for element in elements)
            number = f"((const uint32_t[]){{{numbers}}})[{at}]"
        else:
            raise UnsupportedProgram(f"extracting a {kind!r} is not supported")
        if header_type.bits % 8:
            raise UnsupportedProgram(f"header type {header_type.name!r} is not a whole number of bytes")
        fixed, size = header_type.bits // 8, "0"
        variable = header_type.variable
        if (variable is None) != (bits is None):
            raise UnsupportedProgram(f"header type {header_type.name!r}: extracted without the size it needs")
        if variable is not None and bits is not None:
            size = "size"
            emitter.line(f"const uint64_t varying = {emitter.exact(bits)}, size = varying / 8;")
            emitter.line(f"if (varying % 8) {self._error('ParserInvalidArgument')}")
            emitter.line(f"if (size > MAX_FRAME) {self._error(TOO_SHORT)}")
        emitter.line(self._need(f"{fixed} + {size}"))
        if variable is not None:
            emitter.line(f"if (size > {variable.most_bytes}) {self._error(HEADER_TOO_SHORT)}")
        emitter.line(
            f"extract_{scope.type(header_type.name)}(&{target}, packet->data + packet->parsed, (uint32_t){size});"
        )
        emitter.line(f"TRACED(trace_{scope.type(header_type.name)}(packet, {number}, &{target});)")
        for line in [*valid, f"packet->parsed += {fixed} + {size};", *after]:
            emitter.line(line)

    # -- transitions -----------------------------------------------------------------------------------------

    def _transitions(self, state: Mapping[str, Any], emitter: Emitter, reader: Reader) -> None:
        keys: list[tuple[str, int]] = []  # (C, number of bits) pieces of at most 64 bits
        for element in state["transition_key"]:
            node = reader.number(element)
            width = node.place.width if node.place else node.bits
            self._add_key(node, width, keys, emitter)
        if keys:
            emitter.line(event("SELECT", self._at[state["name"]], *(name for name, _ in keys)))
        for transition in state["transitions"]:
            kind, target = transition.get("type"), transition["next_state"]
            kind = kind or ("default" if transition.get("value") == "default" else "hexstr")
            go = self._go(state["name"], target)
            if kind == "default":
                emitter.line(go)
                return
            if kind == "hexstr":
                emitter.line(f"if ({self._matches(transition, keys)}) {go}")
            elif kind == "parse_vset":
                emitter.line(f"if ({self._in_value_set(transition, keys, emitter)}) {go}")
            else:
                raise UnsupportedProgram(f"a parser transition of type {kind!r} is not supported")
        emitter.line(self._error(NO_MATCH) if state["transitions"] else "goto done;")

    @staticmethod
    def _add_key(node: Expr, width: int, keys: list[tuple[str, int]], emitter: Emitter) -> None:
        """Appends a key, split into pieces of at most 64 bits, most significant first."""
        if width <= 64:
            name = f"key_{len(keys)}"
            emitter.line(f"const uint64_t {name} = {emitter.exact(node)};")
            keys.append((name, width))
            return
        if width % 8:
            raise UnsupportedProgram(f"selecting on {width} bits is not supported (a multiple of 8 above 64)")
        array = emitter.wide_exact(node, limbs_of(width))
        for limb in reversed(range(limbs_of(width))):
            keys.append((f"{array}[{limb}]", min(64, width - 64 * limb)))

    @staticmethod
    def _pieces(text: object, keys: Sequence[tuple[str, int]]) -> list[int]:
        """A transition's value, split into the keys' pieces. Each key has whole bytes in it."""
        value, pieces = _constant(text), []
        for _, width in reversed(keys):
            size = 8 * ((width + 7) // 8)
            pieces.append(value & mask(size))
            value >>= size
        return pieces[::-1]

    def _matches(self, transition: Mapping[str, Any], keys: Sequence[tuple[str, int]]) -> str:
        values = self._pieces(transition.get("value"), keys)
        masks = self._pieces(transition["mask"], keys) if transition.get("mask") else [mask(64)] * len(keys)
        tests = []
        for (name, width), value, keep in zip(keys, values, masks, strict=True):
            keep &= mask(width)
            if keep == mask(width):
                tests.append(f"{name} == {value:#x}ull")
            elif keep:
                tests.append(f"({name} & {keep:#x}ull) == {value & keep:#x}ull")
        return " && ".join(tests) or "1"

    def _in_value_set(self, transition: Mapping[str, Any], keys: Sequence[tuple[str, int]], emitter: Emitter) -> str:
        name = transition.get("value")
        bits = known(self._scope.program.value_sets, name, "value set")
        if bits != sum(width for _, width in keys):
            raise NotBmv2Json(f"value set {name!r} has {bits} bits, the key {sum(width for _, width in keys)}")
        masks = self._pieces(transition["mask"], keys) if transition.get("mask") else [mask(64)] * len(keys)
        array = emitter.temporary(limbs_of(bits))
        emitter.line(f"memset({array}, 0, sizeof {array});")
        at = 0
        for (code, width), keep in zip(reversed(keys), reversed(masks), strict=True):
            part = f"({code} & {keep & mask(width):#x}ull)"
            emitter.line(f"{array}[{at // 64}] |= {part} << {at % 64};")
            if at % 64 + width > 64:
                emitter.line(f"{array}[{at // 64 + 1}] |= {part} >> {64 - at % 64};")
            at += width
        table = f"state->{self._scope.value_set(str(name))}"
        return f"table_probe(&{table}, {array}, {limbs_of(bits)})"


def _constant(value: object, base: int = 16) -> int:
    try:
        number = int(str(value), base)
    except ValueError:
        raise NotBmv2Json(f"{value!r} is not a number") from None
    if number < 0:
        raise NotBmv2Json(f"{value!r} is negative")
    return number
