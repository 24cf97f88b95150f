"""A switch dies during a run and restarts without state: the workers restore the job."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from serene.strategy import ASP, BSP, Mixed, Strategy
from serene.workers import reference
from serene.workers.training import Recipe
from tests.controller.processes import ControllerProcess, SwitchProcess, until
from tests.workers.running import Workers, done

STEPS = 30


@pytest.fixture
def workers(switch: SwitchProcess, tmp_path: Path) -> Iterator[Workers]:
    controller = ControllerProcess(switch, tmp_path / "controller.log")
    started = Workers(switch, controller.client, tmp_path / "out")
    yield started
    started.stop()
    controller.stop()


def restored(workers: Workers, times: int = 1) -> None:
    def over() -> bool:
        job = workers.client.job(0)
        return job.lost_sessions == times and job.state == "running" and not job.restoring

    until(over, "the job is restored")


def went_on(workers: Workers, past: int) -> bool:
    """Whether worker 0 has done more steps than that."""
    return (workers.out / "worker-0.csv").exists() and len(workers.steps(0)) > past


def test_bsp_run_with_two_switch_restarts_keeps_its_bits(workers: Workers, switch: SwitchProcess) -> None:
    workers.create(2, BSP())
    processes = [workers.start(worker, 2, "--steps", STEPS, "--compute-ms", 100) for worker in range(2)]
    for restarts in (1, 2):
        before = len(workers.steps(0)) if restarts > 1 else 0
        until(partial(went_on, workers, before + 4), "steps")
        switch.restart()
        restored(workers, restarts)
    for process in processes:
        done(process)

    expected = reference.train(Recipe(workers=2, steps=STEPS, seed=1))
    for worker in range(2):
        results = workers.results(worker)
        assert results["sessions_lost"] == 2
        assert (results["contributions_lost"], results["iterations_repeated"]) == (0, 0)
        assert workers.parameters(worker).tobytes() == expected.tobytes()
        # Of the last session: what was sent, the two rounds that put the sums back among it, is what was applied.
        assert results["contributions_sent"] == workers.client.job(0).workers[worker].contributions
    job = workers.client.job(0)
    assert job.lost_sessions == 2
    sessions = [change.session for change in job.history]
    assert sessions == sorted(sessions) and len(set(sessions)) == 3


@pytest.mark.parametrize("strategy", [ASP(), Mixed((1,))], ids=str)
def test_restored_job_keeps_strategy_after_switch_restart(
    workers: Workers, switch: SwitchProcess, strategy: Strategy
) -> None:
    workers.create(3, strategy)
    pace = {0: 30, 1: 90, 2: 45}
    processes = [workers.start(worker, 3, "--steps", STEPS, "--compute-ms", pace[worker]) for worker in range(3)]
    workers.reached(1, 5)
    switch.restart()
    restored(workers)
    assert workers.client.job(0).strategy == strategy
    for process in processes:
        done(process)
    replicas = [workers.parameters(worker) for worker in range(3)]
    for replica in replicas[1:]:  # the same sums, added up in other orders
        np.testing.assert_allclose(replica, replicas[0], rtol=0, atol=1e-5)
    for worker in range(3):
        results = workers.results(worker)
        assert (results["sessions_lost"], results["steps"]) == (1, STEPS)
        assert results["contributions_lost"] <= 3 * STEPS
        assert results["final_accuracy"] > results["initial_accuracy"] + 0.3
