"""Ordinary traffic: which host address is behind which port, as the data plane's digests tell."""

from __future__ import annotations

from typing import Any

import finsy as fy

from controller import entries


class Learning:
    """What has been learned, and the updates that teach it to the switch."""

    def __init__(self) -> None:
        self.port_of: dict[str, int] = {}

    def updates(self, mac: str, port: int) -> list[Any]:
        """The updates after ``mac`` was seen on ``port``: none when that is known, or is no host's."""
        if int(mac[:2], 16) & 1:  # a group address is no host's
            return []
        before = self.port_of.get(mac)
        if before == port:
            return []
        self.port_of[mac] = port
        if before is None:
            return [+entries.known_source(mac, port), +entries.forward(mac, port)]
        return [
            -fy.P4TableEntry("known_source", match=entries.known_source(mac, before).match),
            +entries.known_source(mac, port),
            ~entries.forward(mac, port),
        ]

    def forget(self, mac: str) -> None:
        """The switch did not take it: the next digest tries again."""
        self.port_of.pop(mac, None)
