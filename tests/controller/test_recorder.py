"""The controller's record of its workers, from hand-written reports."""

from __future__ import annotations

import pytest

from serene.controller.status.model import WorkerTimeline
from serene.controller.status.recorder import BIN_S, BINS, TURNS, Recorder
from serene.report import Facts

T = 1_800_000_000.0  # a bin begins here
FIRST = int(T // BIN_S)


def recorded_since(recorder: Recorder, since: float, now: float) -> WorkerTimeline:
    (worker,) = recorder.timeline(0, since, now).workers
    return worker


def recorded(*reports: tuple[float, Facts]) -> Recorder:
    recorder = Recorder()
    for at, report in reports:
        recorder.note(0, 3, report, T + at)
    return recorder


def test_recorder_stores_turns_and_shares_of_states() -> None:
    recorder = recorded(
        (0.0, {"state": "computing", "loss": 2.0}),
        (0.5, {"state": "computing", "loss": 1.5}),
        (1.0, {"state": "exchanging"}),
        (1.5, {"state": "waiting", "accuracy": 0.5}),
        (3.0, {"state": "computing", "loss": 1.25, "accuracy": 0.75}),
    )
    worker = recorded_since(recorder, 0, T + 4)
    assert worker.worker == 3
    assert worker.turns == [(T, 1), (T + 1, 2), (T + 1.5, 3), (T + 3, 1)]
    assert (worker.first, worker.computing) == (FIRST, [50, 50, 0])
    assert (worker.sending, worker.waiting) == ([25, 0, 0], [25, 50, 0])
    assert worker.loss == [1.5, 1.25, None]
    assert worker.accuracy == [0.5, 0.75, None]


def test_short_steps_are_divided_by_their_reported_sums() -> None:
    """Twenty steps a second, each computing for six tenths: most reports find the worker computing."""
    reports: list[tuple[float, Facts]] = []
    for step in range(0, 80, 4):
        sums = {"compute_s": 0.03 * step, "network_s": 0.01 * step, "waiting_s": 0.01 * step}
        reports.append((0.05 * step, {"state": "computing", **sums}))
        at_end = {**sums, "compute_s": sums["compute_s"] + 0.03}
        reports.append((0.05 * step + 0.03, {"state": "exchanging", **at_end}))
        both = {"network_s": sums["network_s"] + 0.01, "waiting_s": sums["waiting_s"] + 0.01}
        reports.append((0.05 * step + 0.05, {"state": "computing", **at_end, **both}))
    worker = recorded_since(recorded(*reports), 0, T + 4)
    for shares, expected in ((worker.computing, 60), (worker.sending, 20), (worker.waiting, 20)):
        assert shares[0] == pytest.approx(expected, abs=6)


def test_sums_that_match_the_states_change_nothing() -> None:
    """Steps of a second, in which every change of state was reported."""
    spent = {"compute_s": 0.0, "network_s": 0.0, "waiting_s": 0.0}
    recorder = recorded(
        (0.0, {"state": "computing", **spent}),
        (1.0, {"state": "exchanging", **spent, "compute_s": 1.0}),
        (1.5, {"state": "waiting", **spent, "compute_s": 1.0}),
        (2.0, {"state": "computing", "compute_s": 1.0, "network_s": 0.5, "waiting_s": 0.5}),
    )
    worker = recorded_since(recorder, 0, T + 2)
    assert (worker.computing[0], worker.sending[0], worker.waiting[0]) == (50, 25, 25)


STEP = (
    0.5  # seconds, of which 0.25 are computing, 0.05 the network's and 0.2 waiting; reported from 0.1 s of silence on
)


def steps(recorder: Recorder, first: int, last: int) -> None:
    for step in range(first, last):
        at, sums = T + STEP * step, {"compute_s": 0.25 * step, "network_s": 0.05 * step, "waiting_s": 0.2 * step}
        computed = {**sums, "compute_s": 0.25 * (step + 1)}
        recorder.note(0, 3, {"state": "computing", **sums}, at)
        recorder.note(0, 3, {"state": "exchanging", **computed}, at + 0.25)
        recorder.note(0, 3, {"state": "waiting", **computed}, at + 0.4)


@pytest.mark.parametrize("looks", [1, 3, 9, 40])
def test_exchange_time_is_divided_by_its_reported_sums(looks: int) -> None:
    """However often the timeline is read meanwhile, and if the reads are merged as the page merges them."""
    recorder, since = Recorder(), 0.0
    turns: list[tuple[float, int]] = []
    shares: dict[str, dict[int, int]] = {"computing": {}, "sending": {}, "waiting": {}}
    for step in range(40):
        steps(recorder, step, step + 1)
        if step % (40 // looks) == 0:
            worker = recorded_since(recorder, since, since := T + STEP * step + 0.45)
            turns = [turn for turn in turns if not worker.turns or turn < worker.turns[0]] + worker.turns
            for name, of in shares.items():
                of.update(enumerate(getattr(worker, name), worker.first))
    steps(recorder, 40, 41)
    worker = recorded_since(recorder, since, T + 20)
    turns = [turn for turn in turns if turn < worker.turns[0]] + worker.turns
    for name, of in shares.items():
        of.update(enumerate(getattr(worker, name), worker.first))
    whole = recorded_since(recorder, 0, T + 20)
    assert turns == whole.turns
    assert turns[:6] == [(T, 1), (T + 0.25, 2), (T + 0.3, 3), (T + 0.5, 1), (T + 0.75, 2), (T + 0.8, 3)]
    for name, share in (("computing", 50), ("sending", 10), ("waiting", 40)):
        assert [shares[name][FIRST + number] for number in range(10)] == [share] * 10 == getattr(whole, name)[:10]


@pytest.mark.parametrize(
    ("waited_s", "turns", "sending", "waiting"),
    [
        (3.0, [(T, 1), (T + 0.9, 3), (T + 3.95, 1)], [5, 0], [10, 98]),
        (0.95, [(T, 1), (T + 0.9, 3), (T + 1.9, 2), (T + 3, 3), (T + 3.95, 1)], [10, 50], [5, 48]),
    ],
)
def test_waiting_reported_before_an_exchange_is_not_part_of_it(
    waited_s: float, turns: list[tuple[float, int]], sending: list[int], waiting: list[int]
) -> None:
    """Between two reports lie whole steps; the second report finds the worker waiting."""
    spent = {"compute_s": 0.8, "network_s": 0.05, "waiting_s": 0.05}
    recorder = recorded(
        (0.0, {"state": "computing", "compute_s": 0.0, "network_s": 0.0, "waiting_s": 0.0}),
        (0.9, {"state": "waiting", **spent}),
        (1.9, {"state": "waiting", **spent}),
        (3.95, {"state": "computing", **spent, "network_s": 0.07, "waiting_s": 0.05 + waited_s}),
    )
    worker = recorded_since(recorder, 0, T + 3.95)
    assert worker.turns == turns
    assert [len(of) for of in (worker.computing, worker.sending, worker.waiting)] == [2, 2, 2]
    assert (worker.sending, worker.waiting) == (sending, waiting)
    sums = [sum(of) for of in zip(worker.computing, worker.sending, worker.waiting, strict=True)]
    assert sums == pytest.approx([100, 98], abs=1)


def test_reported_waiting_is_corrected_to_network_time() -> None:
    """The network was silent during that time."""
    spent = {"compute_s": 0.0, "network_s": 0.0, "waiting_s": 0.0}
    recorder = recorded(
        (0.0, {"state": "exchanging", **spent}),
        (1.5, {"state": "waiting", **spent}),
        (2.0, {"state": "computing", **spent, "network_s": 2.0}),
    )
    worker = recorded_since(recorder, 0, T + 2)
    assert worker.turns == [(T, 2), (T + 2, 1)]
    assert (worker.sending[0], worker.waiting[0]) == (100, 0)


def test_recorder_returns_only_new_bins() -> None:
    recorder = recorded((0.0, {"state": "computing"}), (5.0, {"state": "waiting"}))
    worker = recorded_since(recorder, T + 5.5, T + 6)
    assert (worker.turns, worker.first, worker.waiting) == ([], FIRST + 2, [50, 0])


def test_silent_workers_state_is_unknown_until_its_next_report() -> None:
    recorder = recorded((0.0, {"state": "computing"}))
    assert recorded_since(recorder, 0, T + 10).computing == [100, 50, 0, 0, 0, 0]
    recorder.note(0, 3, {"state": "computing"}, T + 10.5)
    late = recorded_since(recorder, T + 10, T + 11)
    assert (late.first, late.computing) == (FIRST + 1, [100, 100, 100, 100, 50]), "what was sent before is corrected"
    assert recorded_since(recorder, T + 11, T + 11.5).first == FIRST + 5, "once"


def test_corrected_gap_is_sent_to_open_pages() -> None:
    """A page that was open all along ends with the same data as one that is opened then."""
    recorder = recorded((0.0, {"state": "computing"}))
    page: dict[int, int] = {}
    for step in range(1, 17):
        if step == 10:
            recorder.note(0, 3, {"state": "computing"}, T + 5.0)
        worker = recorded_since(recorder, T + 0.5 * (step - 1), T + 0.5 * step)
        page |= enumerate(worker.computing, worker.first)
    whole = recorded_since(recorder, 0, T + 8)
    assert page == dict(enumerate(whole.computing, whole.first))
    assert whole.computing == [100, 100, 100, 100, 0]


def test_clock_jump_of_years_costs_no_more_than_an_hour() -> None:
    """A machine without a clock starts in 1970, until its time is set."""
    recorder = recorded((-T, {"state": "computing"}), (0.0, {"state": "waiting"}), (1.0, {"state": "computing"}))
    worker = recorded_since(recorder, T - 3 * BIN_S, T + 2)
    assert (worker.computing[-5:], worker.waiting[-5:]) == ([100, 100, 100, 50, 0], [0, 0, 0, 50, 0])
    assert len(worker.computing) <= BINS


@pytest.mark.parametrize("state", ["", "finished", "no such state", None, 7])
def test_other_state_names_are_recorded_as_unknown(state: str | int | None) -> None:
    recorder = recorded((0.0, {"state": "computing"}), (1.0, {"state": state}))
    worker = recorded_since(recorder, 0, T + 4)
    assert (worker.turns[-1], worker.computing) == ((T + 1, 0), [50, 0, 0])


def test_recorder_memory_is_bounded() -> None:
    recorder = Recorder()
    for second in range(2 * BIN_S * BINS):
        recorder.note(0, 3, {"state": ("computing", "waiting")[second % 2], "loss": float(second)}, T + second)
    worker = recorded_since(recorder, 0, T + 2 * BIN_S * BINS)
    assert (len(worker.turns), len(worker.computing), len(worker.loss)) == (TURNS, BINS, BINS)
    assert set(worker.waiting[:-2]) == {50}


def test_clock_set_back_and_nonfinite_numbers_are_tolerated() -> None:
    recorder = recorded((5.0, {"state": "computing", "loss": "NaN"}), (1.0, {"state": "waiting", "loss": 1e300}))
    worker = recorded_since(recorder, 0, T + 1)
    assert worker.turns == [(T + 5, 1), (T + 5, 3)]
    assert set(worker.loss) == {None}


def test_recorder_forgets_a_deleted_job() -> None:
    recorder = recorded((0.0, {"state": "computing"}))
    assert recorder.timeline(0, 0, T + 1).recording == T
    assert recorder.timeline(1, 0, T + 1).workers == []
    recorder.forget(0)
    assert recorder.timeline(0, 0, T + 1).workers == []
    recorder.note(0, 0, {"state": "waiting"}, T + 9)
    assert recorder.timeline(0, 0, T + 9).recording == T + 9
