"""What is known of an iteration's packets while they are under way, slot by slot.

Two paths work on it, `serene.client.protocol` in Python and ``fastpath.c`` where all goes plainly, and either may take
over from the other in the middle.
"""

from __future__ import annotations

import numpy as np

UNSENT, IN_FLIGHT, ANSWERED = 0, 1, 2


class Exchange:
    """Of ``slots`` slots with ``lanes`` values each. Times in seconds, on the caller's clock."""

    def __init__(self, slots: int, lanes: int) -> None:
        self.state = np.full(slots, ANSWERED, np.uint8)
        self.awaited = np.zeros(slots, np.uint32)  # the seq whose echo ends the slot
        self.rounds = np.zeros(slots, np.uint32)
        self.attempts = np.zeros(slots, np.int32)  # transmissions
        self.order = np.zeros(slots, np.int64)  # of the last transmission, to notice gaps
        self.sent_at = np.zeros(slots)  # the last time
        self.due = np.zeros(slots, bool)  # to be sent again at once
        self.in_network = np.zeros(slots, bool)  # in flight, and neither lost nor waiting in the switch
        self.new_values = np.zeros((slots, lanes), np.uint32)  # as read: cumulative
        self.new_totals = np.zeros(slots, np.uint32)  # contributions that they hold
        self.pulling = False
        # Seconds an answer, while they come one after another: the network's pace is also known where no echo ever
        # measures the round trip, because the other workers' contributions are always the later ones. 0: not known.
        self.pace_s = 0.0
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Nothing is in flight: all per-packet state is reset."""
        self.transmissions = 0
        self.latest_answered = 0  # by ``order``
        self.announced = 0  # newest epoch seen beyond the worker's own
        self.announcement: np.void | None = None  # the header that it was first seen in, with its policy
        self.policy: np.void | None = None  # the header of the answer accepted last
        self.seen = 0  # highest seq that the switch has accepted
        self.heard_at = now
        self.stalled = False  # nothing has been heard since the last timeout
        self.busy_at = now  # when something last went out for the first time, or was answered
        self.flowing = False  # answers come; not yet, or not since the last timeout
        self.waited_s = 0.0  # for other workers
