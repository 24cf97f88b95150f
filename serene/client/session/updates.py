"""The results of an exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serene.client.session.restoration import Restored
from serene.wire import ReadMode


@dataclass(frozen=True)
class Update:
    """The result of an exchange.

    delta: float32[vector_length], the sum of all contributions since the last read, in gradient units. If the
    contribution was in fixed-point units, it is int32[vector_length] in these. contributions: their number in the slot
    with most. read_at_risk: there are more than a 32-bit difference certainly holds. epoch, round: of the own
    contribution. sync_mask, staleness, quorum, read_mode: fields of the policy in force. members: workers that take
    part. network_s, waiting_s: seconds of this exchange. clipped: values of the own gradient that were clipped.
    """

    delta: np.ndarray
    contributions: int
    epoch: int
    round: int
    sync_mask: int
    staleness: int
    quorum: int
    read_mode: ReadMode
    members: int
    network_s: float
    waiting_s: float
    retransmissions: int
    clipped: int
    read_at_risk: bool


@dataclass(frozen=True)
class CaughtUp:
    """The sum that a worker that joined late or again has to apply to its parameters: delta, contributions and
    read_at_risk as in `Update`.

    restored: how the sums of a lost session were restored, perhaps without this worker; None if it was in no lost
    session.
    """

    delta: np.ndarray
    contributions: int
    read_at_risk: bool
    restored: Restored | None
