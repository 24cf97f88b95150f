"""Splits lists into messages that are small enough for every client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from google.protobuf.message import Message

MESSAGE_ITEMS = 1024
MESSAGE_BYTES = 1 << 20  # gRPC clients accept 4 MiB unless configured otherwise

T = TypeVar("T", bound=Message)


def parts_of(items: Iterable[T]) -> Iterator[list[T]]:
    """Yields non-empty parts. An item above the limit is a separate part."""
    part: list[T] = []
    size = 0
    for item in items:
        if part and (len(part) == MESSAGE_ITEMS or size + item.ByteSize() > MESSAGE_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += item.ByteSize()
    if part:
        yield part
