"""Writes a TNA program's blocks as Python functions, once for each program. Walking the tree for each packet would take
four times as long.

A block's parameters and variables are entries of a dict. Those of actions and register actions, and variables of
statements, are local variables ``v_NAME``. In the functions ``m`` is the machine, ``d`` what the block declares, and
``s`` that dict.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tests.tofino.p4text import Module, Node
from tests.tofino.values import BOOL, Type, bytes_of, predicate, signed, wrap

Source = tuple[str, Type | None]  # an expression in Python, and its type in P4
HELPERS: dict[str, Any] = {"bytes_of": bytes_of, "predicate": predicate, "signed": signed}


class CannotRun(Exception):
    """The program uses something that this machine does not implement, or that hardware could not do."""


class Code:
    """A program's types and constants, and its functions by block and name."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._types: dict[Node, Type] = {}
        self._fields: dict[str, dict[str, Type]] = {}  # the fields of headers and structs
        self._blocks: dict[str, dict[str, Any]] = {}
        self.constants: dict[str, tuple[int, Type | None]] = {}
        for name, (kind, value) in module.constants.items():
            resolved = self.type(kind)
            self.constants[name] = wrap(self.number(value), resolved), resolved

    def functions(self, block: str) -> dict[str, Any]:
        if block not in self._blocks:
            made = dict(HELPERS)
            exec(compile(Writer(self, self.module.blocks[block]).block(), block, "exec"), made)
            self._blocks[block] = made
        return self._blocks[block]

    def number(self, node: Node) -> int:
        """The value of a constant expression."""
        return int(eval(Writer(self).expression(node)[0], dict(HELPERS)))

    def type(self, node: Node) -> Type:
        if node not in self._types:
            self._types[node] = self._resolve(node)
        return self._types[node]

    def _resolve(self, node: Node) -> Type:
        if node[0] in ("bit", "int"):
            return (node[0], self.number(node[1]))
        if node[1] in ("bool", "void"):
            return BOOL
        known = self.module.types.get(node[1])
        if known is None:
            raise CannotRun(f"type {node[1]}")
        if known[0] == "alias":
            return self.type(known[1])
        if known[0] == "enum":
            return self.type(known[1]) if known[1] else ("bit", 8)
        return ("record", node[1])

    def fields(self, name: str) -> dict[str, Type]:
        if name not in self._fields:
            self._fields[name] = {field: self.type(kind) for field, kind in self.module.types[name][1]}
        return self._fields[name]


@cache
def code_of(module: Module) -> Code:
    return Code(module)


def wrapped(source: str, kind: Type | None) -> str:
    """A number as the type holds it."""
    if kind is None or kind == BOOL:
        return source
    if kind[0] == "record":
        raise CannotRun(f"a number as {kind[1]}")
    return f"signed({source}, {kind[1]})" if kind[0] == "int" else f"({source} & {(1 << kind[1]) - 1})"


def fitted(value: Source, kind: Type | None) -> str:
    """The same, unless the value's own type says that it fits already."""
    source, own = value
    fits = own == kind or (own and kind and own[0] == kind[0] == "bit" and own[1] <= kind[1])
    return source if fits else wrapped(source, kind)


class Writer:
    """Writes the functions of a block, or a constant expression."""

    def __init__(self, code: Code, block: Node | None = None) -> None:
        self.code, self.block_node = code, block
        self.lines: list[str] = []
        self.depth = 0
        self.result = ""  # what a function returns
        self.shared: dict[str, Type] = {}
        self.local: dict[str, Type] = {}
        self.items: dict[str, Node] = dict(code.module.actions) if block else {}
        for _, kind, name in block[2] if block else ():
            self.shared[name] = ("packet",) if kind[1] in ("packet_in", "packet_out") else code.type(kind)
        for item in block[3] if block else ():
            if item[0] == "declare":
                self.shared[item[2]] = code.type(item[1])
            else:
                self.items[item[1]] = item

    # -- functions -------------------------------------------------------------------------------------------

    def block(self) -> str:
        block = self.block_node
        assert block
        self.function("declare", {}, [])
        for item in block[3]:
            if item[0] == "declare":
                self.line(f"    s[{item[2]!r}] = {self.first(self.code.type(item[1]), item[3])}")
        for name, item in self.items.items():
            if item[0] == "action":
                self.function(f"a_{name}", {p[2]: self.code.type(p[1]) for p in item[3]}, item[4])
            elif item[0] == "table":
                self.table(name, item)
            elif item[3][1] == "RegisterAction":
                self.register_action(name, *item[5]["apply"])
        if isinstance(block[4], dict):
            for state, statements in block[4].items():
                self.function(f"state_{state}", {}, statements)
                self.line("    return 'reject'")
        else:
            self.function("apply", {}, block[4])
        return "\n".join(self.lines)

    def function(self, name: str, parameters: dict[str, Type], body: list[Node], result: str = "") -> None:
        self.local, self.result = dict(parameters), result
        self.line(f"def {name}({', '.join(['m, d, s', *(f'v_{parameter}' for parameter in parameters)])}):")
        self.statements(body)
        self.result = ""

    def register_action(self, name: str, parameters: list[Node], body: list[Node]) -> None:
        """Returns the cell's new value, and what the action puts out."""
        kinds = {parameter[2]: self.code.type(parameter[1]) for parameter in parameters}
        cell, *out = kinds
        self.local, self.result = kinds, f"v_{cell}, {f'v_{out[0]}' if out else 0}"
        self.line(f"def r_{name}(s, v_{cell}):")
        if out:
            self.line(f"    v_{out[0]} = 0")
        self.statements(body)
        self.line(f"    return {self.result}")
        self.result = ""

    def table(self, name: str, item: Node) -> None:
        """Looks the table up, acts, and returns whether an entry matched."""
        _, _, _, keys, _, entries, default = item
        self.local = {}
        self.line(f"def t_{name}(m, d, s):")
        for number, (key, _) in enumerate(keys):
            self.line(f"    k{number} = int({self.expression(key)[0]})")
        all_keys = "".join(f"k{number}, " for number in range(len(keys)))
        self.line(f"    added = d[{name!r}].added.get(({all_keys}))")
        self.line("    if added is not None:")
        self.line("        m._added(added, d, s)")
        self.line("        return True")
        for keyset, call in entries:
            self.line(f"    if {self.matches(keyset, [f'k{number}' for number in range(len(keys))])}:")
            self.line(f"        {self.expression(call)[0]}")
            self.line("        return True")
        if default is not None:
            self.line(f"    {self.expression(default)[0]}")
        self.line("    return False")

    def matches(self, keyset: list[Node], values: Sequence[str]) -> str:
        tests = []
        for item, value in zip(keyset, values, strict=True):
            if item[0] == "mask":
                wanted, mask = (self.code.number(part) for part in item[1:])
                tests.append(f"({value} ^ {wanted}) & {mask} == 0")
            elif item[0] == "range":
                tests.append(f"{self.code.number(item[1])} <= {value} <= {self.code.number(item[2])}")
            elif item[0] != "any":
                tests.append(f"{value} == {self.code.number(item)}")
        return " and ".join(tests) or "True"

    # -- statements ------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def statements(self, statements: list[Node]) -> None:
        self.depth += 1
        self.line("pass")
        for statement in statements:
            self.statement(statement)
        self.depth -= 1

    def statement(self, statement: Node) -> None:
        kind = statement[0]
        if kind == "assign":
            self.assign(statement[1], self.expression(statement[2]))
        elif kind == "do":
            self.line(self.expression(statement[1])[0])
        elif kind == "if":
            self.line(f"if {self.expression(statement[1])[0]}:")
            self.statements([statement[2]])
            self.line("else:")
            self.statements([statement[3]])
        elif kind == "block":
            for each in statement[1]:
                self.statement(each)
        elif kind == "declare":
            declared = self.code.type(statement[1])
            self.line(f"v_{statement[2]} = {self.first(declared, statement[3])}")
            self.local[statement[2]] = declared
        elif kind == "return":
            self.line(f"return {self.result}")
        elif kind == "transition":
            self.line(f"return {statement[1]!r}")
        elif kind == "select":
            self.select(statement)
        else:
            raise CannotRun(str(statement))

    def first(self, kind: Type, value: Node | None) -> str:
        """What a variable of this type holds when it is declared."""
        if kind[0] == "record":
            return f"m._noise_record({kind[1]!r})"
        return "0" if value is None else fitted(self.expression(value), kind)

    def assign(self, target: Node, value: Source) -> None:
        if target[0] == "slice":
            high, low = (self.code.number(node) for node in target[2:])
            old, kind = self.expression(target[1])
            mask = ((1 << (high - low + 1)) - 1) << low
            self.assign(target[1], (f"({old} & {~mask} | {value[0]} << {low} & {mask})", kind))
            return
        place, kind = self.expression(target)
        if target[0] not in ("member", "name") or kind is None:
            raise CannotRun(str(target))
        if kind[0] == "record":
            self.line(f"{place}.fields.update({value[0]}.fields)")
        else:
            self.line(f"{place} = {fitted(value, kind)}")

    def select(self, statement: Node) -> None:
        names = [f"k{number}" for number in range(len(statement[1]))]
        for name, key in zip(names, statement[1], strict=True):
            self.line(f"{name} = int({self.expression(key)[0]})")
        for keyset, target in statement[2]:
            items = keyset[1] if keyset[0] == "tuple" else [keyset] * len(names)
            self.line(f"if {self.matches(items, names)}:")
            self.line(f"    return {target!r}")

    # -- expressions -----------------------------------------------------------------------------------------

    def expression(self, node: Node) -> Source:
        kind = node[0]
        writers: dict[str, Callable[..., Source]] = {
            "member": self.member, "name": self.name, "binary": self.binary, "call": self.call, "cast": self.cast,
            "slice": self.slice, "unary": self.unary, "choice": self.choice, "tuple": self.tuple,
            "number": self.number,
        }  # fmt: skip
        if kind == "bool":
            return str(node[1]), BOOL
        if kind not in writers:
            raise CannotRun(str(node))
        return writers[kind](*node[1:])

    def number(self, value: int, sort: tuple[int, bool] | None) -> Source:
        kind = None if sort is None else ("int" if sort[1] else "bit", sort[0])
        return str(wrap(value, kind)), kind

    def name(self, name: str) -> Source:
        if name in self.local:
            return f"v_{name}", self.local[name]
        if name in self.shared:
            return f"s[{name!r}]", self.shared[name]
        if name in self.code.constants:
            value, kind = self.code.constants[name]
            return str(value), kind
        raise CannotRun(name)

    def member(self, of: Node, field: str) -> Source:
        if of[0] == "name" and self.code.module.types.get(of[1], ("",))[0] == "enum":
            kind = self.code.type(("named", of[1]))
            return str(wrap(self.code.number(self.code.module.types[of[1]][2][field]), kind)), kind
        source, kind_of = self.expression(of)
        if kind_of and kind_of[0] == "record":
            return f"{source}.fields[{field!r}]", self.code.fields(kind_of[1])[field]
        if kind_of == BOOL and field == "hit":
            return source, BOOL
        raise CannotRun(f"{source}.{field}")

    def binary(self, op: str, of_left: Node, of_right: Node) -> Source:
        left, right = self.expression(of_left), self.expression(of_right)
        if op in ("&&", "||"):
            return f"({left[0]} {'and' if op == '&&' else 'or'} {right[0]})", BOOL
        if op == "++":
            assert left[1] and right[1]
            return f"({left[0]} << {right[1][1]} | {right[0]})", ("bit", left[1][1] + right[1][1])
        if op in ("<<", ">>"):
            return wrapped(f"({left[0]} {op} {right[0]})", left[1]), left[1]
        kind = left[1] or right[1]
        one, other = fitted(left, kind), fitted(right, kind)
        if op in ("==", "!=", "<", ">", "<=", ">="):
            return f"({one} {op} {other})", BOOL
        if op == "|-|":
            return f"max({one} - {other}, 0)", kind
        if op == "|+|":
            assert kind
            return f"min({one} + {other}, {(1 << kind[1]) - 1})", kind
        result = f"({one} {'//' if op == '/' else op} {other})"
        return (result if op in ("&", "|", "^") else wrapped(result, kind)), kind

    def unary(self, op: str, of: Node) -> Source:
        source, kind = self.expression(of)
        return (f"(not {source})", BOOL) if op == "!" else (wrapped(f"({op}{source})", kind), kind)

    def choice(self, condition: Node, yes: Node, no: Node) -> Source:
        one, other = self.expression(yes), self.expression(no)
        kind = one[1] or other[1]
        return f"({fitted(one, kind)} if {self.expression(condition)[0]} else {fitted(other, kind)})", kind

    def cast(self, to: Node, of: Node) -> Source:
        kind, value = self.code.type(to), self.expression(of)
        if kind[0] == "record":  # a list of fields
            return value
        if kind == BOOL:
            return f"bool({value[0]})", BOOL
        return fitted((f"int({value[0]})", None) if value[1] == BOOL else value, kind), kind

    def slice(self, of: Node, *bounds: Node) -> Source:
        high, low = (self.code.number(bound) for bound in bounds)
        width = high - low + 1
        return f"({self.expression(of)[0]} >> {low} & {(1 << width) - 1})", ("bit", width)

    def tuple(self, items: list[Node]) -> Source:
        """The values with their types."""
        pairs = ", ".join(f"({source}, {kind!r})" for source, kind in map(self.expression, items))
        return f"[{pairs}]", ("list",)

    # -- calls -----------------------------------------------------------------------------------------------

    def call(self, target: Node, of_arguments: list[Node]) -> Source:
        arguments = [self.expression(argument) for argument in of_arguments]
        if target[0] == "name":
            parameters = self.items[target[1]][3]
            given = (
                fitted(argument, self.code.type(parameter[1]))
                for argument, parameter in zip(arguments, parameters, strict=True)
            )
            return f"a_{target[1]}({', '.join(itertools.chain(('m, d, s',), given))})", None
        holder, method = target[1:]
        sources = [source for source, _ in arguments]
        if holder == ("name", "this"):
            return f"predicate({', '.join(sources)})", ("bit", 4)
        if holder[0] == "name" and holder[1] in self.items:
            return self.method(holder[1], self.items[holder[1]], method, sources)
        source, kind = self.expression(holder)
        if kind == ("packet",) and method in ("advance", "extract", "emit"):
            return f"{source}.{method}({sources[0]})", None
        if not kind or kind[0] != "record" or method not in ("isValid", "setValid", "setInvalid"):
            raise CannotRun(f"{source}.{method}")
        if method == "isValid":
            return f"{source}.valid", BOOL
        return f"{source}.set_valid({method == 'setValid'})", None

    def method(self, name: str, item: Node, method: str, arguments: list[str]) -> Source:
        """Of a table, a control or an extern."""
        if item[0] == "table":
            return f"t_{name}(m, d, s)", BOOL
        place, kind = f"d[{name!r}]", item[3]
        if kind[1] in self.code.module.blocks:
            return f"m._apply({place}, [{', '.join(arguments)}])", None
        if kind[1] == "RegisterAction":
            return f"m._execute({place}, {arguments[0]}, s)", self.code.type(kind[4])
        if kind[1] == "Counter":
            return f"m._count({place}, {arguments[0]})", None
        if kind[1] == "Hash":
            return f"m._hash({place}, {arguments[0]})", self.code.type(kind[2])
        if kind[1] == "Digest":
            return f"m._tell({arguments[0]})", None
        if kind[1] == "Checksum" and method == "add":
            return f"m._add({place}, bytes_of({arguments[0]}))", None
        if kind[1] == "Checksum" and method == "verify":
            return f"m._verify({place})", BOOL
        if kind[1] == "Checksum":
            return f"m._checksum({arguments[0]})", ("bit", 16)
        raise CannotRun(f"{kind[1]} {method}")
