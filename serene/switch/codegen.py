"""From a program to the C file that runs it.

The file is: a packet's headers and metadata as structs and the program's state (layout.py), one function per action
(actions.py), the parser (parser.py), the two pipelines (pipelines.py), and what follows them: checksums, deparser,
digests (deparser.py, calculations.py). Everything that is the same for all programs is in runtime/, included before
and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serene.switch.actions import ActionWriter
from serene.switch.deparser import DeparserWriter
from serene.switch.expressions import Emitter, Expr, Place, Reader, constant, limbs_of, mask, place_expr
from serene.switch.layout import LayoutWriter
from serene.switch.names import Names, identifier
from serene.switch.parser import ParserWriter
from serene.switch.pipelines import PipelineWriter
from serene.switch.program import Field, Header, HeaderType, NotBmv2Json, Program, Table, UnsupportedProgram

RUNTIME_BEFORE = ("wide.h", "switch.h", "table.h", "stateful.h", "checksum.h")
RUNTIME_AFTER = ("pipeline.h", "offload.h", "ports.h", "api.h")


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
        self._union_stack_names = {name: names.unique(name) for name in program.union_stacks}
        self._type_names = {name: names.unique(name) for name in program.header_types}
        self.field_names: dict[str, dict[str, str]] = {}
        for header_type in program.header_types.values():
            taken = Names()
            self.field_names[header_type.name] = {f.name: taken.unique(f.name) for f in header_type.fields}
        self._columns = {name: names.unique("register_" + name) for name in program.registers}
        self._action_names = {action.id: names.unique("action_" + action.name) for action in program.actions}
        self._union_of = {member.name: name for name, members in program.unions.items() for member in members}
        self._union_stack_of = {
            f"{stack}.{member}": stack for stack, members in program.union_stacks.items() for member in members
        }
        self.calculations = {item["name"]: item for item in program.json.get("calculations") or ()}
        self.field_lists = {item["id"]: item for item in program.json.get("field_lists") or ()}
        self.errors = dict(program.json.get("errors") or ())

    # -- names of things in C --------------------------------------------------------------------------------

    def known_header(self, name: str) -> Header:
        if name not in self.program.headers:
            raise NotBmv2Json(f"there is no header {name!r}")
        return self.program.headers[name]

    def own_name(self, header: Header) -> str:
        """Of a header outside stacks."""
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
        """Statements: a union has one valid member at most."""
        members = self.program.unions.get(self._union_of.get(name, ""), ())
        return [f"{self.valid(name)} = 1;", *(f"{self.valid(m.name)} = 0;" for m in members if m.name != name)]

    def stack(self, name: str) -> str:
        if name not in self._stack_names:
            raise UnsupportedProgram(f"header stack {name!r} is not known")
        return self._stack_names[name]

    def stack_type(self, name: str) -> HeaderType:
        return self.program.stacks[name][0].type

    def in_union_stack(self, stack: str) -> bool:
        return stack in self._union_stack_of

    def next_name(self, stack: str) -> str:
        """The field that counts a stack's extracted elements; one for all members of a stack of unions."""
        stack = self._union_stack_of.get(stack, stack)
        if stack in self._union_stack_names:
            return f"next_{self._union_stack_names[stack]}"
        return f"next_{self.stack(stack)}"

    def stacks_of(self, name: str) -> list[str]:
        """The stacks to move when a stack, or a stack of unions, is moved."""
        return [f"{name}.{member}" for member in self.program.union_stacks.get(name, ())] or [name]

    def type(self, name: str) -> str:
        return self._type_names[name]

    def place(self, header: str, field: str, of: str = "h") -> Place:
        """Where a field lies. Raises UnsupportedProgram for a varbit field: those are no numbers."""
        if field == "$valid$":
            return Place(self.valid(header, of), 1)
        declared = self.program.field(header, field)
        if declared.most_bytes:
            raise UnsupportedProgram(f"varbit field {header}.{field} is not supported here")
        return Place(f"{self.header(header, of)}.{self.field_name(header, field)}", declared.width, declared.signed)

    def field_name(self, header: str, field: str) -> str:
        return self.field_names[self.known_header(header).type.name][field]

    def column(self, register: str) -> str:
        return self._columns[register]

    def register(self, name: str) -> Place:
        """The place of the element at C index ``at`` of a register array."""
        array = self.program.registers[name]
        return Place(f"state->rows_{array.size}[at].{self._columns[name]}", array.width)

    def action(self, id_: int) -> str:
        return self._action_names[id_]

    def value_set(self, name: str) -> str:
        return f"value_set_{identifier(name)}"

    @staticmethod
    def data_limbs(parameters: tuple[Field, ...]) -> int:
        return sum(limbs_of(parameter.width) for parameter in parameters)

    def table_data_limbs(self, table: Table) -> int:
        """Limbs of an entry's data: its action's parameters, or which member or group of a profile it names."""
        if table.profile is not None:
            return 2
        return max((self.data_limbs(action.parameters) for action in table.actions.values()), default=0)

    # -- operands --------------------------------------------------------------------------------------------

    def field_expr(self, header: str, field: str, emitter: Emitter) -> Expr:
        """A field as a number; a varbit field's bytes as a big-endian one."""
        if field != "$valid$" and (most := self.program.field(header, field).most_bytes):
            code = f"{self.header(header)}.{self.field_name(header, field)}"
            name = emitter.temporary(limbs_of(8 * most))
            emitter.line(f"load_string({name}, {limbs_of(8 * most)}, {code}, {code}_bytes);")
            return place_expr(Place(name if most > 8 else f"{name}[0]", 8 * most))
        return place_expr(self.place(header, field))

    def special(self, kind: str, value: Any, emitter: Emitter) -> Expr | None:
        """Operands that only stacks and unions have."""
        if kind in ("stack_field", "union_stack_field"):  # a field of the last extracted element
            stack, name = ".".join(value[:-1]), value[-1]
            last = f"h->{self.next_name(stack)}"
            return self._element(stack, name, f"{last} ? {last} - 1 : 0")
        if kind == "last_stack_index":
            last = f"h->{self.next_name(value['right']['value'])}"
            return Expr("c", 0, mask(32), (f"((uint64_t){last} - 1 & 0xffffffffull)",), ones=mask(32))
        if kind == "size":
            return constant(len(self.program.stacks[self.stacks_of(value["right"]["value"])[0]]))
        if kind == "access_field":
            return self._field_of(value, emitter)
        if kind == "valid_union":
            members = self.program.unions[value["right"]["value"]]
            return Expr("bool", 0, 1, (f"({' || '.join(self.valid(m.name) for m in members)})",), ones=1)
        return None

    def _element(self, stack: str, field: str, index: str) -> Expr:
        header_type = self.stack_type(stack)
        declared = next(f for f in header_type.fields if f.name == field)
        if declared.most_bytes:
            raise UnsupportedProgram(f"varbit field {field!r} of stack {stack!r} is not supported here")
        code = f"h->{self.stack(stack)}[{index}].{self.field_names[header_type.name][field]}"
        return place_expr(Place(code, declared.width, declared.signed))

    def _field_of(self, value: Mapping[str, Any], emitter: Emitter) -> Expr:
        """A field of a stack's element at an index known only at run time."""
        node, member = value["left"]["value"], ""
        if node.get("op") == "access_union_header":
            names = next(iter(self.program.union_stacks[node["left"]["value"]["left"]["value"]]), "")
            members = self.program.union_stacks[node["left"]["value"]["left"]["value"]]
            member, node = "." + members[node["right"]] if names else "", node["left"]["value"]
        if node.get("op") not in ("dereference_header_stack", "dereference_union_stack"):
            raise UnsupportedProgram(f"field access to {node.get('op')!r} is not supported")
        stack = node["left"]["value"] + member
        index = emitter.exact(self.reader(emitter).number(node["right"]))
        field = self.stack_type(stack).fields[value["right"]].name
        return self._element(stack, field, f"{index} < {len(self.program.stacks[stack])} ? {index} : 0")

    def reader(self, emitter: Emitter, local: Any = None) -> Reader:
        def no_local(index: int) -> Place:
            raise NotBmv2Json(f"action parameter {index} outside of an action")

        return Reader(emitter, self.field_expr, local or no_local, self.special)

    def emitter(self) -> Emitter:
        return Emitter(self.constants)

    # -- the file --------------------------------------------------------------------------------------------

    def source(self) -> str:
        layout, deparser = LayoutWriter(self), DeparserWriter(self)
        uses = {
            f"USES_{which.upper()}_TIME": f"{which}_global_timestamp" in self._mentioned()
            for which in ("ingress", "egress")
        }
        body = [
            "\n\n".join(ActionWriter(self, action).source() for action in self.program.actions),
            ParserWriter(self).source(),
            *(PipelineWriter(self, pipeline).source() for pipeline in self.program.pipelines.values()),
            deparser.checksums("verify_checksums", "verify"),
            deparser.checksums("update_checksums", "update"),
            deparser.deparser(),
            deparser.copy_fields(),
            deparser.learn(),
        ]
        constants = [
            f"static const uint64_t {name}[{limbs}] = "
            f"{{{', '.join(f'{(value >> (64 * i)) & mask(64):#x}ull' for i in range(limbs))}}};"
            for (value, limbs), name in self.constants.items()
        ]
        parts = [
            f"/* Generated from {self.program.name}. */",
            "\n".join(f'#include "{name}"' for name in RUNTIME_BEFORE),
            f"enum {{ {', '.join(f'{name} = {int(used)}' for name, used in uses.items())} }};",
            layout.headers(),
            PACKET,
            layout.state(),
            "\n".join(constants),
            *body,
            "\n".join(f'#include "{name}"' for name in RUNTIME_AFTER),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _mentioned(self) -> set[str]:
        """Fields of standard_metadata that something outside its declaration names: those have to be right."""
        found: set[str] = set()

        def visit(node: Any) -> None:
            if isinstance(node, list):
                if len(node) == 2 and node[0] == "standard_metadata" and isinstance(node[1], str):
                    found.add(node[1])
                for item in node:
                    visit(item)
            elif isinstance(node, dict):
                if node.get("type") == "header" and node.get("value") == "standard_metadata":
                    found.update(f.name for f in self.program.headers["standard_metadata"].type.fields)
                for item in node.values():
                    visit(item)

        visit({key: part for key, part in self.program.json.items() if key not in ("header_types", "field_aliases")})
        return found


PACKET = """\
/* What a pass through the pipeline asks for beyond its headers. */
struct requests {
    uint8_t exit, clone, digest, resubmit, recirculate;
    uint32_t clone_session, clone_fields, digest_list, resubmit_fields, recirculate_fields, truncate;
};

struct state;

struct packet {
    struct state *state;
    const uint8_t *data;     /* as received */
    uint32_t length, parsed;
    int32_t grown;           /* bytes of headers made valid, less those made invalid */
    struct requests requests;
    struct phv h;
};"""


def generate(program: Program) -> str:
    """The C source of a program; raises UnsupportedProgram, naming what the switch lacks."""
    return Generator(program).source()
