"""Automatic strategies: observations, and the decisions that follow from them. No switch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from serene.controller.automatic import Automatic, Decision, Observer, Sight, load
from serene.controller.switch.silence import Silence, spoken
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from tests.controller.observations import decided, seen, view, waiting

# -- dssp ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((0.1, 0.1, 0.1), BSP()),
        ((0.1, 0.1, 0.105), BSP()),  # less than the tolerance is worth
        ((0.1, 0.1, 0.2), SSP(1)),  # after two iterations of the fast one, the slow one has one
        ((0.1, 0.12, 0.3), SSP(2)),
        ((0.1, 0.1, 0.25), SSP(4)),  # five fast ones are two slow ones
    ],
)
def test_dssp_bound_follows_the_iteration_times(times: tuple[float, ...], expected: Strategy) -> None:
    views = [view(worker, time) for worker, time in enumerate(times)]
    assert load("dssp").decide(seen(*views)) == expected


def test_dssp_bridges_a_spike_and_keeps_to_its_bounds() -> None:
    spike = [view(0), view(1, slowest_s=0.4)]
    assert load("dssp").decide(seen(*spike)) == SSP(3)
    assert load("dssp", {"high": "2"}).decide(seen(*spike)) == SSP(2)
    assert load("dssp", {"low": 5}).decide(seen(view(0), view(1))) == SSP(5)


def test_dssp_ignores_evicted_workers_and_waits_for_times() -> None:
    assert load("dssp").decide(seen(view(0), view(1, 5.0, is_member=False))) == BSP()
    assert load("dssp").decide(seen(view(0, compute_s=None, slowest_s=None))) is None


# -- saina and adsp, which are built from their papers ---------------------------------------------------------


def losses(automatic: Automatic, values: list[float], rounds: float = 1.0) -> list[Strategy]:
    """Returns the decision at each look when four workers report these losses."""
    chosen = []
    for look, loss in enumerate(values):
        workers = [view(worker, loss=loss, rounds=int(rounds * look)) for worker in range(4)]
        chosen.append(decided(automatic, replace(seen(*workers), t=float(look))).strategy)
    return chosen


def test_saina_raises_the_quorum_when_the_loss_stops_falling() -> None:
    falling = [2.0 * 0.9**look for look in range(40)]
    assert set(losses(load("saina", {"window": 5}), falling)) == {Quorum(2)}
    flat = losses(load("saina", {"window": 5}), [1.0] * 40)
    assert list(dict.fromkeys(flat)) == [Quorum(2), Quorum(3), BSP()]
    assert flat.index(Quorum(3)) == 10, "two windows"


def test_adsp_tightens_the_bound_while_the_loss_falls_faster() -> None:
    """1 / loss grows by 1 per second under the first bound, by 2 under the second and by 1 under the third."""
    grown, level = [], 1.0
    for bound in (1.0, 2.0, 1.0):
        grown += [level + bound * second for second in range(11)]
        level = grown[-1]
    chosen = losses(load("adsp", {"probe": 10}), [1 / value for value in grown])
    assert list(dict.fromkeys(chosen)) == [SSP(15), SSP(7), SSP(3)]
    assert chosen[-1] == SSP(7)


def test_adsp_searches_again_per_epoch_and_is_loose_without_losses() -> None:
    chosen = losses(load("adsp", {"probe": 1, "epoch": 20}), [1.0] * 22)
    assert chosen[3:21] == [SSP(15)] * 18, "no bound makes a difference, so the loosest stays"
    assert chosen[21] == SSP(7), "a new search"
    assert losses(load("adsp"), [0.0]) == [SSP(15)]


@pytest.mark.parametrize("name", ["saina", "adsp"])
def test_strategy_by_losses_leaves_evicted_workers_evicted(name: str) -> None:
    assert decided(load(name), seen(view(0), view(1, is_member=False))).evicted == frozenset({1})


# -- sync-switch ---------------------------------------------------------------------------------------------


def test_sync_switch_swaps_to_asp_once_after_its_iterations() -> None:
    automatic = load("sync-switch", {"after": 30})
    assert automatic.decide(seen(view(0, rounds=10), view(1, rounds=12))) == BSP()
    assert automatic.decide(seen(view(0, rounds=29), view(1, rounds=29))) == BSP()
    assert automatic.decide(seen(view(0, rounds=30), view(1, rounds=31))) == ASP()
    assert automatic.decide(seen(view(0, rounds=90), view(1, rounds=60), strategy=ASP())) == ASP()
    assert automatic.decide(seen(view(0, rounds=1), view(1, rounds=1))) == ASP(), "also after a lost session"


def test_sync_switch_uses_asp_while_a_worker_straggles() -> None:
    automatic = load("sync-switch", {"after": 30})
    straggling = (view(0, rounds=10), view(1, rounds=10), view(2, 0.3, rounds=10))
    assert automatic.decide(seen(*straggling)) == ASP()
    recovered = (view(0, rounds=25), view(1, rounds=25), view(2, rounds=20))
    assert automatic.decide(seen(*recovered, strategy=ASP())) == BSP()
    later = [view(worker, rounds=39) for worker in range(3)]
    assert automatic.decide(seen(*later)) == BSP(), "10 + 19 iterations were synchronous"
    assert automatic.decide(seen(*[view(worker, rounds=40) for worker in range(3)])) == ASP()


# -- waiting -------------------------------------------------------------------------------------------------


def test_waiting_loosens_the_strategy_while_workers_wait() -> None:
    automatic = load("waiting", {"asynchronous": "true"})
    strategy: Strategy = BSP()
    climbed = []
    while (step := automatic.decide(waiting(0.5, strategy))) is not None:
        assert isinstance(step, Strategy)
        climbed.append(step)
        strategy = step
    assert climbed == [SSP(1), SSP(2), SSP(4), SSP(8), SSP(15), ASP()]
    assert load("waiting").decide(waiting(0.5, SSP(15))) is None
    assert load("waiting").decide(waiting(0.5, SSP(3))) == SSP(4)
    assert load("waiting").decide(waiting(0.5, Quorum(2))) == SSP(1)


def test_waiting_tightens_after_patience_doubled_by_a_failure() -> None:
    automatic = load("waiting", {"patience": 3})
    quiet = waiting(0.01, SSP(2))
    assert [automatic.decide(quiet) for _ in range(3)] == [None, None, SSP(1)]
    assert automatic.decide(waiting(0.5, SSP(1))) == SSP(2), "that was too tight"
    assert [automatic.decide(quiet) for _ in range(6)] == [None] * 5 + [SSP(1)]


def test_waiting_ignores_waiting_from_before_the_last_swap() -> None:
    assert load("waiting").decide(waiting(0.9, BSP(), since=1.0)) is None


# -- evict ---------------------------------------------------------------------------------------------------


def test_evict_keeps_the_strategy_and_readmits_workers() -> None:
    automatic = load("evict", {"silent": "2.5"})
    assert automatic.decide(seen(view(0), view(1, silent_s=2.6), strategy=SSP(3))) == Decision(SSP(3), frozenset({1}))
    back = seen(view(0), view(1, silent_s=0.1, is_member=False), strategy=SSP(3))
    assert automatic.decide(back) == Decision(SSP(3), frozenset())
    assert automatic.decide(seen(view(0, silent_s=9.0), view(1, silent_s=9.0))) is None, "somebody must stay"


# -- observing -----------------------------------------------------------------------------------------------


def report(iteration: int, compute: float, waiting: float, **more: object) -> dict[str, object]:
    return {"iteration": iteration, "compute_s": compute, "network_s": 0.0, "waiting_s": waiting, **more}


def test_observed_times_are_those_of_recent_iterations() -> None:
    observer = Observer()
    for step in range(20):
        spent = 0.1 * step + (0.4 if step > 15 else 0.0)  # one iteration took 0.5 s
        observer.note(0, report(step, spent, 0.1 * step, loss=2.0))
    view = observer.view(0, rounds=20, is_member=True, silent_s=0.5)
    assert view.compute_s == pytest.approx((8 * 0.1 + 0.4) / 8)
    assert view.slowest_s == pytest.approx(0.5)
    assert view.waiting_share == pytest.approx(0.8 / 2.0)
    assert (view.silent_s, view.loss) == (0.5, 2.0)


def test_observed_iteration_time_is_that_of_computing_and_exchanging() -> None:
    """Reports may come during an exchange, when one more iteration is computed than done."""
    observer = Observer()
    for step in range(5):
        exchanged = {"network_s": 0.05 * step, "state": "waiting" if step == 4 else "computing"}
        observer.note(0, report(step, 0.1 * step + (0.1 if step == 4 else 0.0), 0.2 * step) | exchanged)
    view = observer.view(0, rounds=4, is_member=True, silent_s=0.0)
    assert view.iteration_s == pytest.approx(0.35)


def test_observed_waiting_share_is_that_of_the_present_epoch() -> None:
    observer = Observer()
    for step in range(8):
        observer.note(0, report(step, 0.1 * step, 0.1 * min(step, 4), epoch=1 if step < 4 else 2))
    view = observer.view(0, rounds=8, is_member=True, silent_s=0.0)
    assert view.waiting_share == 0.0
    assert (view.iteration_s, view.busy_s) == pytest.approx((1.1 / 7, 0.1)), "those of all recent iterations"


def test_observed_agreement_is_that_of_recent_iterations() -> None:
    observer = Observer()
    observer.note(0, report(1, 0.1, 0.0, momentum=0.9))  # its first exchange: nothing is known of gradients
    view = observer.view(0, rounds=1, is_member=True, silent_s=0.0)
    assert (view.momentum, view.agreement, view.agreement_after) == (0.9, None, None)
    for step in range(2, 21):
        after = 0.3 * step if step <= 12 else 3.6 - 0.2 * (step - 12)
        observer.note(0, report(step, 0.1 * step, 0.0, agreement=0.4 * step, agreement_after=after))
    view = observer.view(0, rounds=20, is_member=True, silent_s=0.0)
    assert view.momentum is None
    assert (view.agreement, view.agreement_after) == pytest.approx((0.4, -0.2))


@pytest.mark.parametrize(
    "reported", [{"agreement": 5.0}, {"agreement_after": -1e15}, {"momentum": 1.0}, {"momentum": -1.0}]
)
def test_impossible_cosines_and_momenta_are_ignored(reported: dict[str, float]) -> None:
    """Otherwise one worker's report would outweigh those of all others."""
    observer = Observer()
    for step in range(3):
        facts = {"agreement": 0.4, "agreement_after": -0.2, **reported}
        cosines = {name: step * value for name, value in facts.items() if name != "momentum"}
        observer.note(0, report(step, 0.1 * step, 0.0, momentum=facts.get("momentum", 0.9), **cosines))
    view = observer.view(0, rounds=9, is_member=True, silent_s=0.0)
    assert view.momentum == (None if "momentum" in reported else 0.9)
    agreement = (pytest.approx(0.4), pytest.approx(-0.2)) if "momentum" in reported else (None, None)
    assert (view.agreement, view.agreement_after) == agreement


def test_report_during_an_exchange_counts_one_more_computation() -> None:
    """Each iteration computes 0.1 s, the last one 0.3 s. The reports find the worker in different states."""
    observer = Observer()
    for done, spent, state in (
        (1, 0.1, "computing"),
        (1, 0.2, "exchanging"),
        (2, 0.2, "computing"),
        (3, 0.4, "waiting"),
        (5, 0.7, "computing"),
    ):
        observer.note(0, {**report(done, spent, 0.0), "state": state})
    view = observer.view(0, rounds=5, is_member=True, silent_s=0.0)
    assert (view.compute_s, view.slowest_s, view.latest_s) == pytest.approx((0.6 / 4, 0.3, 0.3))


def test_silence_is_reset_by_repeats_but_not_by_releases() -> None:
    silence = Silence()
    assert silence.seconds(0, 0.5) == 0.0, "nothing is known yet"
    for worker in (0, 1):
        silence.note(worker, spoken({"repeats": 1, "releases": 5}), 1.0)
    silence.note(0, spoken({"repeats": 2, "releases": 5}), 6.0)
    silence.note(1, spoken({"repeats": 1, "releases": 9}), 6.0)
    assert (silence.seconds(0, 7.0), silence.seconds(1, 7.0)) == (1.0, 6.0)


def test_observer_handles_restarted_workers_and_bad_reports() -> None:
    observer = Observer()
    observer.note(0, report(50, 5.0, 0.0))
    observer.note(0, report(60, 6.0, 0.0))
    observer.note(0, report(1, 0.3, 0.0))
    assert observer.view(0, rounds=0, is_member=True, silent_s=0.0).compute_s is None
    observer.note(0, {"iteration": "many", "compute_s": None, "loss": "nan"})
    observer.note(0, report(3, 0.9, 0.0))
    observer.note(0, report(4, 10**400, 0.0))
    assert observer.view(0, rounds=0, is_member=True, silent_s=0.0).compute_s == pytest.approx(0.3)


# -- blindness -----------------------------------------------------------------------------------------------


def test_blindness_concerns_only_members_without_reports() -> None:
    sight = Sight(load("dssp").needs)
    dark: dict[str, Any] = {"compute_s": None, "slowest_s": None}
    for rounds, now in ((0, 0.0), (2, 1.0), (9, 2.9)):
        assert sight.blind_to(seen(view(0), view(1, rounds=rounds, **dark)), now) == (), "reports may be on their way"
    assert sight.blind_to(seen(view(0), view(1, rounds=10, **dark)), 3.1) == (1,)
    assert sight.blind_to(seen(view(0), view(1, rounds=11, is_member=False, **dark)), 3.2) == (), "it does not matter"
    assert sight.blind_to(seen(view(0), view(1)), 4.0) == ()
    anew = seen(view(0), view(1, rounds=0, **dark))
    assert sight.blind_to(anew, 40.0) == (), "it was started anew"
    assert sight.blind_to(replace(anew, epoch=4), 80.0) == (), "nothing is known yet of the new strategy"
    assert sight.blind_to(replace(anew, epoch=4), 120.0) == (1,)


def test_slow_worker_is_not_reported_blind_too_early() -> None:
    sight = Sight(load("waiting").needs)
    slow = seen(view(0, rounds=1, waiting_share=None))
    assert [sight.blind_to(slow, now) for now in (0.0, 20.0, 31.0)] == [(), (), (0,)]


def test_evict_strategy_needs_no_worker_reports() -> None:
    dark = view(0, iteration_s=None, compute_s=None, slowest_s=None, waiting_share=None)
    sight = Sight(load("evict").needs)
    assert [sight.blind_to(seen(dark), now) for now in (0.0, 100.0)] == [(), ()]
