"""Splits P4_16 text into tokens."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
      |(?P<string>"[^"]*")
      |(?P<number>\d+[ws]\d\w*|0[xX][0-9a-fA-F_]+|0[bB][01_]+|\d[\d_]*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<op>\.\.|&&&|\|-\||\|\+\||\+\+|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>=?:;,.(){}\[\]@])""",
    re.VERBOSE | re.DOTALL,
)


class CannotRead(Exception):
    """The text is not of the P4 that this reader knows."""


class Tokens:
    """A text's tokens, without comments and preprocessor lines, and the reader's place among them."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise CannotRead(f"line {text.count(chr(10), 0, at) + 1}: {text[at : at + 40]!r}")
            if match.lastgroup != "space":
                self.tokens.append((match.lastgroup or "", match.group(), at))
            at = match.end()
        self.tokens.append(("end", "", at))
        self.text, self.at = text, 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, *texts: str) -> bool:
        if self.peek() in texts:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
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
