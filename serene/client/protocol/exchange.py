"""The state of an unfinished iteration's packets, slot by slot.

Two implementations use it: protocol.py in Python, and ``fastpath.c`` for the common case. Either may take over from the
other in the middle of an iteration.
"""

from __future__ import annotations

import numpy as np

UNSENT, IN_FLIGHT, ANSWERED = 0, 1, 2


class Exchange:
    """The state of ``slots`` slots with ``lanes`` values each; every array has an element, or a row, for each slot.
    Times in seconds, on the caller's clock."""

    def __init__(self, slots: int, lanes: int) -> None:
        self.state = np.full(slots, ANSWERED, np.uint8)
        self.awaited = np.zeros(slots, np.uint32)  # the seq whose echo answers the slot
        self.rounds = np.zeros(slots, np.uint32)
        self.attempts = np.zeros(slots, np.int32)  # transmissions of this iteration's packet
        self.order = np.zeros(slots, np.int64)  # the number of the last transmission, to detect gaps
        self.sent_at = np.zeros(slots)  # the time of that transmission
        self.due = np.zeros(slots, bool)  # to be sent again at once
        self.in_network = np.zeros(slots, bool)  # in flight, and neither lost nor waiting in the switch
        # Cumulative reads. A slot without a new read since it was finished has its read in the protocol's
        # ``held_values``.
        self.new_values = np.zeros((slots, lanes), np.uint32)
        self.new_totals = np.zeros(slots, np.uint32)  # contributions that these hold
        self.pulling = False
        # Seconds from one answer to the next in a run of answers. It measures the network's pace even if no echo
        # measures the round trip, because the other workers' contributions always come later. 0: not known.
        self.pace_s = 0.0
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Resets the state of packets, when nothing is in flight."""
        self.transmissions = 0
        self.latest_answered = 0  # the largest ``order`` of an answered slot
        self.announced = 0  # the newest announced epoch after the worker's own; 0: none
        self.announcement: np.void | None = None  # the first header that announced it, with its policy
        self.policy: np.void | None = None  # the header of the answer accepted last
        self.seen = 0  # highest seq that the switch has accepted
        self.heard_at = now  # time of the last accepted answer
        self.stalled = False  # no answer has been accepted since the last timeout
        self.busy_at = now  # time of the last first transmission or answer
        # An answer has been accepted; since then there was no timeout, and always something in flight or to send.
        # Packets that become ready later, such as a collective's second phase, are answered after a round trip, and
        # after the others have contributed: neither measures the pace. (BBR also leaves out such application-limited
        # samples, draft-ietf-ccwg-bbr.)
        self.flowing = False
        self.waited_s = 0.0  # for other workers
