"""The vote after a lost session: which worker is the donor, and what that means for the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from serene.client.protocol import Read
from serene.client.restoration import NoRoomToVote, Restored, Vote, ballot, count, donor_of, outcome
from serene.wire import ReadMode

# (slots, lanes): v1model's lanes, the Tofino program's in many slots and in just enough for 32 workers' votes.
SHAPES = [(2, 320), (8, 32), (5, 32)]
counters = st.integers(0, 2**31 - 1)
votes_of_a_job = st.lists(
    st.builds(
        Vote, finished=counters, held=counters, epoch=counters, round=st.integers(-1, 2**31 - 2), session=counters
    ),
    min_size=1,
    max_size=32,
)

SNAPSHOT = Read(
    difference=np.zeros((1, 1), np.int32),
    contributions=np.zeros(1, np.uint32),
    epoch=3,
    round=7,
    sync_mask=0b11,
    staleness=0,
    quorum=2,
    read_mode=ReadMode.SNAPSHOT,
    seen=0,
    members=2,
    waited_s=0.0,
)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(votes=votes_of_a_job)
@example(votes=[Vote(worker, 100 + worker, 1, worker, 7) for worker in range(32)])
def test_the_sum_of_all_ballots_holds_every_vote(shape: tuple[int, int], votes: list[Vote]) -> None:
    ballots = [ballot(vote, worker, len(votes), *shape).view(np.uint32) for worker, vote in enumerate(votes)]
    total = np.sum(ballots, axis=0, dtype=np.uint32)
    assert total.shape == shape
    counted = count(total)
    assert counted[: len(votes)] == votes and set(counted[len(votes) :]) <= {Vote()}
    back = np.sum([-one for one in ballots], axis=0, dtype=np.uint32)
    assert not (total + back).any(), "the second round leaves nothing of the first"


@pytest.mark.parametrize(("workers", "slots", "lanes"), [(7, 1, 32), (32, 4, 32), (13, 2, 32), (32, 1, 159)])
def test_a_job_too_small_for_its_workers_votes_is_told_so(workers: int, slots: int, lanes: int) -> None:
    """Every worker of it, also one whose own lanes would be there."""
    most = slots * lanes // 5
    for worker in (0, workers - 1):
        with pytest.raises(NoRoomToVote, match=f"{workers} workers vote in {5 * workers} lanes.*with {most} workers"):
            ballot(Vote(), worker, workers, slots, lanes)
    votes = [Vote(finished=worker) for worker in range(most)]
    ballots = np.array([ballot(vote, *place, slots, lanes) for place, vote in _places(votes)])
    total = ballots.sum(axis=0, dtype=np.int32)
    assert count(total.view(np.uint32))[:most] == votes, "the most that the message names is possible"


def _places(votes: list[Vote]) -> list[tuple[tuple[int, int], Vote]]:
    return [((worker, len(votes)), vote) for worker, vote in enumerate(votes)]


@given(votes_of_a_job)
def test_nobody_holds_more_than_the_donor(votes: list[Vote]) -> None:
    donor = donor_of(votes)
    newest = max(vote.session for vote in votes)
    assert votes[donor].session == newest
    assert votes[donor].held == max(vote.held for vote in votes if vote.session == newest)
    assert donor_of(votes[: donor + 1]) == donor, "of equals the first: all workers come to the same"


@pytest.mark.parametrize(
    ("what", "read", "in_flight", "expected"),
    [
        ("the donor read its round's snapshot", SNAPSHOT, (3, 7), Restored(0, True, False, 0, 2)),
        ("the donor is a round behind", SNAPSHOT, (3, 8), Restored(0, False, False, 0, 2)),
        ("of another epoch", SNAPSHOT, (4, 0), Restored(0, False, False, 0, 2)),
        ("nothing was under way", SNAPSHOT, None, Restored(0, False, False, 0, 2)),
        ("sums prove nothing", replace(SNAPSHOT, read_mode=ReadMode.LATEST), (3, 7), Restored(0, False, True, 0, 2)),
        ("a quorum of one might be without it", replace(SNAPSHOT, quorum=1), (3, 7), Restored(0, False, True, 0, 2)),
        (
            "the worker was not counted",
            replace(SNAPSHOT, sync_mask=0b01, quorum=1),
            (3, 7),
            Restored(0, False, True, 0, 2),
        ),
        ("a worker that had read nothing yet", None, (1, 0), Restored(0, False, True, 0, 2)),
    ],
)
def test_an_unfinished_iteration(
    what: str, read: Read | None, in_flight: tuple[int, int] | None, expected: Restored
) -> None:
    votes = [Vote(finished=8, held=16, epoch=3, round=7), Vote(finished=7, held=14, epoch=3, round=6)]
    assert outcome(votes, 1, in_flight, read) == expected, what


def test_what_was_read_and_is_not_restored_is_counted() -> None:
    votes = [Vote(finished=10, held=19, epoch=1, round=9), Vote(finished=12, held=18, epoch=1, round=11)]
    assert outcome(votes, 0, None, SNAPSHOT).lost == 10 + 12 - 19


NEWER = [Vote(2, 6, 1, 1, session=8), Vote(30, 90, 1, 29, session=7), Vote(2, 6, 1, 1, session=8)]


@pytest.mark.parametrize("before", [Restored(2, True, False, 0, 93), Restored(1, False, False, 3, 90)], ids=str)
def test_who_has_read_the_restored_sum_gives_it_whatever_the_others_count(before: Restored) -> None:
    """Its rounds are of the newer session; to the others their own vote in it says what that sum holds."""
    now = outcome(NEWER, 1, (1, 30), SNAPSHOT, {8: before})
    assert now == Restored(0, before.contained, before.repeated, 0, 6 + before.missed)


def test_an_iteration_of_an_older_session_that_nothing_is_known_of_is_repeated_and_counted() -> None:
    assert outcome(NEWER, 1, (1, 0), SNAPSHOT) == Restored(0, False, True, 0, 6)


def test_who_is_left_of_more_workers_is_heard() -> None:
    """Workers 0 and 1 have left; the session after the lost one has two workers, whose ids are 2 and 3."""
    votes = {2: Vote(10, 30, 1, 9), 3: Vote(12, 32, 1, 11)}
    total = sum(ballot(vote, worker, len(votes), 2, 320).view(np.uint32) for worker, vote in votes.items())
    counted = count(np.asarray(total))
    assert {worker: counted[worker] for worker in votes} == votes
    assert donor_of(counted) == 3
    assert outcome(counted, 2, None, SNAPSHOT).missed == 32 - 30


def test_an_id_beyond_the_lanes_is_told_so() -> None:
    with pytest.raises(NoRoomToVote, match="9 workers vote in 45 lanes"):
        ballot(Vote(), 8, 2, 1, 32)
