"""Virtual time in ticks, kept by SimPy, and the packets that are under way.

What is due in one tick is done together: packets that reach the switch in the same tick go through it in one call, in
the order they were sent. A host's frames of one tick arrive in one call, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import simpy

TICK_S = 0.001

Action = Callable[[], None]


class Due:
    """What is due in a tick. to_switch: (port, frame) pairs. to_port: frames by the switch's port that they came out
    of."""

    __slots__ = ("actions", "to_port", "to_switch")

    def __init__(self) -> None:
        self.to_switch: list[tuple[int, bytes]] = []
        self.to_port: dict[int, list[bytes]] = {}
        self.actions: list[Action] = []


class Timeline:
    """Virtual time; ``now`` is in seconds, from 0. ``play`` is called with what is due in each tick.

    SimPy's unit of time is the tick, and a tick in which something is due is one event.
    """

    def __init__(self, play: Callable[[Due], None]) -> None:
        self._environment = simpy.Environment()
        self._play = play
        self._due: dict[int, Due] = {}
        self._tick = 0
        self.now = 0.0

    def after(self, delay_s: float) -> Due:
        """Where to add what is to be due after so many seconds, in the next tick at the earliest."""
        tick = self._tick + int(max(delay_s, 0.0) / TICK_S) + 1
        due = self._due.get(tick)
        if due is None:
            due = self._due[tick] = Due()
            simpy.Timeout(self._environment, tick - self._tick, tick).callbacks.append(self._begin)
        return due

    def at(self, delay_s: float, action: Action) -> None:
        self.after(delay_s).actions.append(action)

    def _begin(self, event: simpy.Event) -> None:
        self._tick = cast(int, event.value)
        self.now = self._tick * TICK_S
        self._play(self._due.pop(self._tick))

    def step(self, until_s: float = math.inf) -> bool:
        """Plays the next tick in which something is due; False if there is none up to a time in seconds."""
        if not self._due or self._environment.peek() * TICK_S > until_s:
            return False
        self._environment.step()
        return True
