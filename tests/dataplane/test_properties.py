"""What always holds (docs/protocol.md), for real workers and the real P4 program under loss, repeats and swaps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from tests.dataplane.conftest import WORKERS, EmbeddedDataPlane
from tests.harness import Schedule, Weather, any_strategy

ROUGH = Weather(loss=0.05, repeat=0.05)
STORM = Weather(loss=0.2, repeat=0.1)


@pytest.fixture(scope="module")
def plane() -> EmbeddedDataPlane:
    return EmbeddedDataPlane()


def random_strategies(seed: int) -> Iterator[Strategy]:
    rng = random.Random(seed)
    while True:
        yield any_strategy(rng, WORKERS)


def run(plane: EmbeddedDataPlane, seed: int, strategies: Iterator[Strategy], swaps: int, weather: Weather) -> Schedule:
    schedule = Schedule(plane, seed, workers=WORKERS, strategies=strategies, swaps=swaps, weather=weather)
    schedule.run()
    return schedule


@pytest.mark.parametrize("seed", range(12))
def test_exactly_once(plane: EmbeddedDataPlane, seed: int) -> None:
    """Across random swaps, with up to a fifth of all packets lost."""
    weather = (Weather(), ROUGH, STORM)[seed % 3]
    run(plane, seed, random_strategies(seed), 8, weather).check_exactly_once()


@pytest.mark.parametrize("staleness", [0, 1, 3, 15])
def test_bounded_staleness(plane: EmbeddedDataPlane, staleness: int) -> None:
    """The harness checks the bound at every step of every worker."""
    run(plane, staleness, itertools.repeat(SSP(staleness)), 3, ROUGH).check_exactly_once()


@pytest.mark.parametrize("seed", range(3))
def test_isolated_bsp(plane: EmbeddedDataPlane, seed: int) -> None:
    """All workers read the same value for the same epoch and round, also under loss."""
    schedule = run(plane, seed, itertools.repeat(BSP()), 4, STORM)
    schedule.check_exactly_once()
    assert schedule.bsp_reads > 3 * 15


@pytest.mark.parametrize("first", [BSP(), SSP(10), Quorum(2), ASP()], ids=str)
def test_no_stuck_worker(plane: EmbeddedDataPlane, first: Strategy) -> None:
    """Shrinking and growing the bound, there and back: everybody finishes."""
    run(plane, 5, itertools.cycle([first, BSP(), SSP(10), SSP(1), ASP()]), 40, ROUGH).check_exactly_once()


def test_one_policy_per_decision(plane: EmbeddedDataPlane) -> None:
    """A round is never completed by arrivals of two epochs: two of three workers are in the old one."""
    schedule = Schedule(plane, 1, workers=WORKERS, strategies=itertools.repeat(BSP()), swaps=0, weather=Weather())
    for worker in schedule.workers[:2]:
        schedule.push(worker)
    schedule.run_until(0.05)
    schedule.install(BSP())
    schedule.workers[2].protocol.epoch = 2  # it has heard of the swap; the other two have not
    schedule.push(schedule.workers[2])
    schedule.run_until(0.25)
    assert plane.switch.register_read_all("SereneIngress.barrier.base_of", 0, 3) == [0, 0, 0]
    assert not schedule.workers[2].protocol.done
