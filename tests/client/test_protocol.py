"""What a worker may believe (docs/protocol.md), rule by rule: packets are passed to ``Protocol`` directly. Its send
window and retransmission timeout: bounds, AIMD, RFC 6298."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serene.client.protocol.protocol import PROBES, PULL_SEQ, REORDERING, Membership, Protocol
from serene.client.protocol.window import (
    FIRST_TIMEOUT_S,
    LARGEST_WINDOW,
    LONGEST_TIMEOUT_S,
    SHORTEST_TIMEOUT_S,
    SMALLEST_WINDOW,
    RoundTrip,
    Window,
)
from serene.client.session.restoration import ALL, Remains, Restored, Vote, outcome
from serene.wire import UNBOUNDED, Op, ReadMode, control_payload, headers_of, push_payloads
from tests.commands import output

LANES, SESSION = 4, 7


def worker(slots: int = 1, window: int = 32) -> Protocol:
    joined = Membership(SESSION, 1, slots * LANES, slots, LANES, 2**20, 2**23, 3)
    return Protocol(2, 1, joined, window=Window(window))


def pushing(slots: int = 1, window: int = 32) -> Protocol:
    """A worker that has sent its first contribution."""
    protocol = worker(slots, window)
    protocol.push(np.ones((slots, LANES), np.int32), 0.0)
    protocol.packets(0.0)
    return protocol


def answer(slot: int = 0, value: int = 5, **header: int) -> np.ndarray:
    """An answer as the switch gives it to the worker's first contribution, changed as the test wants."""
    fields = {"job": 2, "worker": 1, "session": SESSION, "epoch": 1, "round": 1, "seq": 1, "total": 3, "seen": 1,
              "sync_mask": 7, "staleness": 0, "quorum": 3, "read_mode": 1, **header}  # fmt: skip
    return push_payloads(np.full((slot + 1, LANES), value, np.int32), op=Op.ANSWER, **fields)[slot:]


def nudge(slot: int = 0, **header: int) -> np.ndarray:
    fields = {"job": 2, "worker": 1, "session": SESSION, "epoch": 2, "slot": slot, **header}
    return np.frombuffer(control_payload(Op.NUDGE, b"", **fields), np.uint8)[None, :]


# -- what it sends -------------------------------------------------------------------------------------------


def test_packets_in_flight_do_not_exceed_the_window() -> None:
    protocol = pushing(slots=10, window=4)
    assert len(protocol.packets(0.001)) == 0
    protocol.receive(answer(0), 0.002)
    protocol.receive(answer(1), 0.002)
    assert headers_of(protocol.packets(0.002))["slot"].tolist() == [4, 5]


def test_slots_waiting_in_switch_do_not_block_send_window() -> None:
    protocol = pushing(slots=12, window=4)
    for already_sent in (4, 8):
        deadline = protocol.deadline()
        assert deadline is not None
        slots = headers_of(protocol.packets(deadline))["slot"].tolist()
        assert len(slots) == PROBES + 4 and slots[-4:] == list(range(already_sent, already_sent + 4))
    assert deadline is not None and len(protocol.packets(deadline + 0.001)) == 0
    # They were sent while it waited: it has waited since the first ones went out.
    protocol.receive(answer(5, seq=0), 3.0)
    for slot in (*range(5), *range(6, 12)):
        protocol.receive(answer(slot), 3.0)
    assert protocol.finish().waited_s == pytest.approx(3.0)


def test_retransmissions_repeat_the_packet_and_back_off() -> None:
    protocol = worker()
    protocol.push(np.ones((1, LANES), np.int32), 0.0)
    first, times = protocol.packets(0.0), [0.0]
    while len(times) < 8:
        deadline = protocol.deadline()
        assert deadline is not None
        assert len(protocol.packets(deadline - 1e-6)) == 0
        assert protocol.packets(deadline).tobytes() == first.tobytes()
        times.append(deadline)
    gaps = np.diff(times)
    assert gaps[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert gaps[3:] == pytest.approx([LONGEST_TIMEOUT_S] * 4)
    assert protocol.counts.retransmissions == 7


def test_gap_in_the_answers_triggers_a_retransmission() -> None:
    slots = REORDERING + 3
    protocol = pushing(slots)
    for slot in range(1, slots):
        protocol.receive(answer(slot), 0.01)
    assert headers_of(protocol.packets(0.01))["slot"].tolist() == [0]
    assert protocol.window.size < 32


def test_first_retransmission_imports_nothing() -> None:
    """It comes in the middle of a step. Some of NumPy's functions import numpy.ma when they are first called, which
    takes long where PyTorch has been imported."""
    asked = (
        "import sys; from tests.client import test_protocol; before = {*sys.modules}; "
        "test_protocol.test_gap_in_the_answers_triggers_a_retransmission(); print({*sys.modules} - before)"
    )
    assert output(sys.executable, "-c", asked) == "set()\n"


def test_answers_to_retransmissions_are_not_measured() -> None:
    protocol = pushing()
    protocol.packets(protocol.deadline() or 0.0)
    protocol.receive(answer(), 0.3)
    assert protocol.done and protocol.round_trip.smoothed is None


def test_round_trip_is_measured_from_echoes_not_releases() -> None:
    protocol = pushing()
    protocol.receive(answer(seq=0), 5.0)
    assert protocol.done and protocol.round_trip.smoothed is None
    protocol = pushing()
    protocol.receive(answer(), 0.03)
    assert protocol.round_trip.smoothed == pytest.approx(0.03)


# -- what it believes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [{"session": 6}, {"session": 8}, {"job": 0}, {"worker": 0}, {"seq": 2}, {"seq": PULL_SEQ + 1}, {"slot": 1}],
    ids=str,
)
def test_answers_not_meant_for_this_worker_are_ignored(wrong: dict[str, int]) -> None:
    protocol = pushing()
    protocol.receive(answer(**wrong), 0.01)
    assert not protocol.done
    assert protocol.counts.ignored == 1


@pytest.mark.parametrize(
    ("round", "base", "staleness", "believed"),
    [(0, 1, 0, True), (0, 0, 0, False), (1, 1, 0, False), (1, 2, 0, True), (3, 1, 3, True), (4, 1, 3, False),
     (9, 0, UNBOUNDED, True)],
)  # fmt: skip
def test_release_is_accepted_only_below_base_plus_staleness(
    round: int, base: int, staleness: int, believed: bool
) -> None:
    protocol = worker()
    protocol.round = round
    protocol.push(np.ones((1, LANES), np.int32), 0.0)
    protocol.packets(0.0)
    protocol.receive(answer(seq=0, round=base, staleness=staleness), 0.01)
    assert protocol.done is believed


def test_release_of_another_epoch_triggers_a_retransmission() -> None:
    protocol = pushing()
    protocol.receive(answer(seq=0, epoch=2, round=5), 0.01)
    assert not protocol.done
    assert headers_of(protocol.packets(0.01))[["epoch", "round", "seq"]].tolist() == [(1, 0, 1)]


def test_nudge_of_another_session_is_ignored() -> None:
    protocol = pushing()
    protocol.receive(nudge(session=6), 0.001)
    assert len(protocol.packets(0.001)) == 0


def test_first_answer_of_a_slot_wins_within_a_batch() -> None:
    protocol = pushing(slots=2)
    protocol.receive(np.concatenate([answer(0, 5), answer(0, 9, total=4), answer(1, 6)]), 0.01)
    assert protocol.finish().difference[:, 0].tolist() == [5, 6]


# -- epochs --------------------------------------------------------------------------------------------------


def test_new_epoch_is_adopted_after_the_iteration_ends() -> None:
    protocol = pushing(slots=6, window=4)
    protocol.receive(answer(0, epoch=2), 0.01)
    again = headers_of(protocol.packets(0.01))
    assert set(again["epoch"]) == {1}
    for slot in range(1, 6):
        protocol.packets(0.02)
        protocol.receive(answer(slot, epoch=2), 0.02)
    assert protocol.finish().epoch == 1
    protocol.push(np.ones((6, LANES), np.int32), 1.0)
    headers = headers_of(protocol.packets(1.0))
    assert {(int(row["epoch"]), int(row["round"]), int(row["seq"])) for row in headers} == {(2, 0, 2)}


def test_older_epoch_is_not_adopted() -> None:
    protocol = pushing()
    protocol.epoch = 3
    protocol.receive(answer(epoch=2), 0.01)
    protocol.finish()
    assert (protocol.epoch, protocol.round) == (3, 1)


# -- reads ---------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20))
def test_differences_are_taken_modulo_2_to_the_32(sums: list[int]) -> None:
    protocol, added = worker(), 0
    for seq, value in enumerate(sums, 1):
        protocol.push(np.zeros((1, LANES), np.int32), float(seq))
        protocol.packets(float(seq))
        signed = int(np.uint32(value).astype(np.int32))
        protocol.receive(answer(value=signed, seq=seq, round=seq, total=3 * seq), float(seq))
        read = protocol.finish()
        assert read.contributions.tolist() == [3]
        added = (added + int(read.difference[0, 0])) % 2**32
        assert added == value


def test_read_reports_the_policy_of_its_answer() -> None:
    protocol = pushing()
    protocol.receive(answer(sync_mask=5, staleness=3, quorum=2, read_mode=0, seen=1), 0.01)
    read = protocol.finish()
    assert (read.sync_mask, read.staleness, read.quorum, read.read_mode, read.seen) == (5, 3, 2, ReadMode.LATEST, 1)


def test_waiting_is_the_time_until_a_release() -> None:
    protocol = pushing()
    protocol.receive(answer(seq=0), 2.0)
    assert protocol.finish().waited_s == pytest.approx(2.0)
    protocol = pushing()
    protocol.receive(answer(), 2.0)
    assert protocol.finish().waited_s == 0
    protocol = pushing()
    deadline = protocol.deadline()
    assert deadline is not None and len(protocol.packets(deadline)) == 1
    protocol.receive(answer(), 2.0)
    assert protocol.finish().waited_s == 0, "its own network took the time: it was the last to come"


@pytest.mark.parametrize("announced_by", ["nudge", "echo"])
def test_waiting_includes_a_block_ended_by_a_new_epoch(announced_by: str) -> None:
    """After a swap, an eviction or a readmission the blocked packet is sent again, and an echo answers it."""
    protocol = pushing()
    deadline = protocol.deadline()
    assert deadline is not None and len(protocol.packets(deadline)) == 1
    if announced_by == "nudge":
        protocol.receive(nudge(), 2.0)
        assert len(protocol.packets(2.0)) == 1
    protocol.receive(answer(epoch=2), 2.0)
    assert protocol.finish().waited_s == pytest.approx(2.0)


def test_new_epoch_under_asp_counts_as_no_waiting() -> None:
    """Nobody waits there: what took so long was the worker's own network."""
    protocol = pushing()
    protocol.receive(answer(staleness=UNBOUNDED), 0.01)
    protocol.finish()
    protocol.push(np.ones((1, LANES), np.int32), 1.0)
    protocol.packets(1.0)
    protocol.receive(nudge(), 3.0)
    protocol.packets(3.0)
    protocol.receive(answer(epoch=2, seq=2, seen=2), 3.01)
    assert protocol.finish().waited_s == 0


def test_consecutive_answers_are_not_counted_as_waiting() -> None:
    """Only releases come: a link takes 10 ms for each packet, and no worker is late."""
    protocol = pushing(slots=6)
    for slot in range(6):
        protocol.receive(answer(slot, seq=0), 0.03 + 0.01 * slot)
    protocol.finish()
    protocol.push(np.ones((6, LANES), np.int32), 1.0)
    protocol.packets(1.0)
    for slot in range(6):
        protocol.receive(answer(slot, seq=0, round=2, total=6), 1.02 + 0.01 * slot)
    assert protocol.finish().waited_s == pytest.approx(0.0, abs=1e-9)
    protocol.push(np.ones((6, LANES), np.int32), 2.0)
    protocol.packets(2.0)
    for slot in range(6):
        protocol.receive(answer(slot, seq=0, round=3, total=9), 2.52 + 0.01 * slot)
    assert protocol.finish().waited_s == pytest.approx(0.5), "somebody was half a second late"


def test_silence_longer_than_the_timeout_is_waiting() -> None:
    protocol = pushing(slots=3)
    protocol.receive(answer(0), 0.01)  # an echo: the round trip is known
    protocol.receive(answer(1, seq=0), 0.015)
    deadline = protocol.deadline()
    assert deadline is not None
    protocol.packets(deadline)
    protocol.receive(answer(2, seq=0), 1.015)
    assert protocol.finish().waited_s == pytest.approx(1.0 - 0.01)


def test_protocol_refuses_a_second_iteration_before_the_first_ends() -> None:
    protocol = pushing()
    with pytest.raises(RuntimeError, match="not finished"):
        protocol.push(np.zeros((1, LANES), np.int32), 1.0)
    with pytest.raises(RuntimeError, match="not finished"):
        protocol.finish()


@pytest.mark.parametrize("heard", [0, 1], ids=["unanswered", "half answered"])
def test_vote_ignores_a_pull_in_flight(heard: int) -> None:
    """The last contribution is finished, and in the sum that the worker votes with."""
    protocol = worker(slots=2)
    protocol.begin(0.0)
    protocol.packets(0.0)
    protocol.receive(np.concatenate([answer(slot, seq=protocol.exchange.awaited[slot]) for slot in (0, 1)]), 0.0)
    protocol.finish()
    at_rest = Remains.of(protocol)
    protocol.pull(1.0)
    protocol.packets(1.0)
    for slot in range(heard):
        protocol.receive(answer(slot, value=9, seq=protocol.exchange.awaited[slot], total=6), 1.0)
    remains = Remains.of(protocol)
    assert remains.vote == at_rest.vote == Vote(1, 3, epoch=1, round=0, session=SESSION, counted=0b111)
    assert (remains.held == 5).all()
    ended = outcome([Vote(2, 3, epoch=1, round=1, session=SESSION), remains.vote], 1)
    assert ended == Restored(0, contained=False, repeated=False, lost=0, missed=0)


@pytest.mark.parametrize(
    ("racks", "policy", "counted"),
    [
        (1, {}, 0b111),
        (1, {"read_mode": ReadMode.LATEST}, 0),
        (1, {"quorum": 2}, 0),  # a quorum of two might be without it
        (1, {"sync_mask": 5, "quorum": 2}, 0b101),
        (2, {"sync_mask": 3}, ALL),  # of the own rack
        (2, {"sync_mask": 3, "quorum": 2}, 0),
    ],
)
def test_vote_counts_only_workers_certain_to_be_in_the_sum(racks: int, policy: dict[str, int], counted: int) -> None:
    protocol = worker()
    protocol.membership = replace(protocol.membership, racks=racks)
    protocol.push(np.ones((1, LANES), np.int32), 0.0)
    assert Remains.of(protocol).vote == Vote(session=SESSION, under_way=1), "it has read nothing yet"
    protocol.packets(0.0)
    protocol.receive(answer(**policy), 0.0)
    protocol.finish()
    assert Remains.of(protocol).vote.counted == counted


def test_welcome_of_256_members_is_decoded() -> None:
    """The field holds 0 then, as in an answer."""
    joined = replace(worker().membership, workers=256, members=0)
    assert Protocol(2, 1, joined, window=Window(1)).members == 256


# -- window and timeout --------------------------------------------------------------------------------------


def test_window_grows_by_one_after_a_full_window() -> None:
    window = Window(32)
    for _ in range(32):
        window.answered(1)
    assert 32.9 < window.size <= 33


def test_window_halves_once_per_round_trip_of_losses() -> None:
    window = Window(64)
    window.lost(1.0, round_trip_s=0.1)
    window.lost(1.05, round_trip_s=0.1)
    assert window.size == 32
    window.lost(1.1, round_trip_s=0.1)
    assert window.size == 16


@given(st.lists(st.one_of(st.none(), st.integers(1, 1000)), max_size=200))
def test_window_size_stays_within_its_bounds(events: list[int | None]) -> None:
    window = Window()
    for now, slots in enumerate(events):
        if slots is None:
            window.lost(float(now), 0.5)
        else:
            window.answered(slots)
        assert SMALLEST_WINDOW <= window.size <= LARGEST_WINDOW


def test_retransmission_timeout_follows_rfc_6298() -> None:
    trip = RoundTrip()
    assert trip.timeout == FIRST_TIMEOUT_S
    trip.measured(0.04)
    assert trip.timeout == pytest.approx(0.04 + 4 * 0.02)
    trip.measured(0.08)
    assert trip.smoothed == pytest.approx(0.045)
    assert trip.variation == pytest.approx(0.025)
    assert trip.timeout == pytest.approx(0.145)


def test_timeout_doubles_up_to_its_bound_and_resets_on_progress() -> None:
    trip = RoundTrip()
    seen = []
    for _ in range(30):
        seen.append(trip.timeout)
        trip.timed_out()
    assert seen[:4] == [0.1, 0.2, 0.4, LONGEST_TIMEOUT_S]
    assert set(seen[3:]) == {LONGEST_TIMEOUT_S}
    trip.progressed()
    assert trip.timeout == FIRST_TIMEOUT_S


def test_timeout_has_a_lower_bound_on_fast_networks() -> None:
    trip = RoundTrip()
    for _ in range(100):
        trip.measured(1e-5)
    assert trip.timeout == SHORTEST_TIMEOUT_S
