"""Reads P4_16 text into a tree: the part of the language that p4c's frontend prints for a TNA program.

``parse(text)`` returns the declarations by name. Nodes, of statements and expressions alike, are plain tuples
("kind", ...). Anything that is not understood is an error that names the place, and is never skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.tofino.tokens import CannotRead, Tokens

Node = tuple[Any, ...]
# Binary operators by precedence.
BINARY = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "++": 9, "|+|": 9, "|-|": 9, "*": 10, "%": 10, "/": 10,
}  # fmt: skip


@dataclass
class Module:
    """Declarations of a program."""

    types: dict[str, Node] = field(default_factory=dict)  # typedefs, enums, headers and structs
    constants: dict[str, tuple[Node, Node]] = field(default_factory=dict)  # name -> (type, value)
    blocks: dict[str, Node] = field(default_factory=dict)  # parsers and controls
    actions: dict[str, Node] = field(default_factory=dict)
    main: list[Node] = field(default_factory=list)  # instantiations at the top level


class Reader(Tokens):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.module = Module()
        self.type_names = {"bit", "int", "bool", "varbit", "error", "void", "tuple"}

    def skip_braces(self) -> None:
        self.expect("{")
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.next(), 0)

    def annotations(self) -> dict[str, str]:
        """Reads annotations such as @name("x"). Keeps those whose argument is one string."""
        found = {}
        while self.accept("@"):
            kind = self.name()
            if self.accept("("):
                depth, inside = 1, []
                while depth:
                    inside.append(self.next())
                    depth += {"(": 1, ")": -1}.get(inside[-1], 0)
                if len(inside) == 2 and inside[0].startswith('"'):
                    found[kind] = inside[0][1:-1]
        return found

    # -- types -----------------------------------------------------------------------------------------------

    def type(self) -> Node:
        name = self.name()
        if name in ("bit", "int", "varbit"):
            if not self.accept("<"):
                return (name, ("number", 1, None))
            width = self.expression() if self.accept("(") else None
            if width is not None:
                self.expect(")")
            else:
                width = self.primary()
            self.expect(">")
            return (name, width)
        arguments = []
        if self.accept("<"):
            while not self.accept(">"):
                arguments.append(self.type())
                self.accept(",")
        return ("named", name, *arguments)

    # -- expressions -----------------------------------------------------------------------------------------

    def expression(self, binds: int = 0) -> Node:
        left = self.unary()
        while True:
            op = self.peek()
            if op == ">" and self.peek(1) == ">" and self.tokens[self.at + 1][2] == self.tokens[self.at][2] + 1:
                op = ">>"
            if op in BINARY and BINARY[op] > binds:
                self.at += 2 if op == ">>" else 1
                left = ("binary", op, left, self.expression(BINARY[op]))
            elif op == "?" and binds == 0:
                self.next()
                yes = self.expression()
                self.expect(":")
                left = ("choice", left, yes, self.expression())
            else:
                return left

    def unary(self) -> Node:
        if self.peek() in ("!", "~", "-"):
            return ("unary", self.next(), self.unary())
        if self.peek() == "(" and self.peek(1) in self.type_names:
            start = self.at
            self.next()
            kind = self.type()
            if self.accept(")"):
                return ("cast", kind, self.unary())
            self.at = start  # a parenthesis around an expression that begins with an enum's name
        return self.postfix(self.primary())

    def primary(self) -> Node:
        kind, text, _ = self.tokens[self.at]
        if kind == "number":
            self.next()
            match = re.fullmatch(r"(\d+)([ws])(\w+)", text)
            width = None if match is None else (int(match[1]), match[2] == "s")
            return ("number", int((match[3] if match else text).replace("_", ""), 0), width)
        if text in ("true", "false"):
            self.next()
            return ("bool", text == "true")
        if text == "(":
            self.next()
            items = self.list_until(")")
            return items[0] if len(items) == 1 else ("tuple", items)
        if text == "{":
            self.next()
            return ("tuple", self.list_until("}"))
        if text in ("_", "default"):
            self.next()
            return ("any",)
        return ("name", self.name())

    def list_until(self, end: str) -> list[Node]:
        items = []
        while not self.accept(end):
            item = self.keyset()
            if self.accept("="):  # a field's or an argument's name
                item = self.keyset()
            items.append(item)
            if not self.accept(","):
                self.expect(end)
                break
        return items

    def keyset(self) -> Node:
        """Reads an expression, or a mask or range as in a table's entry or a select."""
        left = self.expression()
        if self.accept("&&&"):
            return ("mask", left, self.expression())
        if self.accept(".."):
            return ("range", left, self.expression())
        return left

    def postfix(self, node: Node) -> Node:
        while True:
            if self.accept("."):
                node = ("member", node, self.name())
            elif self.accept("["):
                high = self.expression()
                low = self.expression() if self.accept(":") else None
                self.expect("]")
                node = ("slice", node, high, low) if low is not None else ("index", node, high)
            elif self.peek() == "(":
                self.next()
                node = ("call", node, self.list_until(")"))
            elif self.peek() == "<" and self._generic_call():
                pass
            else:
                return node

    def _generic_call(self) -> bool:
        """Skips the type arguments of a call, which the frontend has checked. Returns whether there were any."""
        at, depth = self.at, 0
        while True:
            text = self.tokens[at][1]
            if text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    break
            elif text in (";", "{", "}", "&&", "||", ")") or self.tokens[at][0] == "end":
                return False
            at += 1
        if self.tokens[at + 1][1] != "(":
            return False
        if self.tokens[self.at + 1][1] not in self.type_names:
            return False
        self.at = at + 1
        return True

    # -- statements ------------------------------------------------------------------------------------------

    def block(self) -> list[Node]:
        self.expect("{")
        statements = []
        while not self.accept("}"):
            statements.append(self.statement())
        return statements

    def statement(self) -> Node:
        self.annotations()
        text = self.peek()
        if text == "{":
            return ("block", self.block())
        if text == ";":
            self.next()
            return ("block", [])
        if text == "if":
            self.next()
            self.expect("(")
            condition = self.expression()
            self.expect(")")
            yes = self.statement()
            return ("if", condition, yes, self.statement() if self.accept("else") else ("block", []))
        if text in ("return", "exit"):
            self.next()
            self.expect(";")
            return (text,)
        if text == "transition":
            return self.transition()
        if text in self.type_names and self._declares():
            kind, name = self.type(), self.name()
            value = self.expression() if self.accept("=") else None
            self.expect(";")
            return ("declare", kind, name, value)
        target = self.expression()
        if self.accept("="):
            value = self.expression()
            self.expect(";")
            return ("assign", target, value)
        self.expect(";")
        return ("do", target)

    def _declares(self) -> bool:
        """Whether this declares a variable, rather than being an expression that begins with a type's name."""
        start = self.at
        try:
            self.type()
            return self.tokens[self.at][0] == "name" and self.peek(1) in ("=", ";")
        except CannotRead:
            return False
        finally:
            self.at = start

    def transition(self) -> Node:
        self.expect("transition")
        if not self.accept("select"):
            name = self.name()
            self.expect(";")
            return ("transition", name)
        self.expect("(")
        keys = self.list_until(")")
        self.expect("{")
        cases = []
        while not self.accept("}"):
            keyset = self.keyset()
            self.expect(":")
            cases.append((keyset, self.name()))
            self.expect(";")
        return ("select", keys, cases)

    # -- declarations ----------------------------------------------------------------------------------------

    def parameters(self) -> list[Node]:
        self.expect("(")
        found = []
        while not self.accept(")"):
            self.annotations()
            direction = self.next() if self.peek() in ("in", "out", "inout") else ""
            kind = self.type()
            found.append((direction, kind, self.name()))
            if self.accept("="):
                self.expression()
            self.accept(",")
        return found

    def fields(self) -> list[tuple[str, Node]]:
        self.expect("{")
        found = []
        while not self.accept("}"):
            self.annotations()
            kind = self.type()
            found.append((self.name(), kind))
            self.expect(";")
        return found

    def action(self, full_name: str | None = None) -> Node:
        self.expect("action")
        name = self.name()
        return ("action", name, full_name or name, self.parameters(), self.block())

    def table(self, full_name: str | None) -> Node:
        self.expect("table")
        name = self.name()
        keys: list[tuple[Node, str, str | None]] = []
        actions: list[str] = []
        entries: list[tuple[list[Node], Node]] = []
        default: Node | None = None
        self.expect("{")
        while not self.accept("}"):
            self.annotations()
            self.accept("const")
            what = self.name()
            if what == "key":
                self.expect("=")
                self.expect("{")
                while not self.accept("}"):
                    key = self.expression()
                    self.expect(":")
                    kind = self.name()
                    keys.append((key, kind, self.annotations().get("name")))
                    self.expect(";")
            elif what == "actions":
                self.expect("=")
                self.expect("{")
                while not self.accept("}"):
                    self.annotations()
                    actions.append(self.name())
                    if self.accept("("):
                        self.list_until(")")
                    self.expect(";")
            elif what == "entries":
                self.expect("=")
                self.expect("{")
                while not self.accept("}"):
                    keyset = self.keyset()
                    self.expect(":")
                    call = self.expression()
                    self.annotations()
                    self.expect(";")
                    entries.append((keyset[1] if keyset[0] == "tuple" else [keyset], call))
            else:
                self.expect("=")
                value = self.expression()
                self.expect(";")
                if what == "default_action":
                    default = value if value[0] == "call" else ("call", value, [])
        return ("table", name, full_name or name, keys, actions, entries, default)

    def instance(self, full_name: str | None) -> Node:
        """Reads an instance such as ``Register<...>(...) name;``, or a RegisterAction with its apply."""
        kind = self.type()
        self.expect("(")
        arguments = self.list_until(")")
        name = self.name()
        functions: dict[str, Node] = {}
        if self.accept("="):
            self.expect("{")
            while not self.accept("}"):
                self.annotations()
                self.type()
                function = self.name()
                functions[function] = (self.parameters(), self.block())
        self.expect(";")
        return ("instance", name, full_name or name, kind, arguments, functions)

    def constant(self) -> None:
        self.expect("const")
        kind, name = self.type(), self.name()
        self.expect("=")
        self.module.constants[name] = (kind, self.expression())
        self.expect(";")

    def control_block(self, what: str) -> None:
        name = self.name()
        if self.peek() == "<":  # a declaration of the architecture
            while self.next() != ";":
                pass
            return
        parameters = self.parameters()
        if self.accept(";"):
            return
        if self.accept("("):
            raise self.error("constructor parameters are not known here")
        self.expect("{")
        locals_: list[Node] = []
        states: dict[str, list[Node]] = {}
        apply: list[Node] = []
        while not self.accept("}"):
            full_name = self.annotations().get("name")
            text = self.peek()
            if text == "action":
                locals_.append(self.action(full_name))
            elif text == "table":
                locals_.append(self.table(full_name))
            elif text == "apply":
                self.next()
                apply = self.block()
            elif text == "state":
                self.next()
                state = self.name()
                states[state] = self.block()
            elif self._declares():
                locals_.append(self.statement())
            else:
                locals_.append(self.instance(full_name))
        self.type_names.add(name)
        self.module.blocks[name] = (what, name, parameters, locals_, states if what == "parser" else apply)

    def declaration(self) -> None:
        self.annotations()
        text = self.peek()
        if text == ";":
            self.next()
        elif text == "const":
            self.constant()
        elif text == "typedef":
            self.next()
            self.annotations()
            kind, name = self.type(), self.name()
            self.module.types[name] = ("alias", kind)
            self.type_names.add(name)
            self.expect(";")
        elif text == "enum":
            self.enumeration()
        elif text in ("header", "struct"):
            self.next()
            name = self.name()
            self.module.types[name] = (text, self.fields())
            self.type_names.add(name)
        elif text in ("error", "match_kind"):
            self.next()
            self.skip_braces()
        elif text in ("extern", "package"):
            self.external(text)
        elif text in ("parser", "control"):
            self.next()
            self.control_block(text)
        elif text == "action":
            action = self.action()
            self.module.actions[action[1]] = action
        else:
            self.module.main.append(self.instance(None))

    def enumeration(self) -> None:
        self.expect("enum")
        kind = self.type() if self.peek() in ("bit", "int") else None
        name = self.name()
        values: dict[str, Node] = {}
        self.expect("{")
        while not self.accept("}"):
            self.annotations()
            member = self.name()
            values[member] = self.expression() if self.accept("=") else ("number", len(values), None)
            self.accept(",")
        self.module.types[name] = ("enum", kind, values)
        self.type_names.add(name)

    def external(self, what: str) -> None:
        self.next()
        if what == "extern" and self.peek(1) in ("{", "<") and self.peek() not in self.type_names:
            name = self.name()
            while self.peek() not in ("{", ";", "("):
                self.next()
            if self.peek() == "{":
                self.type_names.add(name)
                self.skip_braces()
                return
        elif what == "package":
            self.type_names.add(self.peek())
        while self.next() not in (";", ""):
            pass

    def read(self) -> Module:
        while self.tokens[self.at][0] != "end":
            self.declaration()
        return self.module


def parse(text: str) -> Module:
    return Reader(text).read()
