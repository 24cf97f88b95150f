"""After a switch has lost its state, the workers restore the sums and continue.

A restarted switch has no state. The job begins a new session, and every worker still holds the cumulative sum that it
read last. One worker, the donor, contributes its sum like a gradient. After that the switch has the donor's sum,
differences of two reads keep their meaning, and the first difference corrects parameters that were behind or ahead. It
takes two or three rounds under BSP, whose snapshots are the same for all workers:

1. the vote: each worker writes what it has into lanes of its own, from slot 0 on, and reads everybody's. Which lanes
   these are depends on its number alone: earlier workers may have left, and numbers do not move up;
2. the return: each worker subtracts its vote again, and the donor adds the sum that it holds;
3. over racks, a contribution of nothing. The controller, which ends the restoration, counts contributions at leaves. A
   leaf may have all its workers' returns and lack other racks': under ASP its workers would read votes as gradients.
   The third contribution shows that its worker has read the restored sum, so its leaf has it.

The donor is the worker whose sum holds most contributions. Contributions that its sum lacks are lost and counted. An
unfinished iteration is either in the donor's sum already or is repeated.

A session may be lost before all have read the restored sum. A worker that has read it votes with the newer session and
is the donor. Its counts of contributions and rounds restarted, so the others cannot compare theirs with them. But no
worker has read the second round before all have read the first, so the others use their result of that vote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from serene.client.protocol.protocol import MOST_WORKERS, Protocol
from serene.errors import SereneError
from serene.wire import ReadMode

LANES_PER_WORKER = 8
ALL = 2**32 - 1  # as a mask of workers; over racks, also of those with larger numbers


def rounds(racks: int) -> int:
    """With how many rounds a session begins that follows a lost one, in a job over so many racks."""
    return 2 if racks < 2 else 3


class NoRoomToVote(SereneError):
    """The job's slots have fewer lanes than its workers' votes need."""


@dataclass(frozen=True)
class Vote:
    """One worker's state of the lost session.

    finished: iterations of which it has read all answers. held: contributions in the sum that it holds (in the slot
    with fewest). epoch, round: of the last finished iteration; 0 and -1 for none. session: the lost one; 0 for none.
    under_way: epoch of its unfinished iteration; 0 for none. counted: if its last read was a snapshot with every
    counted worker's contribution, the mask of these workers; else 0. voted: the newest session whose votes it has read;
    0 for none.
    """

    finished: int = 0
    held: int = 0
    epoch: int = 0
    round: int = -1
    session: int = 0
    under_way: int = 0
    counted: int = 0
    voted: int = 0

    def lanes(self) -> list[int]:
        """As unsigned 32-bit numbers, LANES_PER_WORKER of them."""
        sums = [self.finished, self.held, self.epoch, self.round + 1, self.session]
        return [*sums, self.under_way, self.counted, self.voted]

    def contains(self, unfinished: Vote) -> bool:
        """Whether this snapshot, the donor's, has the unfinished iteration of a counted worker."""
        round_ = unfinished.round + 1 if unfinished.under_way == unfinished.epoch else 0
        return unfinished.under_way == self.epoch and round_ <= self.round

    def counts(self, *workers: int) -> bool:
        """Whether the last read was a snapshot in which all of these workers were counted."""
        return self.counted == ALL or all(self.counted >> worker & 1 for worker in workers)


@dataclass(frozen=True)
class Restored:
    """How a worker continues.

    donor: the number of the worker whose sum was restored; None if this worker joined after that. contained: this
    worker's unfinished iteration is in the restored sum and must not be contributed again. repeated: it may be in that
    sum, and is contributed again nevertheless, because this is not known. lost: contributions per slot (of all workers
    together) that the restored sum lacks, minus those that it holds and that are contributed again; negative if more
    are repeated than lost. missed: contributions per slot in the restored sum minus those that this worker had read.
    apart: the largest number of contributions per slot that only one of the two sums holds.
    """

    donor: int | None
    contained: bool
    repeated: bool
    lost: int
    missed: int
    apart: int = 0


def ballot(vote: Vote, worker: int, workers: int, slots: int, lanes: int) -> np.ndarray:
    """The first round's contribution of worker number ``worker`` of ``workers``, int32[slots, lanes]: its vote in its
    lanes, 0 in the others. Raises NoRoomToVote."""
    voters = max(workers, worker + 1)
    needed, there = LANES_PER_WORKER * voters, slots * lanes
    if needed > there:
        raise NoRoomToVote(
            f"the switch lost the job's sums, and they cannot be restored: {voters} workers need {needed} lanes to "
            f"vote, the job has {there} ({slots} x {lanes}). Create a new job with at most "
            f"{there // LANES_PER_WORKER} workers or a longer vector"
        )
    values = np.zeros((slots, lanes), np.int32)
    start = LANES_PER_WORKER * worker
    values.reshape(-1)[start : start + LANES_PER_WORKER] = np.array(vote.lanes(), np.uint32).view(np.int32)
    return values


def count(sums: np.ndarray) -> list[Vote]:
    """The votes by worker number, from the first round's sum; an absent worker has an empty one. sums: uint32[slots,
    lanes]."""
    voters = min(MOST_WORKERS, sums.size // LANES_PER_WORKER)
    lanes = sums.reshape(-1)[: LANES_PER_WORKER * voters].reshape(voters, LANES_PER_WORKER)
    votes = [Vote(*(int(lane) for lane in row)) for row in lanes]
    return [replace(vote, round=vote.round - 1) for vote in votes]


def donor_of(votes: list[Vote]) -> int:
    """The number of the donor: of the workers with the newest session, the one that holds most contributions; of
    equals, the first."""

    def rank(worker: int) -> tuple[int, int, int, int]:
        vote = votes[worker]
        return vote.session, vote.held, vote.finished, -worker

    return max(range(len(votes)), key=rank)


def outcome(votes: list[Vote], worker: int, known: Mapping[int, Restored] | None = None, racks: int = 1) -> Restored:
    """The result of the votes for worker number ``worker``. known: its results of earlier votes, by the session that
    began with them. racks: the job's."""
    donor = donor_of(votes)
    given = votes[donor]
    # A worker whose vote is of an earlier session has contributed these rounds in the donor's, if it took part.
    finished = sum(rounds(racks) for vote in votes if vote.session < given.session <= vote.voted)
    repeats = 0
    for number, vote in enumerate(votes):
        if vote.session == given.session:
            certain = number == donor or given.counts(number, donor)
            finished += vote.finished + (certain and given.contains(vote))
            repeats += bool(vote.under_way) and not certain
    lost = finished - given.held
    if lost < -repeats:  # the sum holds an unknown number of contributions of workers that do not vote
        lost = 0
    apart = 2 * (max(lost, 0) + repeats)
    ours = votes[worker]
    if given.session != ours.session:
        before = (known or {}).get(given.session)
        return Restored(
            donor,
            contained=before is not None and before.contained,
            repeated=before.repeated if before is not None else bool(ours.under_way),
            lost=lost + (before.lost if before is not None else 0),
            missed=given.held + (before.missed if before is not None else 0),
            apart=given.held + apart + (before.apart if before is not None else ours.held),
        )
    certain = worker == donor or given.counts(worker, donor)
    missed = given.held - ours.held
    return Restored(
        donor,
        contained=bool(certain and given.contains(ours)),
        repeated=bool(ours.under_way and not certain),
        lost=lost,
        missed=missed,
        apart=missed + apart,
    )


@dataclass(frozen=True)
class Remains:
    """A worker's data of a lost session.

    held: uint32[slots, lanes], the last read sum. known: by session, the results of the votes in later sessions, which
    were lost before this worker had read the restored sum.
    """

    held: np.ndarray
    vote: Vote
    known: dict[int, Restored] = field(default_factory=dict)

    @classmethod
    def of(cls, protocol: Protocol) -> Remains:
        """protocol: that of the lost session."""
        last, unfinished = protocol.last, protocol.iterating
        # If the barrier waited for all workers, a snapshot of round r holds every counted worker's contributions up to
        # r. Over racks, sync_mask covers the worker's own rack only.
        everybody, counted = protocol.membership.workers, ALL
        if last is not None and protocol.membership.racks < 2:
            everybody, counted = last.sync_mask.bit_count(), last.sync_mask
        snapshot = protocol.held_by_mode and last is not None and last.read_mode is ReadMode.SNAPSHOT
        certain = snapshot and last is not None and last.quorum == everybody
        vote = Vote(
            finished=protocol.seq - unfinished,
            held=int(protocol.held_totals.min()),
            epoch=last.epoch if last else 0,
            round=last.round if last else -1,
            session=protocol.membership.session,
            under_way=protocol.epoch if unfinished else 0,
            counted=counted if certain else 0,
        )
        return cls(protocol.held_values, vote)


def restore(protocol: Protocol, remains: Remains | None, contribute: Callable[[np.ndarray], None]) -> Restored:
    """The rounds at the beginning of a session. remains: of the session before, if the worker was in it.
    contribute: exchanges an iteration's values, int32[slots, lanes]. Raises NoRoomToVote, SereneError if the votes do
    not determine the sum to restore, and as ``contribute``."""
    (slots, lanes), racks = protocol.held_values.shape, protocol.membership.racks
    vote = replace(remains.vote, voted=max(remains.known, default=0)) if remains else Vote()
    mine = ballot(vote, protocol.number, protocol.membership.workers, slots, lanes)
    contribute(mine)
    if protocol.epoch != protocol.membership.epoch:
        raise SereneError(
            f"epoch {protocol.epoch} of job {protocol.job} began during the vote, so workers may have read different "
            "votes"
        )
    votes = count(protocol.held_values)
    restored = outcome(votes, protocol.number, remains.known if remains else None, racks)
    back = -mine.view(np.uint32)
    if remains:
        remains.known[protocol.membership.session] = restored
        if restored.donor == protocol.number:
            back = back + remains.held
    contribute(back.view(np.int32))
    if rounds(racks) > 2:
        contribute(np.zeros_like(mine))
    return restored
