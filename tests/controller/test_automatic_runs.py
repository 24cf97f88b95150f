"""An automatic strategy in a job that runs already: real workers, their reports, controller and P4 program, in virtual
time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from serene.client import Session
from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import EpochBegun
from serene.experiments.correctness.virtual.ledger import Contribution
from serene.experiments.correctness.virtual.plan import Plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.correctness.virtual.worker import Incarnation, Place
from serene.program import Program
from serene.strategy import BSP

WORKERS, SLOTS = 4, 2
ON_S = 2.0  # when the strategy is switched on


@pytest.fixture(scope="module")
def switch() -> Iterator[P4Switch]:
    loaded = P4Switch(Program.load())
    yield loaded
    loaded.close()


class Gradient(Contribution):
    """Gradients agree a little, as in training: two workers' have a cosine of about 0.01."""

    def values(self, seed: int, slots: int, lanes: int) -> np.ndarray:
        common = Contribution(99, 1, 1).values(seed, slots, lanes) // 9
        sum_: np.ndarray = super().values(seed, slots, lanes) + common
        return sum_


class Reporting(Incarnation):
    """Reports to the controller, as every training's `Session` does."""

    contribution_type = Gradient

    def exchange(self, gradient: np.ndarray) -> np.ndarray:
        if not hasattr(self, "_reporter"):
            self._reporter = Session(self.client)
        update = self._reporter.exchange(gradient)
        assert update is not None, "no session is lost"
        return update.delta


class ReportingPlace(Place):
    incarnation_type = Reporting


class Training(Schedule):
    def place(self, worker: int) -> Place:
        return ReportingPlace(self, worker)


def swaps_of_pacing(switch: P4Switch, seed: int) -> list[EpochBegun]:
    """Returns the epochs that it began. Compute times vary much (an exponential distribution)."""
    training = Training(switch, Plan(seed, SLOTS, (80,) * WORKERS, (0.1,) * WORKERS), itertools.repeat(BSP()))

    async def switch_on(coordinator: Coordinator) -> None:
        await coordinator.set_automatic(0, "pacing", {})

    training.time.at(ON_S, lambda: training.controller.command(switch_on))
    training.run()
    job = training.controller.known(0)
    assert job is not None
    return [begun for begun in job.history if begun.reason.startswith("pacing: ")]


def test_pacing_switched_on_in_a_running_job_swaps_once_at_first(switch: P4Switch) -> None:
    """By the first reports, only some workers' times are known, and the agreement is noise. A strategy that did not
    observe first swapped twice within 0.2 s with each of these seeds."""
    for seed in (0, 5):
        first, *later = swaps_of_pacing(switch, seed)
        assert first.clock > ON_S + 8 * 0.1, "after eight iterations"
        assert [begun.reason for begun in later if begun.clock < first.clock + 1.0] == []
