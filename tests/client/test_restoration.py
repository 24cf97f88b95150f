"""The vote after a lost session: the choice of the donor, and its consequences for the other workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from serene.client.session.restoration import (
    LANES_PER_WORKER,
    NoRoomToVote,
    Restored,
    Vote,
    ballot,
    count,
    donor_of,
    outcome,
)

# (slots, lanes): v1model's lanes, the Tofino program's in many slots and in just enough for 32 workers' votes.
SHAPES = [(2, 320), (16, 32), (8, 32)]
counters = st.integers(0, 2**31 - 1)
votes_of_a_job = st.lists(
    st.builds(
        Vote, finished=counters, held=counters, epoch=counters, round=st.integers(-1, 2**31 - 2), session=counters
    ),
    min_size=1,
    max_size=32,
)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(votes=votes_of_a_job)
@example(votes=[Vote(worker, 100 + worker, 1, worker, 7) for worker in range(32)])
def test_sum_of_ballots_contains_every_vote(shape: tuple[int, int], votes: list[Vote]) -> None:
    ballots = [ballot(vote, worker, len(votes), *shape).view(np.uint32) for worker, vote in enumerate(votes)]
    total = np.sum(ballots, axis=0, dtype=np.uint32)
    assert total.shape == shape
    counted = count(total)
    assert counted[: len(votes)] == votes and set(counted[len(votes) :]) <= {Vote()}
    back = np.sum([-one for one in ballots], axis=0, dtype=np.uint32)
    assert not (total + back).any(), "the second round leaves nothing of the first"


@pytest.mark.parametrize(("workers", "slots", "lanes"), [(7, 1, 32), (32, 4, 32), (13, 2, 32), (32, 1, 255)])
def test_ballot_rejects_job_with_too_few_lanes(workers: int, slots: int, lanes: int) -> None:
    """Also for a worker whose own lanes would exist."""
    most = slots * lanes // LANES_PER_WORKER
    for worker in (0, workers - 1):
        with pytest.raises(
            NoRoomToVote, match=f"{workers} workers need {8 * workers} lanes to vote.*at most {most} workers"
        ):
            ballot(Vote(), worker, workers, slots, lanes)
    votes = [Vote(finished=worker) for worker in range(most)]
    ballots = np.array([ballot(vote, *place, slots, lanes) for place, vote in _places(votes)])
    total = ballots.sum(axis=0, dtype=np.int32)
    assert count(total.view(np.uint32))[:most] == votes, "the most that the message names is possible"


def _places(votes: list[Vote]) -> list[tuple[tuple[int, int], Vote]]:
    return [((worker, len(votes)), vote) for worker, vote in enumerate(votes)]


@given(votes_of_a_job)
def test_donor_holds_most_of_the_newest_session(votes: list[Vote]) -> None:
    donor = donor_of(votes)
    newest = max(vote.session for vote in votes)
    assert votes[donor].session == newest
    assert votes[donor].held == max(vote.held for vote in votes if vote.session == newest)
    assert donor_of(votes[: donor + 1]) == donor, "of equals the first: all workers come to the same"


@pytest.mark.parametrize(
    ("what", "ours", "counted", "expected"),
    [
        ("the donor read its round's snapshot", Vote(7, 14, 3, 6, under_way=3), 0b11, (True, False, 0)),
        ("the donor is a round behind", Vote(8, 16, 3, 7, under_way=3), 0b11, (False, False, 0)),
        ("of another epoch", Vote(8, 16, 3, 7, under_way=4), 0b11, (False, False, 0)),
        ("nothing was under way", Vote(8, 15, 3, 7), 0b11, (False, False, 0)),
        ("sums prove nothing", Vote(7, 14, 3, 6, under_way=3), 0, (False, True, -1)),
        ("sums prove nothing", Vote(7, 14, 3, 6, under_way=3, counted=0b11), 0, (False, True, -1)),
        ("the worker was not counted", Vote(7, 14, 3, 6, under_way=3), 0b01, (False, True, -1)),
        ("the donor was not counted", Vote(7, 14, 3, 6, under_way=3), 0b10, (False, True, -1)),
        ("it had read nothing yet", Vote(0, 0, under_way=3), 0b11, (True, False, 0)),
    ],
)
def test_outcome_of_an_unfinished_iteration(
    what: str, ours: Vote, counted: int, expected: tuple[bool, bool, int]
) -> None:
    """And the resulting error of the counts: an iteration in the sum counts twice if it is repeated. counted: by the
    donor's read."""
    found = outcome([Vote(8, 16, 3, 7, counted=counted), ours], 1)
    assert (found.contained, found.repeated, found.lost) == expected, what


def test_donor_knows_its_own_iteration_is_not_in_the_sum() -> None:
    donor = Vote(8, 16, 3, 7, under_way=3)
    assert outcome([donor, Vote(8, 15, 3, 7)], 0) == Restored(0, contained=False, repeated=False, lost=0, missed=0)


def test_reads_missing_from_restored_sum_count_as_lost() -> None:
    votes = [Vote(finished=10, held=19, epoch=1, round=9), Vote(finished=12, held=18, epoch=1, round=11)]
    assert outcome(votes, 0).lost == 10 + 12 - 19


def test_loss_and_repeated_iteration_are_both_counted() -> None:
    """Of worker 1's three iterations the sum lacks two and has the one in flight: one too few at the end."""
    votes = [Vote(10, 12, 1, 9), Vote(3, 8, 1, 2, under_way=1)]
    assert outcome(votes, 1) == Restored(0, contained=False, repeated=True, lost=1, missed=4, apart=4 + 2 * (1 + 1))


def test_nonvoter_contributions_do_not_make_loss_negative() -> None:
    """The sum holds 100 contributions of a third worker, which has left: the number lost is unknown."""
    assert outcome([Vote(10, 120, 1, 9), Vote(12, 118, 1, 11, under_way=1)], 0).lost == 0


NEWER = [
    Vote(2, 6, 1, 1, session=8, counted=0b111),
    Vote(30, 90, 1, 29, session=7, under_way=1, counted=0b111, voted=8),
    Vote(2, 6, 1, 1, session=8, counted=0b111),
]


@pytest.mark.parametrize("before", [Restored(2, True, False, 0, 93, 95), Restored(1, False, False, 3, 90, 97)], ids=str)
def test_worker_that_read_the_restored_sum_is_the_donor(before: Restored) -> None:
    """Its rounds belong to the newer session. The others know from their own vote in it what that sum holds and
    lacks."""
    now = outcome(NEWER, 1, {8: before})
    assert now == Restored(0, before.contained, before.repeated, before.lost, 6 + before.missed, 6 + before.apart)
    assert outcome(NEWER, 2).lost == 0, "who read it has counted what it lacks"


def test_unknown_iteration_of_an_older_session_is_repeated() -> None:
    """It is counted as missed. This worker did not contribute to the newer session, whose sums were restored without
    it."""
    votes = [replace(NEWER[0], held=4), replace(NEWER[1], voted=0), replace(NEWER[2], held=4)]
    assert outcome(votes, 1) == Restored(0, contained=False, repeated=True, lost=0, missed=4, apart=4 + 90)
    assert outcome(votes, 2).lost == 0


def test_votes_count_when_lower_worker_ids_have_left() -> None:
    """Workers 0 and 1 have left; the session after the lost one has two workers, with ids 2 and 3."""
    votes = {2: Vote(10, 30, 1, 9), 3: Vote(12, 32, 1, 11)}
    total = sum(ballot(vote, worker, len(votes), 2, 320).view(np.uint32) for worker, vote in votes.items())
    counted = count(np.asarray(total))
    assert {worker: counted[worker] for worker in votes} == votes
    assert donor_of(counted) == 3
    assert outcome(counted, 2).missed == 32 - 30


def test_ballot_rejects_worker_id_beyond_the_lanes() -> None:
    with pytest.raises(NoRoomToVote, match="9 workers need 72 lanes to vote"):
        ballot(Vote(), 8, 2, 1, 32)
