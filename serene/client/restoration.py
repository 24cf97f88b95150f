"""After a switch has lost its state, the workers restore the sums and go on.

A switch that starts anew knows nothing; the job begins a new session, and every worker still holds the cumulative sum
of the old one as it read it last. One worker, the donor, contributes the sum that it holds as if it were a gradient;
after that the switch has what the donor had, differences of two reads mean what they always meant, and parameters that
were behind (or ahead) are corrected by their first difference. It takes two rounds under BSP, whose snapshots show
everybody the same:

1. the vote: each worker writes what it has into lanes of its own, from slot 0 on, and reads everybody's. Which lanes
   these are depends on its number alone: earlier workers may have left, and numbers do not move up;
2. the return: each worker subtracts its vote again, and the donor adds the sum that it holds.

The donor is the worker whose sum holds most contributions. What the others had read beyond it is lost and counted;
an iteration that was under way is either in the donor's sum already or is repeated.

A session may be lost before all have read what the second round restored. A worker that has read it votes with the
newer session and is the donor; its counts of contributions and rounds began anew, so the others cannot compare theirs
with them. But nobody has read the second round before all have read the first: the others go by what that vote meant
for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from serene.client.protocol import MOST_WORKERS, Protocol, Read
from serene.errors import SereneError
from serene.wire import ReadMode

ROUNDS = 2  # with which a session begins that follows a lost one
LANES_PER_WORKER = 5


class NoRoomToVote(SereneError):
    """The job's slots have fewer lanes than its workers' votes need."""


@dataclass(frozen=True)
class Vote:
    """What one worker has of the lost session.

    finished: iterations whose answers it has all read. held: contributions in the sum that it holds (in the slot with
    fewest). epoch, round: of the iteration finished last; 0 and -1 for none. session: the lost one; 0 for none.
    """

    finished: int = 0
    held: int = 0
    epoch: int = 0
    round: int = -1
    session: int = 0

    def lanes(self) -> list[int]:
        """As unsigned 32-bit numbers, LANES_PER_WORKER of them."""
        return [self.finished, self.held, self.epoch, self.round + 1, self.session]


@dataclass(frozen=True)
class Restored:
    """How a worker goes on.

    donor: the number of the worker whose sum was restored. contained: this worker's unfinished iteration is in the
    restored sum and must not be contributed again. repeated: it may be in that sum, and is contributed again all the
    same, because nobody can tell. lost: contributions per slot (of all workers together) that somebody had read and the
    restored sum does not hold. missed: contributions per slot that the restored sum holds beyond what this worker had
    read; negative if it holds fewer.
    """

    donor: int
    contained: bool
    repeated: bool
    lost: int
    missed: int


def ballot(vote: Vote, worker: int, workers: int, slots: int, lanes: int) -> np.ndarray:
    """The first round's contribution of worker number ``worker`` of ``workers``, int32[slots, lanes]: its vote in its
    lanes, elsewhere 0. Raises NoRoomToVote."""
    voters = max(workers, worker + 1)
    needed, there = LANES_PER_WORKER * voters, slots * lanes
    if needed > there:
        raise NoRoomToVote(
            f"the switch has lost the job's sums, and they cannot be restored: {voters} workers vote in {needed} "
            f"lanes, the job has {there} ({slots} x {lanes}); start the job anew, with {there // LANES_PER_WORKER} "
            "workers or fewer, or a longer vector"
        )
    values = np.zeros((slots, lanes), np.int32)
    start = LANES_PER_WORKER * worker
    values.reshape(-1)[start : start + LANES_PER_WORKER] = np.array(vote.lanes(), np.uint32).view(np.int32)
    return values


def count(sums: np.ndarray) -> list[Vote]:
    """The votes by worker number, from the first round's sum; a worker that is not there any more has an empty one.
    sums: uint32[slots, lanes]."""
    voters = min(MOST_WORKERS, sums.size // LANES_PER_WORKER)
    lanes = sums.reshape(-1)[: LANES_PER_WORKER * voters].reshape(voters, LANES_PER_WORKER)
    return [Vote(int(row[0]), int(row[1]), int(row[2]), int(row[3]) - 1, int(row[4])) for row in lanes]


def donor_of(votes: list[Vote]) -> int:
    """The number of the worker whose sum is restored: of those with the newest session, the one that holds most
    contributions; of equals, the first."""

    def rank(worker: int) -> tuple[int, int, int, int]:
        vote = votes[worker]
        return vote.session, vote.held, vote.finished, -worker

    return max(range(len(votes)), key=rank)


def outcome(
    votes: list[Vote],
    worker: int,
    in_flight: tuple[int, int] | None,
    last: Read | None,
    known: Mapping[int, Restored] | None = None,
    over_racks: int | None = None,
) -> Restored:
    """What the votes mean for worker number ``worker``.

    in_flight: epoch and round of its unfinished iteration, if there is one. last: what it read last in the lost
    session. known: what earlier votes meant for it, by the session that began with them. over_racks: how many workers
    the lost session had, if its ``sync_mask`` told of the worker's own rack alone.
    """
    donor = donor_of(votes)
    given = votes[donor]
    # A worker whose vote is of an earlier session has contributed two rounds in the donor's: a vote, and its return.
    finished = sum(vote.finished if vote.session == given.session else ROUNDS * bool(vote.session) for vote in votes)
    lost = max(finished - given.held, 0)
    if given.session != votes[worker].session:
        before = (known or {}).get(given.session)
        return Restored(
            donor,
            contained=before is not None and before.contained,
            repeated=before.repeated if before is not None else in_flight is not None,
            lost=lost,
            missed=given.held + (before.missed if before is not None else 0),
        )
    # A snapshot of round r, when everybody was waited for, holds every counted worker's contribution up to r.
    certain = (
        last is not None
        and last.read_mode is ReadMode.SNAPSHOT
        and last.quorum == (last.sync_mask.bit_count() if over_racks is None else over_racks)
        and (over_racks is not None or all(last.sync_mask >> counted & 1 for counted in (worker, donor)))
    )
    return Restored(
        donor,
        contained=bool(certain and in_flight and in_flight[0] == given.epoch and in_flight[1] <= given.round),
        repeated=bool(in_flight and not certain),
        lost=lost,
        missed=given.held - votes[worker].held,
    )


@dataclass(frozen=True)
class Remains:
    """What a worker keeps of a lost session.

    held: uint32[slots, lanes], the sum as it was read before the iteration under way, so that every slot holds the same
    iterations. read: the same as it was read last: of an iteration in parts, some parts may have been read. vote,
    in_flight, last, over_racks: as `outcome` takes them. overtaken: no sum holds whole iterations, because a part was
    contributed before all of the iteration before its own. known: by session, what the votes meant in later sessions,
    which were lost before this worker had read the restored sum.
    """

    held: np.ndarray
    read: np.ndarray
    vote: Vote
    in_flight: tuple[int, int] | None
    last: Read | None
    overtaken: bool
    known: dict[int, Restored] = field(default_factory=dict)
    over_racks: int | None = None

    @classmethod
    def of(cls, protocol: Protocol) -> Remains:
        """protocol: as it was when the session was lost."""
        last, unfinished = protocol.last, protocol.iterating
        held, totals = protocol.held_before()
        vote = Vote(
            finished=protocol.iterations if protocol.in_parts else protocol.seq - unfinished,
            held=int(totals.min()),
            epoch=last.epoch if last else 0,
            round=last.round if last else -1,
            session=protocol.membership.session,
        )
        in_flight = (protocol.epoch, int(protocol.exchange.rounds.min())) if unfinished else None
        workers = protocol.membership.workers if protocol.membership.racks > 1 else None
        return cls(held, protocol.held_values, vote, in_flight, last, protocol.overtaken, over_racks=workers)


def restore(protocol: Protocol, remains: Remains | None, contribute: Callable[[np.ndarray], None]) -> Restored:
    """The vote and the return, at the beginning of a session. remains: of the session before, if the worker was in it.
    contribute: exchanges an iteration's values, int32[slots, lanes]. Raises NoRoomToVote, or SereneError where nobody
    can know what to restore; and as ``contribute``."""
    slots, lanes = protocol.held_values.shape
    if remains and remains.overtaken:
        raise SereneError(
            f"the switch has lost the sums of job {protocol.job}, and they cannot be restored: not every slot was "
            "contributed in every iteration"
        )
    vote = remains.vote if remains else Vote()
    mine = ballot(vote, protocol.number, protocol.membership.workers, slots, lanes)
    contribute(mine)
    if protocol.epoch != protocol.membership.epoch:
        raise SereneError(
            f"epoch {protocol.epoch} of job {protocol.job} began while the workers voted on whose sum is restored: "
            "not all have seen the same votes"
        )
    votes = count(protocol.held_values)
    in_flight, last, known = (remains.in_flight, remains.last, remains.known) if remains else (None, None, {})
    over_racks = remains.over_racks if remains else None
    restored = outcome(votes, protocol.number, in_flight, last, known, over_racks)
    back = -mine.view(np.uint32)
    if remains:
        remains.known[protocol.membership.session] = restored
        if restored.donor == protocol.number:
            back = back + remains.held
    contribute(back.view(np.int32))
    return restored
