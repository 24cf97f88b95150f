"""Generates a C function for each action: one or a few statements for each primitive, and gotos for jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from serene.embedded.codegen.calculations import CalculationWriter
from serene.embedded.codegen.expressions import Expr, Place, binary, constant
from serene.embedded.codegen.operands import STACKS, Operand, Operands, operand_value
from serene.embedded.codegen.scope import Scope
from serene.embedded.codegen.trace import SIGNED, event, place_words
from serene.embedded.program.errors import NotBmv2Json, UnsupportedProgram, known, where
from serene.embedded.program.ir import Action, HeaderType, limbs_of, mask
from serene.errors import choices


@dataclass(frozen=True)
class HeaderPlace:
    """A header in C: conditions that it exists and is valid, its bytes, and statements that make it valid."""

    name: str
    type: HeaderType
    there: str
    valid: str
    code: str
    set_valid: str


class ActionWriter:
    """Generates one action: ``void f(struct packet *packet, const uint64_t *d)``, where d is the entry's action
    data."""

    def __init__(self, scope: Scope, action: Action) -> None:
        self._scope = scope
        self._action = action
        self._emitter = scope.emitter()
        self._at = 0  # the primitive being written, for error messages
        self._reader = scope.reader(self._emitter, self._parameter)

    def _parameter(self, index: int) -> Place:
        parameters = self._action.parameters
        if index >= len(parameters):
            raise NotBmv2Json(f"there is no parameter {index}: the action has {len(parameters)}")
        at = sum(limbs_of(parameter.width) for parameter in parameters[:index])
        width = parameters[index].width
        return Place(f"d[{at}]" if width <= 64 else f"(d + {at})", width)

    def source(self) -> str:
        primitives = self._action.primitives
        jumps = [(at, Operands(p["parameters"])) for at, p in enumerate(primitives) if p["op"] in JUMPS]
        targets = {operands.integer(len(operands) - 1) for _, operands in jumps if len(operands)}
        if max(targets, default=0) > len(primitives):
            raise NotBmv2Json(f"a jump to primitive {max(targets)}; the action has {len(primitives)} primitives")
        lines = [
            f"static void {self._scope.action(self._action.id)}(struct packet *packet, const uint64_t *d) {{",
            "    struct phv *const h = &packet->h;",
            "    struct state *const state = packet->state;",
            "    (void)h; (void)state; (void)d;",
        ]
        for index, primitive in enumerate(primitives):
            if index in targets:
                lines.append(f"at_{index}:;")
            self._at = index
            with where(f"primitive {index} ({primitive['op']})"):
                lines += ["    {", *(f"        {line}" for line in self.primitive(primitive)), "    }"]
        if len(primitives) in targets:
            lines.append(f"at_{len(primitives)}:;")
        return "\n".join([*lines, "}"])

    def primitive(self, primitive: Mapping[str, Any]) -> list[str]:
        """The statements of one primitive."""
        self._emitter.lines = []
        write = PRIMITIVES.get(primitive["op"])
        if write is None:
            names = choices(sorted(PRIMITIVES))
            raise UnsupportedProgram(f"primitive {primitive['op']!r} is not supported (supported: {names})")
        write(self, Operands(primitive["parameters"]))
        return self._emitter.lines

    # -- operands --------------------------------------------------------------------------------------------

    def _number(self, operand: Operand) -> Expr:
        return self._reader.number(operand)

    def _small(self, operand: Operand, bits: int = 32) -> str:
        """C for the low bits of an operand: an index, a session, a length."""
        return self._emitter.cut(self._number(operand), bits)

    def _target(self, operand: Operand) -> Place:
        kind = operand["type"]
        if kind == "field":
            return self._scope.target(*operand["value"])
        if kind in ("stack_field", "expression"):
            place: Place | None = self._number(operand).place
            if place is not None and place.writable:
                return place
        raise UnsupportedProgram(f"assigning to a {kind!r} is not supported")

    def _line(self, text: str) -> None:
        self._emitter.line(text)

    # -- primitives ------------------------------------------------------------------------------------------

    def assign(self, operands: Operands) -> None:
        self._emitter.store(self._target(operands[0]), self._number(operands[1]))

    def add_to_field(self, operands: Operands) -> None:
        self._change("+", operands)

    def subtract_from_field(self, operands: Operands) -> None:
        self._change("-", operands)

    def _change(self, op: str, operands: Operands) -> None:
        value = binary(op, self._number(operands[0]), self._number(operands[1]))
        self._emitter.store(self._target(operands[0]), value)

    def assign_varbit(self, operands: Operands) -> None:
        (to, to_field), (source, source_field) = operands.field(0), operands.field(1)
        field = self._scope.program.field
        size = min(field(to, to_field).most_bytes, field(source, source_field).most_bytes)
        if not size:
            raise NotBmv2Json("a field that is not a varbit field")
        names = self._scope.field_name
        left = f"{self._scope.header(to)}.{names(to, to_field)}"
        right = f"{self._scope.header(source)}.{names(source, source_field)}"
        self._line(f"{left}_bytes = {right}_bytes > {size} ? {size} : {right}_bytes;")
        self._line(f"memcpy({left}, {right}, {left}_bytes);")

    def add_header(self, operands: Operands) -> None:
        header = self._header(operands[0])
        size = header.type.bits // 8
        self._line(f"if ({header.there}) {{")
        self._line(
            f"if (!{header.valid}) {{ memset(&{header.code}, 0, sizeof {header.code}); packet->grown += {size}; }}"
        )
        self._line(f"{header.set_valid} }}")

    def remove_header(self, operands: Operands) -> None:
        header = self._header(operands[0])
        size = str(header.type.bits // 8)
        if header.type.variable is not None:
            field = self._scope.field_names[header.type.name][header.type.variable.name]
            size += f" + (int32_t){header.code}.{field}_bytes"
        self._line(f"if ({header.there} && {header.valid}) {{ packet->grown -= {size}; {header.valid} = 0; }}")

    def assign_header(self, operands: Operands) -> None:
        kinds = [operand.get("type") for operand in (operands[0], operands[1])]
        if kinds == ["header", "header"]:
            self._assign_header(operands.name(0, "header"), operands.name(1, "header"))
        else:
            self._copy_header(self._header(operands[0]), self._header(operands[1]))

    def _assign_header(self, to: str, source: str) -> None:
        headers = [self._scope.known_header(name) for name in (to, source)]
        if all(header.metadata for header in headers):  # a struct, which is always valid
            self._same_type(to, headers[0].type, source, headers[1].type)
            self._line(f"{self._scope.header(to)} = {self._scope.header(source)};")
        else:
            self._copy_header(self._named(to), self._named(source, metadata=True))

    def _named(self, name: str, metadata: bool = False) -> HeaderPlace:
        scope = self._scope
        header = scope.known_header(name) if metadata else scope.packet_header(name)
        set_valid = "" if header.metadata else " ".join(scope.set_valid(name))
        return HeaderPlace(name, header.type, "1", scope.valid(name), scope.header(name), set_valid)

    def _header(self, operand: Operand) -> HeaderPlace:
        """The header that an operand names. It may be a stack's element whose index is known only at run time, or the
        last extracted one. An element outside of the stack does not exist."""
        node: Any = operand
        while isinstance(node, Mapping) and node.get("type") == "expression":
            node = node["value"]
        if node.get("op") == "dereference_header_stack":
            stack = operand_value(node.get("left"), "header_stack")
            at = self._emitter.scalar(self._emitter.exact(self._number(node.get("right"))))
            there = f"{at} < {self._shape(stack)[1]}"
        elif node.get("type") == "stack_field":
            stack, last = node["value"]
            if last != "last":
                raise NotBmv2Json(f"{stack}.{last} where a header is expected")
            there = f"h->{self._scope.next_name(stack)}"
            at = f"{there} - 1"
        else:
            return self._named(operand_value(node, "header"))
        element = self._scope.stack(stack)
        valid = f"h->valid_{element}[{at}]"
        header_type = self._scope.stack_type(stack)
        return HeaderPlace(stack, header_type, there, valid, f"h->{element}[{at}]", f"{valid} = 1;")

    @staticmethod
    def _same_type(to: str, to_type: HeaderType, source: str, source_type: HeaderType) -> None:
        if to_type != source_type:
            raise NotBmv2Json(f"headers {to!r} and {source!r} are of different types")

    def _copy_header(self, to: HeaderPlace, source: HeaderPlace) -> None:
        self._same_type(to.name, to.type, source.name, source.type)
        self._line(f"if ({to.there}) {{")
        self._line(f"if ({source.there} && {source.valid}) {{ {to.code} = {source.code}; {to.set_valid}")
        self._line(f"}} else {{ {to.valid} = 0; }} }}")

    def assign_union(self, operands: Operands) -> None:
        unions = self._scope.program.unions
        to, source = (known(unions, operands.name(at, "header_union"), "header union") for at in (0, 1))
        if len(to) != len(source):
            raise NotBmv2Json("the unions are of different types")
        for left, right in zip(to, source, strict=True):
            self._assign_header(left.name, right.name)

    def assign_header_stack(self, operands: Operands) -> None:
        scope = self._scope
        to, source = operands.name(0, *STACKS), operands.name(1, *STACKS)
        pairs = list(zip_longest(scope.stacks_of(to), scope.stacks_of(source)))
        shapes = [[self._shape(stack) for stack in pair] for pair in pairs]
        if any(left != right for left, right in shapes):
            raise NotBmv2Json(f"stacks {to!r} and {source!r} are of different types")
        for left, right in pairs:
            for part in ("", "valid_"):
                at = f"h->{part}{scope.stack(left)}"
                self._line(f"memcpy({at}, h->{part}{scope.stack(right)}, sizeof {at});")
        self._line(f"h->{scope.next_name(to)} = h->{scope.next_name(source)};")

    def _shape(self, stack: str | None) -> tuple[HeaderType, int]:
        elements = known(self._scope.program.stacks, stack, "header stack")
        return elements[0].type, len(elements)

    def push(self, operands: Operands) -> None:
        count, size, following = self._move(operands, forward=True)
        self._line(f"{following} = {following} + {count} > {size} ? {size} : {following} + {count};")

    def pop(self, operands: Operands) -> None:
        count, _, following = self._move(operands, forward=False)
        self._line(f"{following} = {following} > {count} ? {following} - {count} : 0;")

    def _move(self, operands: Operands, forward: bool) -> tuple[int, int, str]:
        """Moves a stack's elements. Returns the distance, the stack's size, and C for the number of its elements."""
        scope, name = self._scope, operands.name(0, *STACKS)
        stacks = scope.stacks_of(name)
        size = self._shape(stacks[0])[1]
        count = min(operands.integer(1), size)
        for stack in stacks:
            for part in ("", "valid_"):
                at = f"h->{part}{scope.stack(stack)}"
                to, source, gap = (f"{at} + {count}", at, at) if forward else (at, f"{at} + {count}", "")
                self._line(f"memmove({to}, {source}, {size - count} * sizeof *{at});")
                self._line(f"memset({gap or f'{at} + {size - count}'}, 0, {count} * sizeof *{at});")
        return count, size, f"h->{scope.next_name(name)}"

    def mark_to_drop(self, operands: Operands) -> None:
        # p4c may pass it a copy of standard_metadata.
        name = operands.name(0, "header") if len(operands) else "standard_metadata"
        spec, group = (self._scope.target(name, field) for field in ("egress_spec", "mcast_grp"))
        self._emitter.store(spec, Expr("c", 0, mask(32), ("(uint64_t)state->runtime.drop_port",)))
        self._emitter.store(group, constant(0))
        self._request("DROP")

    def drop(self, operands: Operands) -> None:
        self._line("h->standard_metadata.egress_spec = state->runtime.drop_port;")
        self._request("DROP")

    def exit(self, operands: Operands) -> None:
        self._line("packet->requests.exit = 1;")
        self._request("EXIT")

    def jump(self, operands: Operands) -> None:
        self._jump(operands.integer(0), "1")

    def jump_if_zero(self, operands: Operands) -> None:
        test = self._emitter.compare("==", self._number(operands[0]), constant(0))
        self._jump(operands.integer(1), test)

    def _jump(self, to: int, test: str) -> None:
        """A jump. A backward jump counts as a step, and a packet has a limited number of steps."""
        bound = " && STEP(packet)" if to <= self._at else ""
        self._line(f"if ({test}{bound}) goto at_{to};")

    def register_read(self, operands: Operands) -> None:
        target, name = self._target(operands[0]), operands.name(1, "register_array")
        self._line(f"const uint64_t at = {self._small(operands[2])};")
        element = self._scope.register(name)
        source = Expr("place", 0, mask(element.width), place=element, ones=mask(element.width))
        outer, self._emitter.lines = self._emitter.lines, []
        self._emitter.store(target, source)
        inner, self._emitter.lines = self._emitter.lines, outer
        self._cell(name, inner, "REGISTER_READ")

    def register_write(self, operands: Operands) -> None:
        name, value = operands.name(0, "register_array"), self._number(operands[2])
        self._line(f"const uint64_t at = {self._small(operands[1])};")
        outer, self._emitter.lines = self._emitter.lines, []
        self._emitter.store(self._scope.register(name), value)
        inner, self._emitter.lines = self._emitter.lines, outer
        self._cell(name, inner, "REGISTER_WRITE")

    def _cell(self, name: str, access: list[str], kind: str) -> None:
        """Reads or writes element ``at`` of a register; an index out of bounds reads and writes nothing."""
        array = self._scope.program.registers[name]
        traced = event(kind, array.id, "at", *place_words(self._scope.register(name)))
        outside = f"TRACED(else {event(kind, array.id, 'at')})"
        self._line(f"if (at < {array.size}) {{ {' '.join(access)} {traced} }} {outside}")

    def count(self, operands: Operands) -> None:
        counter = known(self._scope.program.counters, operands.name(0, "counter_array"), "counter")
        self._line(f"const uint64_t at = {self._small(operands[1])};")
        items = f"state->counters[{counter.id}].items[at]"
        self._line(f"if (at < {counter.size}) {{ {items}.packets++; {items}.bytes += packet->length; }}")
        self._line(event("COUNTER", counter.id, "at"))

    def execute_meter(self, operands: Operands) -> None:
        meter = known(self._scope.program.meters, operands.name(0, "meter_array"), "meter")
        self._line(f"const uint64_t at = {self._small(operands[1])};")
        call = (
            f"meter_execute(&state->meters[{meter.id}].items[at], {int(meter.kind == 'bytes')}, packet->length, "
            "(now_ns() - state->runtime.started_ns) / 1000)"
        )
        colour = Expr("c", 0, 2, (f"(at < {meter.size} ? {call} : 0)",), ones=3)
        target = self._target(operands[2])
        self._emitter.store(target, colour)
        self._line(event("METER", meter.id, "at", *place_words(target)))

    def random(self, operands: Operands) -> None:
        low, high = (self._small(operands[at], 64) for at in (1, 2))
        call = f"random_between(&state->runtime, {low}, {high})"
        self._emitter.store(self._target(operands[0]), Expr("c", 0, mask(64), (call,)))

    def hash(self, operands: Operands) -> None:
        call = CalculationWriter(self._scope).named(operands.name(2, "calculation"), self._reader, self._emitter)
        base, size = self._small(operands[1], 64), self._small(operands[3], 64)
        self._line(f"const uint64_t size = {size}, hash = {call};")
        value = Expr("c", 0, mask(64), (f"({base} + (size ? hash % size : 0))",))
        self._emitter.store(self._target(operands[0]), value)

    def digest(self, operands: Operands) -> None:
        self._line("packet->requests.digest = 1;")
        self._line(f"packet->requests.digest_list = {self._small(operands[1])};")
        self._request("DIGEST", "packet->requests.digest_list")

    def clone(self, operands: Operands) -> None:
        self._line("packet->requests.clone = 1;")
        self._line(f"packet->requests.clone_session = {self._small(operands[0])};")
        fields = self._small(operands[1]) if len(operands) > 1 else "0"
        self._line(f"packet->requests.clone_fields = {fields};")
        self._request("CLONE", "packet->requests.clone_session")

    def resubmit(self, operands: Operands) -> None:
        self._line("packet->requests.resubmit = 1;")
        self._line(f"packet->requests.resubmit_fields = {self._small(operands[0])};")
        self._request("RESUBMIT")

    def recirculate(self, operands: Operands) -> None:
        self._line("packet->requests.recirculate = 1;")
        self._line(f"packet->requests.recirculate_fields = {self._small(operands[0])};")
        self._request("RECIRCULATE")

    def truncate(self, operands: Operands) -> None:
        self._line(f"packet->requests.truncate = {self._small(operands[0])};")
        self._request("TRUNCATE", "packet->requests.truncate")

    def _request(self, kind: str, *values: str) -> None:
        self._line(event("REQUEST", f"REQUEST_{kind}", *values))

    def log_msg(self, operands: Operands) -> None:
        """Appears only in traces. A value that cannot be computed here is recorded with zero bits."""
        words: list[str] = []
        outer, self._emitter.lines = self._emitter.lines, []
        values = operand_value(operands[1], "parameters_vector") if len(operands) > 1 else []
        for operand in values if isinstance(values, list) else []:  # p4c writes no other values
            try:
                value = self._number(operand)
                place = value.place
                if place is not None:
                    bits = place.width + SIGNED * place.signed
                    words += [str(bits), *place_words(place), *["0"] * (place.width <= 64)]
                else:
                    words += [str(64 + SIGNED * (value.low < 0)), self._emitter.cut(value, 64), "0"]
            except (NotBmv2Json, UnsupportedProgram):
                words += ["0", "0", "0"]
        inner, self._emitter.lines = self._emitter.lines, outer
        number = self._scope.messages[operands.name(0, "string")]
        self._line(f"TRACED({' '.join(inner)} {event('LOG', number, *words)})")

    def nothing(self, operands: Operands) -> None:
        """assert and similar primitives have no effect on packets."""


JUMPS = ("_jump", "_jump_if_zero")
PRIMITIVES: Mapping[str, Callable[[ActionWriter, Operands], None]] = {
    "assign": ActionWriter.assign,
    "add_to_field": ActionWriter.add_to_field,
    "subtract_from_field": ActionWriter.subtract_from_field,
    "modify_field": ActionWriter.assign,
    "add_header": ActionWriter.add_header,
    "remove_header": ActionWriter.remove_header,
    "assign_VL": ActionWriter.assign_varbit,
    "assign_header": ActionWriter.assign_header,
    "assign_union": ActionWriter.assign_union,
    "assign_union_stack": ActionWriter.assign_header_stack,
    "copy_header": ActionWriter.assign_header,
    "assign_header_stack": ActionWriter.assign_header_stack,
    "push": ActionWriter.push,
    "pop": ActionWriter.pop,
    "mark_to_drop": ActionWriter.mark_to_drop,
    "drop": ActionWriter.drop,
    "exit": ActionWriter.exit,
    "_jump": ActionWriter.jump,
    "_jump_if_zero": ActionWriter.jump_if_zero,
    "register_read": ActionWriter.register_read,
    "register_write": ActionWriter.register_write,
    "count": ActionWriter.count,
    "execute_meter": ActionWriter.execute_meter,
    "modify_field_rng_uniform": ActionWriter.random,
    "modify_field_with_hash_based_offset": ActionWriter.hash,
    "generate_digest": ActionWriter.digest,
    "clone_ingress_pkt_to_egress": ActionWriter.clone,
    "clone_egress_pkt_to_egress": ActionWriter.clone,
    "resubmit": ActionWriter.resubmit,
    "recirculate": ActionWriter.recirculate,
    "truncate": ActionWriter.truncate,
    "log_msg": ActionWriter.log_msg,
    "assert": ActionWriter.nothing,
    "assume": ActionWriter.nothing,
    "no_op": ActionWriter.nothing,
}
