"""Golden tables: text files of inputs and what is expected of each.

A section begins with a line ``# NAME``. Each of its lines has an input, an arrow and what is expected. ``\\n``, ``\\r``
and ``\\t`` in an input are those characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}


def rows(table: Path) -> Iterator[tuple[str, str, str]]:
    """(section, input, what is expected)"""
    section = ""
    for line in table.read_text().splitlines():
        if line.startswith("# "):
            section = line.removeprefix("# ")
        elif line:
            text, arrow, expected = line.partition(" => ")
            assert arrow, line
            yield section, re.sub(r"\\[nrt]", lambda escape: ESCAPES[escape[0]], text), expected.strip()


def section(table: Path, name: str) -> list[tuple[str, str]]:
    """(input, what is expected) of each row in a section."""
    found = [(text, expected) for of, text, expected in rows(table) if of == name]
    assert found, name
    return found
