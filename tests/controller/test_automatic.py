"""Automatic strategies: observations, and the decisions that follow from them. No switch."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from serene.controller.automatic import (
    Automatic,
    Decision,
    Observation,
    Observer,
    Sight,
    WorkerView,
    load,
)
from serene.controller.switch.silence import Silence, spoken
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from tests.controller.observations import seen, view, waiting

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


# -- pacing --------------------------------------------------------------------------------------------------


def decided(automatic: Automatic, observation: Observation) -> Decision:
    answer = automatic.decide(observation)
    assert isinstance(answer, Decision)
    return answer


ALONE = "(by waiting times alone: the effect of late gradients is unknown)"
SLOW = {"slowest_s": 0.3, "latest_s": 0.3}  # seconds; the others compute for 0.1
ONCE = {"slowest_s": 0.3}  # but in time now


def eight(*late: dict[str, Any], left: float | None = None, momentum: float | None = None) -> list[WorkerView]:
    """Returns eight workers, of which the first ones are late. left: the gradients' agreement that remains one update
    later."""
    agreement: dict[str, Any] = {} if left is None else {"agreement": 0.4, "agreement_after": 0.4 * left}
    views = [view(worker, momentum=momentum, **agreement) for worker in range(8)]
    return [replace(each, **more) for each, more in zip(views, [*late, *[{}] * 8], strict=False)]


LATE, LATER = {"latest_s": 0.14}, {"latest_s": 0.3}
CALM = [view(worker) for worker in range(3)]
PACED: list[tuple[str, list[WorkerView], Strategy, str]] = [  # the case, what is seen, and how the decision begins
    ("nobody is late", [view(worker, 0.1 + 0.003 * worker) for worker in range(8)],
     BSP(), f"nobody is late: a round waits for 8 of 8 {ALONE}"),
    ("slow", eight(LATE, LATE), Quorum(6), f"workers 0, 1 are late: a round waits for 6 of 8 {ALONE}"),
    ("silent", eight(*[{"silent_s": 0.14}] * 2),
     Quorum(6), f"workers 0, 1 are late: a round waits for 6 of 8 {ALONE}"),
    ("a little late beyond the first quarter", eight(*[LATE] * 3), Quorum(6), ""),
    ("late enough beyond the first quarter", eight(*[LATER] * 3), Quorum(5), ""),
    ("at least half are waited for", [view(0), *(view(worker, 0.5) for worker in range(1, 8))], Quorum(4), ""),
    ("gradients agree", eight(left=0.7), BSP(), "nobody is late: a round waits for 8 of 8"),
    ("one is slow", eight(SLOW, left=0.7), Quorum(7), "worker 0 is late: a round waits for 7 of 8"),
    ("one is late", eight({"latest_s": 0.12}, left=0.7), Quorum(7), "worker 0 is late: a round waits for 7 of 8"),
    ("three are slow", eight(*[SLOW] * 3, left=0.7), ASP(), "workers are late in turns: nobody waits"),
    ("slow and once", eight(SLOW, ONCE, left=0.7), ASP(), "workers are late in turns: nobody waits"),
    ("once", eight(ONCE, left=0.0), ASP(), "workers are late in turns: nobody waits"),
    ("oscillates, three a little late", eight(*[LATE] * 3, left=-0.7),
     Quorum(6), "training oscillates: a round waits for 6 of 8 (-0.7"),
    ("oscillates, three slow", eight(*[SLOW] * 3, left=-0.7),
     Quorum(5), "training oscillates: a round waits for 5 of 8 (-0.7"),
    ("oscillates, all slow", eight(*[SLOW] * 8, left=-0.7),
     Quorum(1), "training oscillates: a round waits for 1 of 8 (-0.7"),
    ("oscillates, once", eight(ONCE, left=-0.7), Quorum(6), "training oscillates: a round waits for 6 of 8 (-0.7"),
    ("oscillates, nobody late", eight(left=-0.7), Quorum(6), "training oscillates: a round waits for 6 of 8 (-0.7"),
    ("two workers oscillate", eight(left=-0.7)[:2], BSP(), ""),
    ("three workers oscillate", eight(left=-0.7)[:3], BSP(), ""),
    ("four workers oscillate", eight(left=-0.7)[:4], Quorum(3), ""),
    ("an agreement within noise", [replace(each, agreement=0.005, agreement_after=-0.005) for each in eight(ONCE)],
     BSP(), f"nobody is late: a round waits for 8 of 8 {ALONE}"),
    ("one of four is slow", [*CALM, view(3, slowest_s=0.9, latest_s=0.9)], Quorum(3), ""),
    ("after an iteration in time", [*CALM, view(3, slowest_s=0.9, latest_s=0.1)], BSP(), ""),
]  # fmt: skip


@pytest.mark.parametrize(("case", "views", "strategy", "why"), PACED, ids=[case for case, *_ in PACED])
def test_pacing_waits_as_lateness_and_worth_of_gradients_demand(
    case: str, views: list[WorkerView], strategy: Strategy, why: str
) -> None:
    answer = decided(load("pacing"), seen(*views))
    assert (answer.strategy, answer.reason[: len(why)]) == (strategy, why), case


def choices(left: float | None, *looks: tuple[int, list[dict[str, Any]]]) -> list[Strategy]:
    """Returns what one strategy chooses, look by look: iterations done, and the workers that are late."""
    pacing, found = load("pacing"), []
    for rounds, late in looks:
        views = [replace(each, rounds=rounds) for each in eight(*late, left=left)]
        found.append(decided(pacing, seen(*views)).strategy)
    return found


@pytest.mark.parametrize(("left", "loose"), [(0.7, ASP()), (None, Quorum(5))])
def test_pacing_waits_for_more_workers_only_after_calm_iterations(left: float | None, loose: Strategy) -> None:
    """Compute times scatter: a swap for each late iteration would cost more than it saves."""
    some, many = [{"latest_s": 0.14}], [SLOW] * 3
    assert choices(left, (1, []), (2, many), (3, []), (12, some), (21, [])) == [BSP(), *[loose] * 4]
    assert choices(left, (1, []), (2, many), (22, []), (23, some)) == [BSP(), loose, BSP(), Quorum(7)]
    assert choices(left, (2, many), (12, many), (22, []), (32, [])) == [loose, loose, loose, BSP()]


def test_pacing_says_why_it_waits_for_fewer_workers_than_are_in_time() -> None:
    pacing, again = load("pacing"), seen(*eight(left=0.7))
    pacing.decide(seen(*eight(*[SLOW] * 3, left=0.7)))
    assert decided(pacing, again).reason == "workers were late within 20 iterations: nobody waits"


def test_pacing_waits_for_a_quorum_as_soon_as_training_oscillates() -> None:
    pacing = load("pacing")
    for left, expected in ((0.7, ASP()), (-0.7, Quorum(5)), (0.7, ASP())):
        assert decided(pacing, seen(*eight(*[SLOW] * 3, left=left))).strategy == expected


STEP_S = 0.108  # the seconds of a step of `view`'s workers, without waiting
steps = count(1)


def with_momentum(pacing: Automatic, *late: dict[str, Any]) -> Strategy:
    """What it chooses a step after its last decision."""
    views = eight(*late, left=0.9, momentum=0.9)
    return decided(pacing, replace(seen(*views), t=STEP_S * next(steps))).strategy


def after_calm(rounds: int = 30) -> Automatic:
    """A strategy that has seen so many iterations of eight workers, all in time."""
    pacing = load("pacing")
    for done in range(1, rounds + 1):
        assert with_momentum(pacing, *[{"rounds": done}] * 8) == BSP()
    return pacing


def test_pacing_with_momentum_needs_lateness_twice_in_a_row() -> None:
    pacing = after_calm()
    assert with_momentum(pacing, {"rounds": 31, **SLOW}) == BSP()  # the first time
    assert with_momentum(pacing, {"rounds": 32, **SLOW}) == Quorum(7)


def test_pacing_with_momentum_leaves_out_at_most_half_of_the_workers_that_remain() -> None:
    """It left out four of eight; then only three workers are left, of a session whose time begins anew."""
    pacing = load("pacing")
    for done in (31, 32, 33):
        chosen = with_momentum(pacing, *[{"rounds": done, "latest_s": 0.3}] * 3)
    assert chosen == Quorum(4)
    remaining = eight(*[{"rounds": 34, "latest_s": 0.3}] * 3, left=0.9, momentum=0.9)[:3]
    strategy = decided(pacing, replace(seen(*remaining), t=0.0)).strategy
    assert strategy in (BSP(), Quorum(2))


def test_pacing_with_momentum_changes_the_number_once_that_is_worth_a_swap() -> None:
    """To leave out one of eight costs 14 / 7**3 of a round while all are in time. A swap costs 0.15 steps."""
    pacing = after_calm()
    for done in (31, 32):
        with_momentum(pacing, {"rounds": done, **SLOW})
    later = [with_momentum(pacing, {"rounds": done, **ONCE}) for done in range(33, 38)]
    assert later == [*[Quorum(7)] * 3, BSP(), BSP()]


@pytest.mark.parametrize(("calm", "silent_s", "expected"), [
    (30, 0.12, BSP()),  # less than a quarter of a step of 0.108 s
    (30, 0.15, Quorum(7)),
    (0, 0.3, BSP()),  # too little is known to call it rare
    (0, 0.35, Quorum(7)),  # by more than two steps
])  # fmt: skip
def test_pacing_with_momentum_waits_until_lateness_proves_rare(calm: int, silent_s: float, expected: Strategy) -> None:
    assert with_momentum(after_calm(calm), {"silent_s": silent_s}) == expected


@pytest.mark.parametrize(("late", "expected"), [(1, BSP()), (2, Quorum(7)), (4, Quorum(6))])
def test_pacing_with_momentum_leaves_out_workers_late_in_turns(late: int, expected: Strategy) -> None:
    pacing = after_calm(10)
    for done in range(11, 41):  # they are late in one of three iterations
        views = [{"rounds": done, "latest_s": 0.3 if done % 3 == 0 and worker < late else 0.1} for worker in range(8)]
        strategy = with_momentum(pacing, *views)
    assert strategy == expected


@pytest.mark.parametrize(("latest_s", "expected"), [(0.172, BSP()), (0.176, Quorum(7))])
def test_pacing_with_momentum_expects_the_mean_of_sudden_lateness(latest_s: float, expected: Strategy) -> None:
    """Of the observed ones alone: the one that is assumed before any is known has no length."""
    assert with_momentum(load("pacing"), *[{"rounds": 1, "latest_s": latest_s}] * 3) == expected


def test_pacing_with_momentum_leaves_out_more_than_a_quarter_if_these_are_always_late() -> None:
    """Three of eight are, and a fourth one is in every second iteration."""
    pacing, always = load("pacing"), {"latest_s": 0.3}
    for done in range(1, 13):
        views = [*[{"rounds": done, **always}] * 3, *[{"rounds": done, **(always if done % 2 == 0 else {})}]]
        strategy = with_momentum(pacing, *views)
    assert strategy == Quorum(4)


@pytest.mark.parametrize(("latest_s", "expected", "why"), [
    (0.14, BSP(), "waiting for late workers costs less: a round waits for 8 of 8"),
    (0.3, Quorum(5), "workers 0, 1, 2 are late: a round waits for 5 of 8"),
])  # fmt: skip
def test_pacing_with_momentum_weighs_waiting_against_harm(latest_s: float, expected: Strategy, why: str) -> None:
    pacing = after_calm()
    late = {"latest_s": latest_s}
    with_momentum(pacing, *[{"rounds": 31, **late}] * 3)
    assert with_momentum(pacing, *[{"rounds": 32, **late}] * 3) == expected


@pytest.mark.parametrize(
    ("momentum", "t", "expected"), [(None, 3.0, Quorum(7)), (0.9, 3.0, BSP()), (0.9, 6.5, Quorum(7))]
)
def test_pacing_excludes_workers_late_in_the_first_iteration(
    momentum: float | None, t: float, expected: Strategy
) -> None:
    pacing = load("pacing")
    views = [replace(each, compute_s=None, momentum=momentum) for each in eight({"rounds": 0})]
    assert pacing.decide(replace(seen(*[replace(each, rounds=0) for each in views]), t=1.0)) is None
    for now, strategy in ((2.0, BSP()), (t, expected)):
        assert decided(pacing, replace(seen(*views), t=now)).strategy == strategy
    views = [replace(each, compute_s=None, momentum=momentum) for each in eight(*[{"rounds": 0}] * 3)]
    assert decided(pacing, replace(seen(*views), t=9.0)).strategy == Quorum(6), "a quarter at most"


def test_pacing_keeps_evicted_workers_evicted_and_waits_for_times() -> None:
    answer = decided(load("pacing"), seen(*CALM, view(3, is_member=False, silent_s=9.0)))
    assert answer == Decision(BSP(), frozenset({3}), answer.reason)
    assert load("pacing").decide(seen(view(0, compute_s=None), view(1, compute_s=None))) is None
    assert load("pacing").decide(seen(view(0))) is None


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


# -- sync-switch ---------------------------------------------------------------------------------------------


def test_sync_switch_swaps_to_asp_once_after_its_iterations() -> None:
    automatic = load("sync-switch", {"after": 30})
    assert automatic.decide(seen(view(0, rounds=10), view(1, rounds=12))) == BSP()
    assert automatic.decide(seen(view(0, rounds=29), view(1, rounds=29))) == BSP()
    assert automatic.decide(seen(view(0, rounds=30), view(1, rounds=31))) == ASP()
    assert automatic.decide(seen(view(0, rounds=90), view(1, rounds=60), strategy=ASP())) == ASP()


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
    assert automatic.decide(back) == Decision(SSP(3))
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
    "reported", [{"agreement": 5.0}, {"agreement_after": -1e15}, {"momentum": 1e9}, {"momentum": -1.0}]
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
    assert sight.blind_to(seen(view(0), view(1, rounds=0, **dark)), 5.0) == (), "it was started anew"


def test_slow_worker_is_not_reported_blind_too_early() -> None:
    sight = Sight(load("waiting").needs)
    slow = seen(view(0, rounds=1, waiting_share=None))
    assert [sight.blind_to(slow, now) for now in (0.0, 20.0, 31.0)] == [(), (), (0,)]


def test_evict_strategy_needs_no_worker_reports() -> None:
    dark = view(0, iteration_s=None, compute_s=None, slowest_s=None, waiting_share=None)
    sight = Sight(load("evict").needs)
    assert [sight.blind_to(seen(dark), now) for now in (0.0, 100.0)] == [(), ()]
