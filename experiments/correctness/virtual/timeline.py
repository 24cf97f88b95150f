"""Virtual time in ticks, and the packets that are under way.

What happens within one tick happens together: packets that reach the switch in the same tick go through it in one
call, in the order they were sent, and a host is handed all of a tick's frames at once, as from a socket's queue.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

TICK_S = 0.001

Action = Callable[[], None]


@dataclass
class Due:
    """What a tick brings. to_switch: (port, frame); to_port: frames by the port they come out of."""

    to_switch: list[tuple[int, bytes]] = field(default_factory=list)
    to_port: dict[int, list[bytes]] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)


class Timeline:
    """``now`` in seconds, from 0."""

    def __init__(self) -> None:
        self.now = 0.0
        self._tick = 0
        self._ticks: list[int] = []  # heap
        self._due: dict[int, Due] = {}

    def after(self, delay_s: float) -> Due:
        """Where to put what is to happen then; never in the tick that is under way."""
        tick = self._tick + int(max(delay_s, 0.0) / TICK_S) + 1
        due = self._due.get(tick)
        if due is None:
            due = self._due[tick] = Due()
            heapq.heappush(self._ticks, tick)
        return due

    def at(self, delay_s: float, action: Action) -> None:
        self.after(delay_s).actions.append(action)

    def next(self, until: float | None = None) -> Due | None:
        """Goes to the next tick that brings something, if there is one (before a time)."""
        if not self._ticks or (until is not None and self._ticks[0] * TICK_S > until):
            return None
        self._tick = heapq.heappop(self._ticks)
        self.now = self._tick * TICK_S
        return self._due.pop(self._tick)
