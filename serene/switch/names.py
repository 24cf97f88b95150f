"""C names for what a program has, unique even where P4 names differ in punctuation only."""

from __future__ import annotations

import re

C_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef typeof union unsigned void volatile while "
    "asm".split()
)
# Lower-case macros of the C library and the compiler: fields with these names would not be what they seem.
C_MACROS = frozenset(
    "linux unix errno stdin stdout stderr s_addr s6_addr st_atime st_mtime st_ctime alloca offsetof major minor "
    "sa_handler sa_sigaction h_addr h_errno".split()
)
OURS = frozenset("h d i at packet state valid standard_metadata data entry hit key action hash size".split())


def identifier(name: str) -> str:
    """A C identifier that a reader recognises the P4 name in."""
    text = re.sub(r"\W", "_", name)
    return text if text and not text[0].isdigit() else "_" + text


class Names:
    def __init__(self) -> None:
        self._taken: set[str] = set(C_KEYWORDS | C_MACROS | OURS)

    def unique(self, name: str) -> str:
        base = text = identifier(name)
        count = 1
        while text in self._taken:
            count += 1
            text = f"{base}_{count}"
        self._taken.add(text)
        return text
