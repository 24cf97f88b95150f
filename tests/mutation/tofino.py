"""Mutants of the Tofino program: the text that p4c's frontend prints, with one line changed.

The frontend prints each statement, key and entry on a line of its own; nothing else is assumed of the text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import partial

from tests.mutation.mutants import Mutant

SWAPS = {
    "relation": {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    "and/or": {"&&": "||", "||": "&&"},
    "arithmetic": {"+": "-", "-": "+", "&": "|", "|": "&", "^": "|"},
}
OPERATOR = re.compile(r"(?<= )(==|!=|<=|>=|<|>|&&|\|\||\+|-|&|\||\^)(?= )")
CONSTANT = re.compile(r"\b(\d+)w(\d+)\b")
MASK = re.compile(r"(?<=&&& )(\d+)w0b([01]+)")
CHOICE = re.compile(r"\b([a-z_]+_t)\.([A-Z_]+)\b")  # of an enumeration
STATEMENT = re.compile(r"[\w(].*;$")
NO_STATEMENTS = ("const ", "size", "transition ", "return", "bit<", "default:")
BLOCK = re.compile(r"(?:parser|control) (\w+)\(.*\{$")
ACTION = re.compile(r"^ {4}@name\(\S+\) action (\w+)\(.*\{$")
PART = re.compile(r'^ {4}@name\("Serene\w*\.(\w+)\.')


def mutants(program: str, seed: int) -> Iterator[Mutant]:
    """All mutants with one change. ``seed`` decides where there are several ways to change something, for example
    whether a number becomes larger or smaller."""
    rng = random.Random(seed)
    lines = program.split("\n")
    choices: dict[str, list[str]] = {}
    for name, members in re.findall(r"enum (?:bit<\d+> )?(\w+) \{(.*?)\}", program, re.DOTALL):
        choices[name] = re.findall(r"^\s*([A-Z_]+)\b", members, re.MULTILINE)
    action = ""
    for number, (part, line) in enumerate(_parts(lines)):
        begun = ACTION.match(line)
        action = f"{begun[1]}: " if begun else "" if line == "    }" else action
        if part:
            for operator, changed in _changes(line, choices, rng):
                place = line.strip() if len(changed.strip()) < 2 else f"{line.strip()}  ->  {changed.strip()}"
                yield Mutant("tofino", part, operator, action + place, partial(_with, lines, number, changed))


def _with(lines: list[str], number: int, changed: str) -> str:
    return "\n".join([*lines[:number], changed, *lines[number + 1 :]])


def _parts(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each line with the part of the program that it is in, empty for declarations of types, constants and sizes."""
    block = part = ""
    for line in lines:
        begun = BLOCK.match(line)
        if begun:
            block = part = begun[1].removeprefix("Serene")
            yield "", line
            continue
        if line == "}":
            block = part = ""
        if block and line.startswith("    ") and line[4] != " ":
            named = PART.match(line)
            part = named[1] if named else block
        declares = re.match(r"\s*(@\w+\(.*?\) )*(Register|Counter|Digest|Checksum|size =|RegisterAction)\b", line)
        yield ("" if declares or re.match(r"\s*@name\(\S+\) (?!action|table)\w", line) else part), line


def _changes(line: str, choices: dict[str, list[str]], rng: random.Random) -> Iterator[tuple[str, str]]:
    """(operator, the line after it)."""
    code = re.sub(r'@\w+\("[^"]*"\)', lambda found: " " * len(found[0]), line)  # names are no code
    head = code.strip()
    if head.startswith(("if (", "} else if (")):
        at = code.index("if (") + 4
        end = code.rindex(")")
        yield "condition negated", f"{line[:at]}!({line[at:end]}){line[end:]}"
    if re.match(r"\S.* : \w+\(.*\);$", head):
        yield "entry removed", ""
    elif re.match(r"\S+\s*: (exact|ternary|lpm|range)\b", head):
        return  # a key: the entries would not fit without it
    elif STATEMENT.fullmatch(head) and not head.startswith(NO_STATEMENTS) and not re.match(r"\w+\(\);$", head):
        yield "table not applied" if head.endswith(".apply();") else "statement removed", ""
    for found in OPERATOR.finditer(code):
        for operator, swaps in SWAPS.items():
            if found[0] in swaps:
                yield operator, line[: found.start()] + swaps[found[0]] + line[found.end() :]
    for found in CONSTANT.finditer(code):
        width, value = int(found[1]), int(found[2])
        other = value + rng.choice([step for step in (-1, 1) if 0 <= value + step < 1 << width])
        yield "constant", f"{line[: found.start()]}{width}w{other}{line[found.end() :]}"
    for found in MASK.finditer(code):
        bit = rng.choice([at for at, digit in enumerate(found[2]) if digit == "1"])
        yield "mask", line[: found.start(2) + bit] + "0" + line[found.start(2) + bit + 1 :]
    for found in CHOICE.finditer(code):
        others = [name for name in choices.get(found[1], []) if name != found[2]]
        if others:
            yield "another choice", f"{line[: found.start(2)]}{rng.choice(others)}{line[found.end(2) :]}"
