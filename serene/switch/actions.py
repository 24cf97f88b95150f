"""Actions as C functions: each primitive a statement or a few, jumps as gotos."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from serene.errors import choices
from serene.switch.calculations import CalculationWriter
from serene.switch.expressions import Emitter, Expr, Place, constant, limbs_of, mask
from serene.switch.program import Action, UnsupportedProgram

if TYPE_CHECKING:
    from serene.switch.codegen import Generator

Operand = Mapping[str, Any]


class ActionWriter:
    """One action: ``void f(struct packet *packet, const uint64_t *d)``, d being the entry's action data."""

    def __init__(self, generator: Generator, action: Action) -> None:
        self._generator = generator
        self._action = action
        self._emitter = Emitter(generator.constants)
        self._reader = generator.reader(self._emitter, self._parameter)

    def _parameter(self, index: int) -> Place:
        parameters = self._action.parameters
        at = sum(limbs_of(parameter.width) for parameter in parameters[:index])
        width = parameters[index].width
        return Place(f"d[{at}]" if width <= 64 else f"(d + {at})", width)

    def source(self) -> str:
        primitives = self._action.primitives
        targets = {int(p["parameters"][-1]["value"], 16) for p in primitives if p["op"] in ("_jump", "_jump_if_zero")}
        lines = [
            f"static void {self._generator.action(self._action.id)}(struct packet *packet, const uint64_t *d) {{",
            "    struct phv *const h = &packet->h;",
            "    struct state *const state = packet->state;",
            "    (void)h; (void)state; (void)d;",
        ]
        for index, primitive in enumerate(primitives):
            if index in targets:
                lines.append(f"at_{index}:;")
            lines += ["    {", *(f"        {line}" for line in self.primitive(primitive)), "    }"]
        if len(primitives) in targets:
            lines.append(f"at_{len(primitives)}:;")
        return "\n".join([*lines, "}"])

    def primitive(self, primitive: Mapping[str, Any]) -> list[str]:
        """The statements of one primitive."""
        self._emitter.lines = []
        op, operands = primitive["op"], primitive["parameters"]
        write = PRIMITIVES.get(op)
        if write is None:
            raise UnsupportedProgram(
                f"action {self._action.name!r}: primitive {op!r} is not supported "
                f"(supported: {choices(sorted(PRIMITIVES))})"
            )
        try:
            write(self, operands)
        except UnsupportedProgram as error:
            raise UnsupportedProgram(f"action {self._action.name!r}: {error}") from error
        return self._emitter.lines

    # -- operands --------------------------------------------------------------------------------------------

    def _number(self, operand: Operand) -> Expr:
        return self._reader.number(operand)

    def _small(self, operand: Operand, bits: int = 32) -> str:
        """C for the low bits of an operand: an index, a session, a length."""
        return self._emitter._cut(self._number(operand), bits)

    def _target(self, operand: Operand) -> Place:
        kind, value = operand["type"], operand["value"]
        if kind == "field":
            return self._generator.place(*value)
        if kind in ("stack_field", "expression"):
            node = self._number(operand)
            if node.place is not None:
                return node.place
        raise UnsupportedProgram(f"assigning to a {kind!r} is not supported")

    def _line(self, text: str) -> None:
        self._emitter.line(text)

    # -- primitives ------------------------------------------------------------------------------------------

    def assign(self, operands: Sequence[Operand]) -> None:
        self._emitter.store(self._target(operands[0]), self._number(operands[1]))

    def assign_varbit(self, operands: Sequence[Operand]) -> None:
        fields = [self._generator.program.field(*operand["value"]) for operand in operands]
        (to, to_field), (source, source_field) = (operand["value"] for operand in operands)
        size = min(field.most_bytes for field in fields)
        names = self._generator.field_name
        left = f"{self._generator.header(to)}.{names(to, to_field)}"
        right = f"{self._generator.header(source)}.{names(source, source_field)}"
        self._line(f"{left}_bytes = {right}_bytes > {size} ? {size} : {right}_bytes;")
        self._line(f"memcpy({left}, {right}, {left}_bytes);")

    def add_header(self, operands: Sequence[Operand]) -> None:
        name = operands[0]["value"]
        valid, header = self._generator.valid(name), self._generator.header(name)
        size = self._generator.known_header(name).type.bits // 8
        self._line(f"if (!{valid}) {{ memset(&{header}, 0, sizeof {header}); packet->grown += {size}; }}")
        for line in self._generator.set_valid(name):
            self._line(line)

    def remove_header(self, operands: Sequence[Operand]) -> None:
        name = operands[0]["value"]
        valid, header_type = self._generator.valid(name), self._generator.known_header(name).type
        size = str(header_type.bits // 8)
        if header_type.variable is not None:
            field = self._generator.field_name(name, header_type.variable.name)
            size += f" + (int32_t){self._generator.header(name)}.{field}_bytes"
        self._line(f"if ({valid}) packet->grown -= {size};")
        self._line(f"{valid} = 0;")

    def assign_header(self, operands: Sequence[Operand]) -> None:
        self._assign_header(*(operand["value"] for operand in operands))

    def _assign_header(self, to: str, source: str) -> None:
        header, valid = self._generator.header, self._generator.valid
        self._line(f"if ({valid(source)}) {{ {header(to)} = {header(source)};")
        for line in self._generator.set_valid(to):
            self._line(line)
        self._line(f"}} else {{ {valid(to)} = 0; }}")

    def assign_union(self, operands: Sequence[Operand]) -> None:
        to, source = (self._generator.program.unions[operand["value"]] for operand in operands)
        for left, right in zip(to, source, strict=True):
            self._assign_header(left.name, right.name)

    def assign_header_stack(self, operands: Sequence[Operand]) -> None:
        generator = self._generator
        to, source = (operand["value"] for operand in operands)
        for left, right in zip(generator.stacks_of(to), generator.stacks_of(source), strict=True):
            for part in ("", "valid_"):
                at = f"h->{part}{generator.stack(left)}"
                self._line(f"memcpy({at}, h->{part}{generator.stack(right)}, sizeof {at});")
        self._line(f"h->{generator.next_name(to)} = h->{generator.next_name(source)};")

    def push(self, operands: Sequence[Operand]) -> None:
        count, size, following = self._move(operands, forward=True)
        self._line(f"{following} = {following} + {count} > {size} ? {size} : {following} + {count};")

    def pop(self, operands: Sequence[Operand]) -> None:
        count, _, following = self._move(operands, forward=False)
        self._line(f"{following} = {following} > {count} ? {following} - {count} : 0;")

    def _move(self, operands: Sequence[Operand], forward: bool) -> tuple[int, int, str]:
        """Moves a stack's elements; (by how many, the stack's size, C for what counts its elements)."""
        generator, name = self._generator, operands[0]["value"]
        stacks = generator.stacks_of(name)
        size = len(generator.program.stacks[stacks[0]])
        count = min(int(operands[1]["value"], 16), size)
        for stack in stacks:
            for part in ("", "valid_"):
                at = f"h->{part}{generator.stack(stack)}"
                to, source, gap = (f"{at} + {count}", at, at) if forward else (at, f"{at} + {count}", "")
                self._line(f"memmove({to}, {source}, {size - count} * sizeof *{at});")
                self._line(f"memset({gap or f'{at} + {size - count}'}, 0, {count} * sizeof *{at});")
        return count, size, f"h->{generator.next_name(name)}"

    def mark_to_drop(self, operands: Sequence[Operand]) -> None:
        # p4c may hand it a copy of standard_metadata.
        header = self._generator.header(operands[0]["value"] if operands else "standard_metadata")
        self._line(f"{header}.egress_spec = state->runtime.drop_port;")
        self._line(f"{header}.mcast_grp = 0;")

    def drop(self, operands: Sequence[Operand]) -> None:
        self._line("h->standard_metadata.egress_spec = state->runtime.drop_port;")

    def exit(self, operands: Sequence[Operand]) -> None:
        self._line("packet->requests.exit = 1;")

    def jump(self, operands: Sequence[Operand]) -> None:
        self._line(f"goto at_{int(operands[0]['value'], 16)};")

    def jump_if_zero(self, operands: Sequence[Operand]) -> None:
        test = self._emitter.compare("==", self._number(operands[0]), constant(0))
        self._line(f"if ({test}) goto at_{int(operands[1]['value'], 16)};")

    def register_read(self, operands: Sequence[Operand]) -> None:
        target, name = self._target(operands[0]), operands[1]["value"]
        self._line(f"const uint64_t at = {self._small(operands[2])};")
        element = self._generator.register(name)
        source = Expr("place", 0, mask(element.width), place=element, ones=mask(element.width))
        outer, self._emitter.lines = self._emitter.lines, []
        self._emitter.store(target, source)
        inner, self._emitter.lines = self._emitter.lines, outer
        size = self._generator.program.registers[name].size
        self._line(f"if (at < {size}) {{ {' '.join(inner)} }}")

    def register_write(self, operands: Sequence[Operand]) -> None:
        name, value = operands[0]["value"], self._number(operands[2])
        self._line(f"const uint64_t at = {self._small(operands[1])};")
        outer, self._emitter.lines = self._emitter.lines, []
        self._emitter.store(self._generator.register(name), value)
        inner, self._emitter.lines = self._emitter.lines, outer
        size = self._generator.program.registers[name].size
        self._line(f"if (at < {size}) {{ {' '.join(inner)} }}")

    def count(self, operands: Sequence[Operand]) -> None:
        counter = self._generator.program.counters[operands[0]["value"]]
        self._line(f"const uint64_t at = {self._small(operands[1])};")
        items = f"state->counters[{counter.id}].items[at]"
        self._line(f"if (at < {counter.size}) {{ {items}.packets++; {items}.bytes += packet->length; }}")

    def execute_meter(self, operands: Sequence[Operand]) -> None:
        meter = self._generator.program.meters[operands[0]["value"]]
        self._line(f"const uint64_t at = {self._small(operands[1])};")
        call = (
            f"meter_execute(&state->meters[{meter.id}].items[at], {int(meter.kind == 'bytes')}, packet->length, "
            "(now_ns() - state->runtime.started_ns) / 1000)"
        )
        colour = Expr("c", 0, 2, (f"(at < {meter.size} ? {call} : 0)",), ones=3)
        self._emitter.store(self._target(operands[2]), colour)

    def random(self, operands: Sequence[Operand]) -> None:
        low, high = (self._small(operand, 64) for operand in operands[1:3])
        call = f"random_between(&state->runtime, {low}, {high})"
        self._emitter.store(self._target(operands[0]), Expr("c", 0, mask(64), (call,)))

    def hash(self, operands: Sequence[Operand]) -> None:
        call = CalculationWriter(self._generator).named(operands[2]["value"], self._reader, self._emitter)
        base, size = self._small(operands[1], 64), self._small(operands[3], 64)
        self._line(f"const uint64_t size = {size}, hash = {call};")
        value = Expr("c", 0, mask(64), (f"({base} + (size ? hash % size : hash))",))
        self._emitter.store(self._target(operands[0]), value)

    def digest(self, operands: Sequence[Operand]) -> None:
        self._line("packet->requests.digest = 1;")
        self._line(f"packet->requests.digest_list = {self._small(operands[1])};")

    def clone(self, operands: Sequence[Operand]) -> None:
        self._line("packet->requests.clone = 1;")
        self._line(f"packet->requests.clone_session = {self._small(operands[0])};")
        fields = self._small(operands[1]) if len(operands) > 1 else "0"
        self._line(f"packet->requests.clone_fields = {fields};")

    def resubmit(self, operands: Sequence[Operand]) -> None:
        self._line("packet->requests.resubmit = 1;")
        self._line(f"packet->requests.resubmit_fields = {self._small(operands[0])};")

    def recirculate(self, operands: Sequence[Operand]) -> None:
        self._line("packet->requests.recirculate = 1;")
        self._line(f"packet->requests.recirculate_fields = {self._small(operands[0])};")

    def truncate(self, operands: Sequence[Operand]) -> None:
        self._line(f"packet->requests.truncate = {self._small(operands[0])};")

    def nothing(self, operands: Sequence[Operand]) -> None:
        """log_msg and the like: no effect on packets."""


PRIMITIVES: Mapping[str, Callable[[ActionWriter, Sequence[Operand]], None]] = {
    "assign": ActionWriter.assign,
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
    "log_msg": ActionWriter.nothing,
    "assert": ActionWriter.nothing,
    "assume": ActionWriter.nothing,
    "no_op": ActionWriter.nothing,
}
