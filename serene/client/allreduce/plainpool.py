"""A collective's exchange in Python: the reference for ``pool.c``, also used without a socket or a C compiler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serene.client.allreduce.collective import Call, Collective, Incomplete, Piece, most_under_way
from serene.client.protocol.exchange import ANSWERED
from serene.client.protocol.protocol import Protocol
from serene.client.session.client import Client


class PlainPool:
    """The pieces of one worker's pool, by a client that has joined; `FastPool` is the same in C."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._protocol = client.protocol
        self._slots = client.membership.slots
        self._begun = 0  # pieces since the session began; the next piece's slot is this modulo the number of slots
        self._under_way: dict[int, Piece] = {}  # by slot, in the order in which they were begun
        self._no_more = False

    @property
    def votes(self) -> np.ndarray:
        """The sum of all workers' votes in a finished collective: uint32[VOTE_LANES]."""
        return self._collective.votes

    @property
    def clipped_values(self) -> int:
        """The number of this worker's values that the collective has clipped so far."""
        return self._collective.clipped_values

    @property
    def lost_values(self) -> int:
        """The number of this worker's values that the collective has lost so far."""
        return self._collective.lost_values

    @property
    def slots_under_way(self) -> list[int]:
        """The slots of unfinished pieces, in the order of their beginning."""
        return list(self._under_way)

    def begin(self, call: Call) -> None:
        """Begins a collective."""
        self._collective = Collective(call, self._slots)
        self._order = self._collective.pieces()
        self._no_more = False

    def begin_no_more(self) -> None:
        """From now on ``step`` raises Incomplete instead of beginning a piece."""
        self._no_more = True

    def step(self, protocol: Protocol) -> bool:
        """Begins the possible pieces, sends and receives once. Returns whether anything arrived. Raises Incomplete."""
        slots = np.array(list(self._begin(self._order)), np.int64)
        if slots.size:
            self._client.begin_slots(slots)
        return self._client.plain_round(protocol)

    def _begin(self, order: Iterator[Piece | None]) -> Iterator[int]:
        """Writes the possible pieces into free slots, and returns the slots' numbers."""
        most = most_under_way(self._slots)
        while (self._begun - most) % self._slots not in self._under_way:
            piece = next(order, None)
            if piece is None:
                break
            if self._no_more:
                raise Incomplete("pieces are left")
            slot = self._begun % self._slots
            self._protocol.values[slot] = self._collective.contribution(piece)
            self._under_way[slot] = piece
            self._begun += 1
            yield slot

    def end(self) -> bool:
        """Processes the answers. Returns whether the collective is over. Raises Disagreement, and Incomplete if a read
        is not the sum of one contribution from each worker."""
        state = self._protocol.exchange.state
        slots = np.array([slot for slot in self._under_way if state[slot] == ANSWERED], np.int64)
        if slots.size:
            read = self._protocol.finish_slots(slots)
            # No worker contributes to a slot again before all have certainly read it. So a read with as many
            # contributions as workers holds one of each, under any policy.
            workers = self._collective.layout.workers
            if (read.contributions != workers).any():
                raise Incomplete(f"reads have {read.contributions.tolist()} contributions, not {workers}")
            for slot, sums in zip(slots.tolist(), read.difference, strict=True):
                self._collective.answer(self._under_way.pop(slot), sums)
        return self._collective.all_begun and not self._under_way
