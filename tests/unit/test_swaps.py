"""Latencies of live swaps, computed from hand-written rows of workers with 100 ms an iteration."""

from __future__ import annotations

import itertools
import random

import pytest

from serene.controller.http.client import ControllerClient, Rejected
from serene.controller.jobs.job import JobState
from serene.controller.status.model import JobStatus, SwapStatus, WorkerStatus
from serene.errors import SereneError
from serene.experiments.performance.swaps import FIRST, FIRST_AT_STEP, Commanded, Swapper, latencies, walk
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.strategy import BSP, Strategy

START = 1000.0


def rows(worker: int, epochs: list[int], every_s: float = 0.1) -> list[dict[str, object]]:
    """One iteration after the other, each under an epoch."""
    ends = [(number + 1) * every_s for number in range(len(epochs))]
    return [
        {"t": end, "worker": str(worker), "t_unix": str(START + end), "epoch": str(epoch)}
        for end, epoch in zip(ends, epochs, strict=True)
    ]


def command(t: float, epoch: int) -> Commanded:
    return Commanded(START + t, epoch, "BSP", "ASP", 0.5)


def test_swap_latency_is_that_of_the_last_worker() -> None:
    # Worker 0 adopts epoch 2 at 0.2 s, worker 1, whose iterations take twice as long, at 0.4 s.
    seen = rows(0, [1, 1, 2, 2, 2]) + rows(1, [1, 1, 2], 0.2)
    (swap,) = latencies([command(0.15, 2)], seen).to_numpy().tolist()
    assert swap == [0.15, 2, "BSP", "ASP", 0.5, pytest.approx(250.0), 2]


@pytest.mark.parametrize(
    ("commanded", "seen", "expected"),
    [
        ([(0.12, 2), (0.14, 3)], rows(0, [1, 1, 3, 3]), [(80.0, 1), (60.0, 1)]),  # until any newer epoch
        ([(0.2, 2)], rows(0, [1, 1, 2]), [(0.0, 0)]),  # between two iterations
        ([(0.35, 2)], rows(0, [1, 1, 1, 1, 2]) + rows(1, [1, 1, 1]), []),  # not seen by every worker
    ],
)
def test_swap_latency_is_counted_in_time_and_iterations(
    commanded: list[tuple[float, int]], seen: list[dict[str, object]], expected: list[tuple[float, int]]
) -> None:
    found = latencies([command(t, epoch) for t, epoch in commanded], seen)
    assert [(round(swap.latency_ms, 6), swap.iterations) for swap in found.itertuples()] == expected


@pytest.mark.parametrize("seed", range(20))
def test_swap_walk_contains_every_ordered_pair_of_families(seed: int) -> None:
    """The walk begins with the run's own strategy; the next twenty swaps contain every pair again."""
    every = set(itertools.permutations(FAMILIES, 2))
    swaps = walk(random.Random(seed))
    assert len(swaps) == len(every)
    assert set(itertools.pairwise((FIRST, *swaps))) == every
    assert walk(random.Random(seed)) == swaps
    drawn = [
        type(strategy).__name__.lower() for strategy in itertools.islice(alternating(swaps, seed, 4), 2 * len(swaps))
    ]
    assert drawn == [*swaps, *swaps]


class Refusing(ControllerClient):
    def set_strategy(self, job: int, strategy: Strategy) -> SwapStatus:
        raise Rejected("not now", 409)


def test_swapper_raises_on_a_refused_swap() -> None:
    swapper = Swapper(3, 0.0, 1, 2)
    worker = WorkerStatus.model_construct(iteration=FIRST_AT_STEP)
    job = JobStatus.model_construct(job=0, state=JobState.RUNNING, strategy=BSP(), workers=[worker])
    with Refusing("http://127.0.0.1:1") as controller:
        swapper.look(job, controller)
    assert swapper.commanded == []
    with pytest.raises(SereneError, match=r"not done, or without an answer: BSP to .*: not now"):
        swapper.report_lines()
