"""A primitive's operands, each checked for its type when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from serene.embedded.program.errors import NotBmv2Json
from serene.errors import choices

Operand = Mapping[str, Any]
STACKS = ("header_stack", "header_union_stack")


class Operands:
    def __init__(self, items: Sequence[Operand]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Operand]:
        return iter(self._items)

    def __getitem__(self, at: int) -> Operand:
        if at >= len(self._items):
            raise NotBmv2Json(f"operand number {at + 1} is missing: there are {len(self._items)}")
        return self._items[at]

    def name(self, at: int, *kinds: str) -> str:
        """The name in an operand that refers to a header, a stack, a register and so on."""
        return str(operand_value(self[at], *kinds))

    def field(self, at: int) -> tuple[str, str]:
        header, field = operand_value(self[at], "field")
        return header, field

    def integer(self, at: int) -> int:
        """The value of an operand that has to be a constant and not negative."""
        value = int(operand_value(self[at], "hexstr"), 16)
        if value < 0:
            raise NotBmv2Json(f"an operand of {value}: expected 0 or more")
        return value


def operand_value(operand: Any, *kinds: str) -> Any:
    """An operand's value. Raises NotBmv2Json unless its type is one of these kinds."""
    kind = operand.get("type") if isinstance(operand, Mapping) else operand
    if not isinstance(operand, Mapping) or kind not in kinds:
        raise NotBmv2Json(f"an operand of type {kind!r} where {choices(kinds)} is expected")
    return operand["value"]
