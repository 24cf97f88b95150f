"""Reads P4_16 text into a tree: the part of the language that p4c's frontend prints for a TNA program.

``parse(text)`` returns the declarations by name. Nodes, of statements and expressions alike, are plain tuples
("kind", ...). Anything that is not understood is an error that names the place, and is never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Node = tuple[Any, ...]
T = TypeVar("T")
# Binary operators by precedence.
BINARY = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "++": 9, "|+|": 9, "|-|": 9, "*": 10, "%": 10, "/": 10,
}  # fmt: skip
TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
      |(?P<annotation>@(?P<what>\w+)(?P<arguments>\((?:"(?P<text>[^"]*)"|[^()])*\))?)
      |(?P<number>\d+[ws]\d\w*|0[xX][0-9a-fA-F_]+|0[bB][01_]+|\d[\d_]*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<op>\.\.|&&&|\|-\||\|\+\||\+\+|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>=?:;,.(){}\[\]])
      |(?P<string>"[^"]*")""",
    re.VERBOSE | re.DOTALL,
)
TYPE_NAME = r"\b(?:(?:extern|package|enum(?: bit<\d+>)?|header|struct|parser|control) (\w+)|typedef [^;]* (\w+);)"


class CannotRead(Exception):
    """The text is not of the P4 that this reader knows."""


@dataclass(eq=False)
class Module:
    """Declarations of a program."""

    types: dict[str, Node] = field(default_factory=dict)  # typedefs, enums, headers and structs
    constants: dict[str, tuple[Node, Node]] = field(default_factory=dict)  # name -> (type, value)
    blocks: dict[str, Node] = field(default_factory=dict)  # parsers and controls
    actions: dict[str, Node] = field(default_factory=dict)
    main: list[Node] = field(default_factory=list)  # instantiations at the top level


class Reader:
    """The tokens of a text, and the place among them. Annotations are no tokens."""

    def __init__(self, text: str) -> None:
        self.text, self.at, place = text, 0, 0
        self.tokens: list[tuple[str, str, int]] = []
        self.names: dict[int, str] = {}  # what @name has, by the token before which it stands
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                raise CannotRead(f"line {text.count(chr(10), 0, place) + 1}: {text[place : place + 40]!r}")
            if match["what"] == "name":
                self.names[len(self.tokens)] = match["text"]
            elif not (match["space"] or match["annotation"]):
                self.tokens.append((str(match.lastgroup), match.group(), place))
            place = match.end()
        self.tokens.append(("end", "", place))
        declared = {one or other for one, other in re.findall(TYPE_NAME, text)}
        self.type_names = {"bit", "int", "bool", "varbit", "error", "void", "tuple"} | declared
        self.module = Module()

    # -- tokens ----------------------------------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, *texts: str) -> bool:
        found = self.peek() in texts
        self.at += found
        return found

    def expect(self, *texts: str) -> None:
        for text in texts:
            if not self.accept(text):
                raise self.error(f"expected {text!r}")

    def error(self, why: str) -> CannotRead:
        place = self.tokens[min(self.at, len(self.tokens) - 1)][2]
        line = self.text.count("\n", 0, place) + 1
        return CannotRead(f"line {line}: {why} at {self.text[place : place + 40]!r}")

    def name(self) -> str:
        if self.tokens[self.at][0] != "name":
            raise self.error("expected a name")
        return self.next()

    def full_name(self) -> str:
        """The name by which the control plane knows what is declared next; empty if it has none."""
        return self.names.get(self.at, "")

    def ended(self, item: T, end: str = ";") -> T:
        """What has been read, if this token comes next."""
        self.expect(end)
        return item

    def until(self, end: str, item: Callable[[], T], separator: str = "") -> list[T]:
        found = []
        while not self.accept(end):
            found.append(item())
            if separator and not self.accept(separator):
                self.expect(end)
                break
        return found

    def braces(self, item: Callable[[], T], separator: str = "") -> list[T]:
        self.expect("{")
        return self.until("}", item, separator)

    def skip(self) -> None:
        """Skips a declaration up to its semicolon, or with the braces that come before."""
        depth = 0
        while (text := self.next()) != ";" or depth:
            depth += {"{": 1, "}": -1}.get(text, 0)
            if text == "}" and not depth:
                return

    # -- types -----------------------------------------------------------------------------------------------

    def type(self) -> Node:
        name = self.name()
        if name not in ("bit", "int", "varbit"):
            return ("named", name, *(self.until(">", self.type, ",") if self.accept("<") else ()))
        if not self.accept("<"):
            return (name, ("number", 1, None))
        return (name, self.ended(self.primary(), ">"))

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
                yes = self.ended(self.expression(), ":")
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
        if self.accept("true", "false"):
            return ("bool", text == "true")
        if self.accept("("):
            items = self.until(")", self.argument, ",")
            return items[0] if len(items) == 1 else ("tuple", items)
        if self.accept("{"):
            return ("tuple", self.until("}", self.argument, ","))
        if self.accept("_", "default"):
            return ("any",)
        return ("name", self.name())

    def argument(self) -> Node:
        """Reads an argument, or a field of a list, without its name."""
        item = self.keyset()
        return self.keyset() if self.accept("=") else item

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
            elif self.accept("("):
                node = ("call", node, self.until(")", self.argument, ","))
            elif not self._skips_type_arguments():
                return node

    def _skips_type_arguments(self) -> bool:
        """Skips the type arguments of a call, which the frontend has checked. Returns whether there were any."""
        start = self.at
        if self.accept("<") and self.peek() in self.type_names:
            try:
                self.until(">", self.type, ",")
            except CannotRead:
                self.at = start
            if self.at > start and self.peek() == "(":
                return True
        self.at = start
        return False

    # -- statements ------------------------------------------------------------------------------------------

    def block(self) -> list[Node]:
        return self.braces(self.statement)

    def statement(self) -> Node:
        text = self.peek()
        if text == "{":
            return ("block", self.block())
        if self.accept(";"):
            return ("block", [])
        if self.accept("if"):
            self.expect("(")
            condition = self.ended(self.expression(), ")")
            yes = self.statement()
            return ("if", condition, yes, self.statement() if self.accept("else") else ("block", []))
        if self.accept("return", "exit"):
            return self.ended((text,))
        if self.accept("transition"):
            return self.transition()
        if self._declares():
            kind, name = self.type(), self.name()
            return self.ended(("declare", kind, name, self.expression() if self.accept("=") else None))
        target = self.expression()
        return self.ended(("assign", target, self.expression()) if self.accept("=") else ("do", target))

    def _declares(self) -> bool:
        """Whether this declares a variable, rather than being an expression that begins with a type's name."""
        start = self.at
        if self.peek() not in self.type_names:
            return False
        try:
            self.type()
            return self.tokens[self.at][0] == "name" and self.peek(1) in ("=", ";")
        except CannotRead:
            return False
        finally:
            self.at = start

    def transition(self) -> Node:
        if not self.accept("select"):
            return self.ended(("transition", self.name()))
        self.expect("(")
        return ("select", self.until(")", self.argument, ","), self.braces(self.case))

    def case(self) -> tuple[Node, str]:
        keyset = self.ended(self.keyset(), ":")
        return self.ended((keyset, self.name()))

    # -- declarations ----------------------------------------------------------------------------------------

    def parameters(self) -> list[Node]:
        self.expect("(")
        return self.until(")", self.parameter, ",")

    def parameter(self) -> Node:
        direction = self.next() if self.peek() in ("in", "out", "inout") else ""
        return (direction, self.type(), self.name())

    def field(self) -> tuple[str, Node]:
        kind = self.type()
        return self.ended((self.name(), kind))

    def action(self) -> Node:
        full_name = self.full_name()
        self.expect("action")
        name = self.name()
        return ("action", name, full_name or name, self.parameters(), self.block())

    def table(self) -> Node:
        full_name = self.full_name()
        self.expect("table")
        name = self.name()
        parts: dict[str, Any] = {"key": [], "actions": [], "entries": [], "default_action": None}
        self.braces(lambda: parts.update([self.part_of_table()]))
        return (
            "table", name, full_name or name, parts["key"], parts["actions"], parts["entries"], parts["default_action"],
        )  # fmt: skip

    def part_of_table(self) -> tuple[str, Any]:
        self.accept("const")
        what = self.ended(self.name(), "=")
        lists: dict[str, Callable[[], Any]] = {"key": self.key, "actions": self.known_action, "entries": self.entry}
        if what in lists:
            return what, self.braces(lists[what])
        value = self.ended(self.expression())
        return what, value if value[0] == "call" else ("call", value, [])

    def key(self) -> tuple[Node, str]:
        key = self.ended(self.expression(), ":")
        return self.ended((key, self.name()))

    def known_action(self) -> str:
        name = self.name()
        if self.accept("("):
            self.until(")", self.argument, ",")
        return self.ended(name)

    def entry(self) -> tuple[list[Node], Node]:
        keyset = self.ended(self.keyset(), ":")
        return self.ended((keyset[1] if keyset[0] == "tuple" else [keyset], self.expression()))

    def instance(self) -> Node:
        """Reads an instance such as ``Register<...>(...) name;``, or a RegisterAction with its apply."""
        full_name, kind = self.full_name(), self.type()
        self.expect("(")
        arguments = self.until(")", self.argument, ",")
        name = self.name()
        functions = dict(self.braces(self.function)) if self.accept("=") else {}
        return self.ended(("instance", name, full_name or name, kind, arguments, functions))

    def function(self) -> tuple[str, Node]:
        self.type()
        return self.name(), (self.parameters(), self.block())

    def control_block(self, what: str) -> None:
        name = self.name()
        if self.peek() == "<":  # a declaration of the architecture
            self.skip()
            return
        parameters = self.parameters()
        if self.accept(";"):
            return
        if self.peek() == "(":
            raise self.error("constructor parameters are not known here")
        locals_: list[Node] = []
        bodies: dict[str, list[Node]] = {}  # a parser's states; of a control "apply"
        self.braces(lambda: self.part_of_block(locals_, bodies))
        body = bodies if what == "parser" else bodies.get("apply", [])
        self.module.blocks[name] = (what, name, parameters, locals_, body)

    def part_of_block(self, locals_: list[Node], bodies: dict[str, list[Node]]) -> None:
        text = self.peek()
        if self.accept("state", "apply"):
            name = self.name() if text == "state" else text
            bodies[name] = self.block()
        elif text == "action":
            locals_.append(self.action())
        elif text == "table":
            locals_.append(self.table())
        else:
            locals_.append(self.statement() if self._declares() else self.instance())

    def declaration(self) -> None:
        types, text = self.module.types, self.peek()
        if self.accept("const"):
            kind, name = self.type(), self.ended(self.name(), "=")
            self.module.constants[name] = self.ended((kind, self.expression()))
        elif self.accept("typedef"):
            kind = self.type()
            types[self.ended(self.name())] = ("alias", kind)
        elif self.accept("enum"):
            of_type = self.type() if self.peek() in ("bit", "int") else None
            name, values = self.name(), dict[str, Node]()
            self.braces(lambda: values.update([self.member(len(values))]), ",")
            types[name] = ("enum", of_type, values)
        elif self.accept("header", "struct"):
            name = self.name()
            types[name] = (text, self.braces(self.field))
        elif self.accept("error", "match_kind", "extern", "package"):
            self.skip()
        elif self.accept("parser", "control"):
            self.control_block(text)
        elif text == "action":
            action = self.action()
            self.module.actions[action[1]] = action
        elif not self.accept(";"):
            self.module.main.append(self.instance())

    def member(self, number: int) -> tuple[str, Node]:
        name = self.name()
        return name, self.expression() if self.accept("=") else ("number", number, None)

    def read(self) -> Module:
        while self.tokens[self.at][0] != "end":
            self.declaration()
        return self.module


def parse(text: str) -> Module:
    return Reader(text).read()
