"""The parts that tests' own transports have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serene.client.compiled.fastpath import Link
from serene.client.transport.transport import LARGEST_PAYLOAD, Trouble


class Untroubled:
    """A transport without a socket of its own, which no network refuses anything."""

    def link(self, payload_bytes: int) -> Link | None:
        return None

    def trouble(self) -> Trouble | None:
        return None

    def route(self) -> str:
        return "the transport"

    def note(self, refused: int, payload_bytes: int) -> None: ...

    def close(self) -> None: ...


def received(mail: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Payloads as `Transport.receive` returns them: in rows, with their lengths."""
    rows = np.zeros((len(mail), LARGEST_PAYLOAD), np.uint8)
    for row, payload in zip(rows, mail, strict=True):
        row[: len(payload)] = np.frombuffer(payload, np.uint8)
    return rows, np.array([len(payload) for payload in mail], np.int64)
