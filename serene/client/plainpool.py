"""A collective's exchange in Python: the reference for ``pool.c``, and what runs without sockets or a C compiler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serene.client.blocks import Layout
from serene.client.client import Client
from serene.client.collective import Collective, Incomplete, Piece, most_under_way
from serene.client.exchange import ANSWERED
from serene.client.protocol import Protocol


class PlainPool:
    """One worker's, of a client that has joined; `serene.client.fastpool.FastPool` is the same in C."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._protocol = client.protocol
        self._slots = client.membership.slots
        self._begun = 0  # pieces since the session began; the next one's slot is this modulo the number of slots
        self._under_way: dict[int, Piece] = {}  # by slot, the one that has waited longest first
        self._no_more = False

    @property
    def votes(self) -> np.ndarray:
        """Of a collective that is over, as `Collective.votes`."""
        return self._collective.votes

    @property
    def clipped_values(self) -> int:
        """Of this collective; as the next one."""
        return self._collective.clipped_values

    @property
    def lost_values(self) -> int:
        return self._collective.lost_values

    @property
    def slots_under_way(self) -> list[int]:
        return list(self._under_way)

    def begin(
        self,
        values: np.ndarray,
        layout: Layout,
        signature: np.ndarray,
        vote: np.ndarray,
        seed: int,
        held_back: np.ndarray | None,
        lost: np.ndarray | None,
        until: float,
    ) -> None:
        """A collective, as `Collective`."""
        self._layout = layout
        self._collective = Collective(values, layout, self._slots, signature, vote, seed, held_back, lost)
        self._order = self._collective.pieces()
        self._no_more = False

    def begin_no_more(self) -> None:
        """No other piece: when there is one to begin, Incomplete is raised."""
        self._no_more = True

    def step(self, protocol: Protocol) -> bool:
        """Sends and receives; whether anything came."""
        slots = np.array(list(self._begin(self._order)), np.int64)
        if slots.size:
            self._client.begin_slots(slots)
        return self._client.plain_round(protocol)

    def _begin(self, order: Iterator[Piece | None]) -> Iterator[int]:
        """Writes what can begin into slots that are free, and gives their numbers."""
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
        """Takes in what was answered; whether the collective is over. Raises Disagreement, and Incomplete when a read
        is not the sum of one contribution of each worker."""
        state = self._protocol.exchange.state
        slots = np.array([slot for slot in self._under_way if state[slot] == ANSWERED], np.int64)
        if slots.size:
            read = self._protocol.finish_part(slots)
            # Nobody contributes to a slot again before all are known to have read it: so a read with as many
            # contributions as there are workers holds one of each, whatever was in force meanwhile.
            if (read.contributions != self._layout.workers).any():
                raise Incomplete(f"reads hold {read.contributions.tolist()} contributions")
            for slot, sums in zip(slots.tolist(), read.difference, strict=True):
                self._collective.answer(self._under_way.pop(slot), sums)
        return self._collective.all_begun and not self._under_way
