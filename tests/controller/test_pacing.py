"""The automatic strategy `pacing`: decisions that follow from observations. No switch."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from math import comb
from typing import Any

import pytest

from serene.controller.automatic import Automatic, Decision, WorkerView, load
from serene.controller.automatic.pacing import _chances
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from tests.controller.observations import decided, seen, view

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
OUTLASTS = "of the gradients' agreement outlasts one update)"
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
    ("gradients agree", eight(left=0.7), BSP(), f"nobody is late: a round waits for 8 of 8 (0.7 {OUTLASTS}"),
    ("one is slow", eight(SLOW, left=0.7), Quorum(7), "worker 0 is late: a round waits for 7 of 8"),
    ("one is late", eight({"latest_s": 0.12}, left=0.7), Quorum(7), "worker 0 is late: a round waits for 7 of 8"),
    ("three are slow", eight(*[SLOW] * 3, left=0.7), ASP(), "workers are late in turns: nobody waits"),
    ("slow and once", eight(SLOW, ONCE, left=0.7), ASP(), "workers are late in turns: nobody waits"),
    ("once", eight(ONCE, left=0.0), ASP(),
     f"workers are late in turns: nobody waits (late gradients help: 0.0 {OUTLASTS}"),
    ("oscillates, three a little late", eight(*[LATE] * 3, left=-0.7),
     Quorum(6), "training oscillates: a round waits for 6 of 8 (-0.7"),
    ("oscillates, three slow", eight(*[SLOW] * 3, left=-0.7),
     Quorum(5), f"training oscillates: a round waits for 5 of 8 (-0.7 {OUTLASTS}"),
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
    for left, waits in ((0.7, "nobody waits"), (None, "a round waits for 5 of 8")):
        pacing = load("pacing")
        pacing.decide(seen(*eight(*[SLOW] * 3, left=left)))
        again = decided(pacing, seen(*eight(left=left)))
        assert again.reason == f"workers were late within 20 iterations: {waits}"


def test_pacing_waits_for_a_quorum_as_soon_as_training_oscillates() -> None:
    pacing = load("pacing")
    for left, expected in ((0.7, ASP()), (-0.7, Quorum(5)), (0.7, ASP())):
        assert decided(pacing, seen(*eight(*[SLOW] * 3, left=left))).strategy == expected


STEP_S = 0.108  # the seconds of a step of `view`'s workers, without waiting
steps = count(1)


def beginning() -> Automatic:
    """A strategy that is on when the job begins."""
    global steps
    steps = count(1)
    return load("pacing")


def with_momentum(pacing: Automatic, *late: dict[str, Any]) -> Strategy:
    """What it chooses a step after its last decision."""
    views = eight(*late, left=0.9, momentum=0.9)
    return decided(pacing, replace(seen(*views), t=STEP_S * next(steps))).strategy


def after_calm(rounds: int = 30) -> Automatic:
    """A strategy that has seen so many iterations of eight workers, all in time."""
    pacing = beginning()
    for done in range(1, rounds + 1):
        assert with_momentum(pacing, *[{"rounds": done}] * 8) == BSP()
    return pacing


def test_pacing_with_momentum_needs_lateness_twice_in_a_row() -> None:
    pacing = after_calm()
    assert with_momentum(pacing, {"rounds": 31, **SLOW}) == BSP()  # the first time
    assert with_momentum(pacing, {"rounds": 32, **SLOW}) == Quorum(7)


def test_pacing_with_momentum_leaves_out_at_most_half_of_the_workers_that_remain() -> None:
    """It left out four of eight; then only three workers are left."""
    pacing = beginning()
    for done in (31, 32, 33):
        chosen = with_momentum(pacing, *[{"rounds": done, "latest_s": 0.3}] * 3)
    assert chosen == Quorum(4)
    remaining = eight(*[{"rounds": 34, "latest_s": 0.3}] * 3, left=0.9, momentum=0.9)[:3]
    strategy = decided(pacing, replace(seen(*remaining), t=STEP_S * next(steps))).strategy
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
    assert with_momentum(beginning(), *[{"rounds": 1, "latest_s": latest_s}] * 3) == expected


def test_pacing_with_momentum_leaves_out_more_than_a_quarter_if_these_are_always_late() -> None:
    """Three of eight are, and a fourth one is in every second iteration."""
    pacing, always = beginning(), {"latest_s": 0.3}
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


def test_pacing_forgets_a_session_that_the_switch_has_lost() -> None:
    """Its time and its iterations began from 0. The strategy had waited for all of eight, or for five."""
    calm = [{"rounds": 1}] * 8
    assert with_momentum(pacing := after_calm(), *calm) == BSP()
    again = seen(*eight(*calm, left=0.9, momentum=0.9))
    assert decided(pacing, replace(again, t=0.1)).strategy == BSP(), "negative time makes the worst number the best"
    pacing = load("pacing")
    assert decided(pacing, seen(*eight(*[SLOW] * 3))).strategy == Quorum(5)
    pacing.decide(replace(seen(*eight(*[{"rounds": 900, **SLOW}] * 3)), t=9.0))
    assert decided(pacing, replace(seen(*eight(*calm)), t=0.1)).strategy == BSP(), "not after 900 iterations"


def switched_on(*looks: tuple[float, int], late: int = 3) -> list[tuple[Strategy, str]]:
    """Returns what a strategy chooses, and the beginning of the reason, in a job that has run for 50 s under SSP(2):
    by seconds since then, and iterations done since then. late: workers of eight."""
    pacing, found = load("pacing"), []
    for later_s, rounds in looks:
        views = [replace(each, rounds=500 + rounds) for each in eight(*[SLOW] * late, left=0.7)]
        answer = decided(pacing, replace(seen(*views, strategy=SSP(2)), t=50.0 + later_s))
        found.append((answer.strategy, answer.reason[:26]))
    return found


@pytest.mark.parametrize("end", [(0.4, 8), (8 * 0.12, 2)])
def test_pacing_observes_a_running_job_before_it_decides(end: tuple[float, int]) -> None:
    """Otherwise each of its first decisions would follow from other workers. A worker may have stopped; then it decides
    after the time of eight iterations, 0.12 s each."""
    observes, turns = (SSP(2), "observes 8 iterations befo"), (ASP(), "workers are late in turns:")
    assert switched_on((0.0, 0), (0.3, 7), end) == [observes, observes, turns]


def test_pacing_that_is_on_from_the_start_decides_at_once() -> None:
    pacing = load("pacing")
    for t, rounds, expected in ((0.1, 1, BSP()), (50.0, 500, ASP())):
        late = [SLOW] * 3 if rounds > 1 else []
        views = [replace(each, rounds=rounds) for each in eight(*late, left=0.7)]
        assert decided(pacing, replace(seen(*views), t=t)).strategy == expected


@pytest.mark.parametrize(("looks", "expected"), [
    ([[{}] * 8], "nobody is late: a round waits for 8 of 8 (late gradients are harmful with momentum 0.9)"),
    ([[SLOW] * 3] * 3,
     "workers were late in turns: a round waits for 4 of 8 (late gradients are harmful with momentum 0.9)"),
])  # fmt: skip
def test_pacing_with_momentum_gives_its_reason(looks: list[list[dict[str, Any]]], expected: str) -> None:
    pacing = beginning()
    for done, late in enumerate(looks, 31):
        views = eight(*[{"rounds": done, **each} for each in late], left=0.9, momentum=0.9)
        answer = decided(pacing, replace(seen(*views), t=STEP_S * next(steps)))
    assert answer.reason == expected


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
        answer = decided(pacing, replace(seen(*views), t=now))
        who, k = ("worker 0", 7) if strategy == Quorum(7) else ("nobody", 8)
        reason = f"{who} is late: a round waits for {k} of 8 (in the first iteration)"
        assert (answer.strategy, answer.reason) == (strategy, reason)
    views = [replace(each, compute_s=None, momentum=momentum) for each in eight(*[{"rounds": 0}] * 3)]
    assert decided(pacing, replace(seen(*views), t=9.0)).strategy == Quorum(6), "a quarter at most"


def test_pacing_keeps_evicted_workers_evicted_and_waits_for_times() -> None:
    answer = decided(load("pacing"), seen(*CALM, view(3, is_member=False, silent_s=9.0)))
    assert answer == Decision(BSP(), frozenset({3}), answer.reason)
    assert load("pacing").decide(seen(view(0, compute_s=None), view(1, compute_s=None))) is None
    assert load("pacing").decide(seen(view(0))) is None


@pytest.mark.parametrize(("workers", "share"), [(4, 0.1), (8, 1 / 3), (256, 0.05), (512, 0.9)])
def test_chances_of_late_workers_are_binomial(workers: int, share: float) -> None:
    """To the bit: the recorded runs of `make compare` were decided by this formula."""
    direct = [comb(workers, late) * share**late * (1 - share) ** (workers - late) for late in range(workers // 2 + 1)]
    assert list(_chances(workers, share, workers // 2)) == direct
