"""The C names of a program's parts, and the C that reads an operand of the JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from serene.embedded.codegen.budget import Budget
from serene.embedded.codegen.expressions import Emitter, Expr, Place, Reader, constant, place_expr
from serene.embedded.codegen.names import identifier, identifiers
from serene.embedded.codegen.operands import STACKS, operand_value
from serene.embedded.program.errors import NotBmv2Json, UnsupportedProgram, known
from serene.embedded.program.ir import (
    OTHER_STANDARD_METADATA,
    STANDARD_METADATA,
    Header,
    HeaderType,
    Program,
    limbs_of,
    mask,
    messages,
)

T = TypeVar("T")


class Scope:
    """One program's names and operands in C, shared by the writers of its parts."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.budget = Budget()
        self._header_names = identifiers("h", (name for name, h in program.headers.items() if h.stack is None))
        self._header_names["standard_metadata"] = "standard_metadata"
        self._header_numbers = {name: number for number, name in enumerate(program.headers)}
        self._stack_names = identifiers("s", program.stacks)
        self._union_stack_names = identifiers("u", program.union_stacks)
        self._type_names = identifiers("t", program.header_types)
        self.field_names = {
            header_type.name: identifiers("f", (field.name for field in header_type.fields))
            for header_type in program.header_types.values()
        }
        # The runtime uses the P4 names of these.
        standard = self.field_names[program.headers["standard_metadata"].type.name]
        standard.update({name: name for name in (*STANDARD_METADATA, *OTHER_STANDARD_METADATA) if name in standard})
        self._columns = identifiers("r", program.registers)
        self._value_sets = identifiers("v", program.value_sets)
        self._action_names = {action.id: identifier("a", action.id, action.name) for action in program.actions}
        self._union_of = {member.name: name for name, members in program.unions.items() for member in members}
        self._union_stack_of = {
            f"{stack}.{member}": stack for stack, members in program.union_stacks.items() for member in members
        }
        calculations: Sequence[Mapping[str, Any]] = program.json.get("calculations") or ()
        self.calculations = {item["name"]: item for item in calculations}
        self.field_lists = {item["id"]: item for item in program.json.get("field_lists") or ()}
        self.errors = dict(program.json.get("errors") or ())
        self.messages = {text: number for number, text in enumerate(messages(program.json))}

    # -- names of things in C --------------------------------------------------------------------------------

    def known_header(self, name: str) -> Header:
        return self.program.header(name)

    def packet_header(self, name: str) -> Header:
        """Looks up a header of a packet, which can be invalid. Metadata, always valid, is refused."""
        header = self.known_header(name)
        if header.metadata:
            raise NotBmv2Json(f"{name!r} is metadata, which is never added, removed, extracted or emitted")
        return header

    def header_number(self, name: str) -> int:
        """The header's number among the program's headers."""
        return self._header_numbers[name]

    def own_name(self, header: Header) -> str:
        """The C name of a header that is not in a stack."""
        return self._header_names[header.name]

    def header(self, name: str, of: str = "h") -> str:
        header = self.known_header(name)
        if header.stack is not None:
            return f"{of}->{self._stack_names[header.stack]}[{header.index}]"
        return f"{of}->{self._header_names[name]}"

    def valid(self, name: str, of: str = "h") -> str:
        header = self.known_header(name)
        if header.metadata:
            return "1"
        if header.stack is not None:
            return f"{of}->valid_{self._stack_names[header.stack]}[{header.index}]"
        return f"{of}->valid_{self._header_names[name]}"

    def set_valid(self, name: str) -> list[str]:
        """Statements that make a header valid, and the other members of its union invalid."""
        self.packet_header(name)
        members = self.program.unions.get(self._union_of.get(name, ""), ())
        return [f"{self.valid(name)} = 1;", *(f"{self.valid(m.name)} = 0;" for m in members if m.name != name)]

    def stack(self, name: str) -> str:
        return known(self._stack_names, name, "header stack")

    def stack_type(self, name: str) -> HeaderType:
        return known(self.program.stacks, name, "header stack")[0].type

    def in_union_stack(self, stack: str) -> bool:
        return stack in self._union_stack_of

    def next_name(self, stack: str) -> str:
        """The C field that counts a stack's extracted elements; a stack of unions has one for all its members."""
        stack = self._union_stack_of.get(stack, stack)
        if stack in self._union_stack_names:
            return f"next_{self._union_stack_names[stack]}"
        return f"next_{self.stack(stack)}"

    def stacks_of(self, name: str) -> list[str]:
        """The stacks that a push or pop moves: the stack itself, or each member's stack of a stack of unions."""
        return [f"{name}.{member}" for member in self.program.union_stacks.get(name, ())] or [name]

    def type(self, name: str) -> str:
        return self._type_names[name]

    def place(self, header: str, field: str, of: str = "h") -> Place:
        """The C place of a field. Raises UnsupportedProgram for a varbit field, which is not a number."""
        if field == "$valid$":
            return Place(self.valid(header, of), 1)
        declared = self.program.field(header, field)
        if declared.most_bytes:
            raise UnsupportedProgram(f"varbit field {header}.{field} is not supported here")
        code = f"{self.header(header, of)}.{self.field_name(header, field)}"
        return Place(code, declared.width, declared.signed, writable=True)

    def target(self, header: str, field: str) -> Place:
        """The C place of a field to write to."""
        if field != "$valid$":
            return self.place(header, field)
        self.packet_header(header)
        return Place(self.valid(header), 1, writable=True)

    def field_name(self, header: str, field: str) -> str:
        return known(self.field_names[self.known_header(header).type.name], field, "field")

    def column(self, register: str) -> str:
        return self._columns[register]

    def register(self, name: str) -> Place:
        """The place of the element at C index ``at`` of a register array."""
        array = known(self.program.registers, name, "register")
        return Place(f"state->rows_{array.size}[at].{self._columns[name]}", array.width)

    def action(self, id_: int) -> str:
        return self._action_names[id_]

    def crc(self, name: str) -> int:
        """The number of a calculation or selector whose CRC is set at run time."""
        return list(self.program.crcs).index(name)

    def value_set(self, name: str) -> str:
        return self._value_sets[name]

    # -- operands --------------------------------------------------------------------------------------------

    def field_expr(self, header: str, field: str, emitter: Emitter) -> Expr:
        """A field as a number; a varbit field's bytes as a big-endian number."""
        if field != "$valid$" and (most := self.program.field(header, field).most_bytes):
            code = f"{self.header(header)}.{self.field_name(header, field)}"
            name = emitter.temporary(limbs_of(8 * most))
            emitter.line(f"load_string({name}, {limbs_of(8 * most)}, {code}, {code}_bytes);")
            return place_expr(Place(name if most > 8 else f"{name}[0]", 8 * most))
        return place_expr(self.place(header, field))

    def special(self, kind: str, value: Any, emitter: Emitter) -> Expr | None:
        """An operand of a kind that only stacks and unions have."""
        if kind in ("stack_field", "union_stack_field"):  # a field of the last extracted element
            stack, name = ".".join(value[:-1]), value[-1]
            last = f"h->{self.next_name(stack)}"
            return self._element(stack, name, f"{last} ? {last} - 1 : 0")
        if kind == "last_stack_index":
            last = f"h->{self.next_name(operand_value(value.get('right'), *STACKS))}"
            return Expr("c", 0, mask(32), (f"((uint64_t){last} - 1 & 0xffffffffull)",), ones=mask(32))
        if kind == "size":
            stack = self.stacks_of(operand_value(value.get("right"), *STACKS))[0]
            return constant(len(known(self.program.stacks, stack, "header stack")))
        if kind == "access_field":
            return self._field_of(value, emitter)
        if kind == "valid":  # from the oldest p4c; later versions write the field $valid$
            return Expr("bool", 0, 1, (f"({self.valid(operand_value(value.get('right'), 'header'))})",), ones=1)
        if kind == "valid_union":
            name = operand_value(value.get("right"), "header_union")
            members = known(self.program.unions, name, "header union")
            return Expr("bool", 0, 1, (f"({' || '.join(self.valid(m.name) for m in members) or '0'})",), ones=1)
        return None

    def _element(self, stack: str, field: str, index: str) -> Expr:
        header_type = self.stack_type(stack)
        declared = known({field.name: field for field in header_type.fields}, field, f"field of stack {stack!r}")
        if declared.most_bytes:
            raise UnsupportedProgram(f"varbit field {field!r} of stack {stack!r} is not supported here")
        code = f"h->{self.stack(stack)}[{index}].{self.field_names[header_type.name][field]}"
        return place_expr(Place(code, declared.width, declared.signed, writable=True))

    def _field_of(self, value: Mapping[str, Any], emitter: Emitter) -> Expr:
        """A field of a stack's element whose index is known only at run time."""
        node, member = operand_value(value.get("left"), "expression"), ""
        if node.get("op") == "access_union_header":
            union = operand_value(node.get("left"), "expression")
            name = operand_value(union.get("left"), *STACKS)
            members = known(self.program.union_stacks, name, "stack of header unions")
            member, node = "." + _at(members, node.get("right"), "member"), union
        if node.get("op") not in ("dereference_header_stack", "dereference_union_stack"):
            raise UnsupportedProgram(f"field access to {node.get('op')!r} is not supported")
        stack = operand_value(node.get("left"), *STACKS) + member
        field = _at(self.stack_type(stack).fields, value.get("right"), "field").name
        index = emitter.scalar(emitter.exact(self.reader(emitter).number(node.get("right"))))
        size = len(self.program.stacks[stack])  # the extra element, for writes outside of the stack
        return self._element(stack, field, f"{index} < {size} ? {index} : {size}")

    def reader(self, emitter: Emitter, local: Any = None) -> Reader:
        def no_local(index: int) -> Place:
            raise NotBmv2Json(f"action parameter {index} outside of an action")

        return Reader(emitter, self.field_expr, local or no_local, self.special)

    def emitter(self) -> Emitter:
        return Emitter(self.budget)


def _at(items: Sequence[T], index: Any, what: str) -> T:
    """The object that an operand names by number."""
    if not isinstance(index, int) or not 0 <= index < len(items):
        raise NotBmv2Json(f"there is no {what} {index!r}: the numbers are 0 to {len(items) - 1}")
    return items[index]
