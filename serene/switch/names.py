"""C names for what a program has, unique even where P4 names differ in punctuation only."""

from __future__ import annotations

import re


def identifier(name: str) -> str:
    """A C identifier that a reader recognises the P4 name in."""
    text = re.sub(r"\W", "_", name)
    return text if text and not text[0].isdigit() else "_" + text


class Names:
    def __init__(self) -> None:
        self._taken: set[str] = {"h", "d", "i", "at", "packet", "state", "valid", "standard_metadata"}

    def unique(self, name: str) -> str:
        base = text = identifier(name)
        count = 1
        while text in self._taken:
            count += 1
            text = f"{base}_{count}"
        self._taken.add(text)
        return text
