"""Lists that are cut, so that every client takes the messages that they are told in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from google.protobuf.message import Message

MESSAGE_ITEMS = 1024
MESSAGE_BYTES = 1 << 20  # a client of gRPC takes 4 MiB unless told otherwise

T = TypeVar("T", bound=Message)


def parts_of(items: Iterable[T]) -> Iterator[list[T]]:
    """None is empty. One item that is larger than a message should be is a part by itself."""
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
