"""Shared training: whatever the strategy and the faults, replicas end with the same bits, which are the start plus what
the workers have sent."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

from serene.controller.automatic.observer import Observer
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from tests.controller.processes import SwitchProcess, until
from tests.torch import sharing
from tests.torch.local import outputs
from tests.torch.sharers import Plant, check

WORKERS = 3
pytestmark = pytest.mark.timeout(600)


def loss(parameters: np.ndarray) -> float:
    """The model's loss with these parameters, of 10,000 points."""
    model = sharing.network(sharing.Settings(""))
    nn.utils.vector_to_parameters(torch.from_numpy(parameters), model.parameters())
    points = torch.randn(10_000, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return nn.functional.cross_entropy(model(points), points[:, :4].argmax(dim=1)).item()


@pytest.mark.parametrize(
    ("strategy", "settings", "swaps"),
    [
        ("bsp", {"every": 2, "steps": 61}, [SSP(2), Quorum(2), BSP()]),
        ("ssp:3", {"optimizer": "adamw", "overlap": True}, [ASP(), BSP()]),
        # Under ASP, momentum in both optimisers may diverge: late updates add to momentum.
        ("asp", {"pauses": 0.2, "every": 2, "outer": 0.5, "optimizer": "adamw"}, [Quorum(2), SSP(1), ASP()]),
        ("quorum:2", {"pauses": 0.2, "every": 4, "overlap": True, "optimizer": "adamw"}, [BSP(), Quorum(2)]),
    ],
    ids=str,
)
def test_final_replicas_equal_the_sum_of_contributions(
    plant: Plant, strategy: str, settings: dict[str, object], swaps: list[Strategy]
) -> None:
    given = {"steps": 60, **settings, "waits_at": 50}  # so that none ends before the last swap
    workers = [plant.start(number, strategy=strategy, **given) for number in range(WORKERS)]
    for count, swap in enumerate(swaps, 1):
        plant.reached(0, 60 * count // (len(swaps) + 1))
        plant.controller.client.set_strategy(0, swap)
    plant.go()
    assert all("all have left" in text for text in outputs(workers))
    results = [plant.saved(number) for number in range(WORKERS)]
    check(results)
    # Not the workers' own losses: a batch of theirs has parameters that depend on who was late.
    assert loss(results[0].parameters) < 0.8 * loss(results[0].start), "it learns nothing"


def test_shared_sgd_steps_by_the_mean_gradient(plant: Plant) -> None:
    """Like DistributedDataParallel, within the rounding of a unit."""
    steps = 30
    outputs([plant.start(number, optimizer="plain", steps=steps) for number in range(WORKERS)])
    model = sharing.network(sharing.Settings(""))
    optimizer = sharing.optimizer_of(model, "plain")
    draws = [sharing.batches(number) for number in range(WORKERS)]
    for _ in range(steps):
        optimizer.zero_grad()
        for points, labels in map(sharing.batch, draws):
            loss = nn.functional.cross_entropy(model(points), labels) / WORKERS
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    expected = nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    np.testing.assert_allclose(plant.saved(0).parameters, expected, rtol=0, atol=1e-5)


def test_controller_sees_worker_state_and_step_times(plant: Plant) -> None:
    """A report has its state, and how long a step computes: automatic strategies need both."""
    workers = [plant.start(0), plant.start(1), plant.start(2, waits_at=20)]

    def report_of(number: int) -> dict[str, object]:
        jobs = plant.controller.client.jobs()
        return dict(jobs[0].workers[number].report or {}) if jobs and jobs[0].workers else {}

    plant.reached(0, 20)
    places = range(WORKERS)
    until(lambda: sum(report_of(place).get("state") == "waiting" for place in places) == WORKERS - 1, "the others wait")
    waits = next(place for place in places if report_of(place)["state"] == "waiting")
    observer = Observer()
    observer.note(0, report_of(waits))
    plant.go()
    outputs(workers)
    observer.note(0, report_of(waits))
    seen = observer.view(0, rounds=2, is_member=True, silent_s=0.0)
    assert None not in (seen.iteration_s, seen.compute_s, seen.slowest_s, seen.waiting_share)
    assert report_of(waits)["state"] == "finished"


def test_replicas_stay_equal_after_a_switch_restart(plant: Plant, switch: SwitchProcess) -> None:
    """A contribution may be lost or repeated, but for all replicas alike; the strategy stays."""
    workers = [plant.start(number, steps=60, strategy="ssp:3", waits_at=40) for number in range(WORKERS)]
    plant.reached(0, 10)
    switch.restart()
    until(lambda: plant.controller.client.job(0).lost_sessions == 1, "the job has lost a session")
    until(lambda: not plant.controller.client.job(0).restoring, "its sums are restored")
    assert plant.controller.client.job(0).strategy == SSP(3)
    plant.go()
    outputs(workers)
    first, *others = (plant.saved(number) for number in range(WORKERS))
    for other in others:
        np.testing.assert_array_equal(other.read, first.read)
        np.testing.assert_array_equal(other.parameters, first.parameters)


def test_losing_switch_and_controller_at_once_ends_the_training(plant: Plant, switch: SwitchProcess) -> None:
    """No process knows the job any more, and every worker reports that."""
    workers = [plant.start(number, steps=0) for number in range(WORKERS)]
    plant.reached(0, 9)
    plant.controller.kill()
    switch.restart()
    plant.start_controller()
    for text in outputs(workers, expect=1):
        assert "Refused" in text and "there is no job 0" in text, text


def test_worker_that_fails_between_two_steps_reports_the_reason(plant: Plant, switch: SwitchProcess) -> None:
    """The switch restarts while it computes. Its job is deleted while it waits for the other worker's sum."""
    present = plant.folder / "present"
    present.touch()
    worker = plant.start(0, workers=2, waits_at=5)
    plant.start(1, workers=2, waits_at=5, catches_up_if_present=str(present))
    plant.saved(0), plant.saved(1)
    present.unlink()
    switch.restart()
    client = plant.controller.client
    until(lambda: [each.report for each in client.job(0).workers if (each.report or {}).get("state") == "waiting"],
          "it waits for the other worker")  # fmt: skip
    client.delete_job(0)
    plant.go()
    (text,) = outputs([worker], expect=1)
    assert "job 0 was deleted" in text.splitlines()[-1], text


# -- what is refused -----------------------------------------------------------------------------------------


def test_all_processes_report_mismatched_settings(plant: Plant) -> None:
    workers = [plant.start(0), plant.start(1, every=2), plant.start(2, seed=1)]
    for text in outputs(workers, expect=1):
        assert re.search(
            r"the processes of job 'training' differ: every is \d in \d process.*; "
            r"digest of their first values \(made the same by one torch.manual_seed, .*\) is \w+ in \d process", text
        ), text  # fmt: skip
    assert not plant.controller.client.jobs()
    outputs([plant.start(number) for number in range(WORKERS)])  # the name is free again


def test_processes_beyond_the_number_of_workers_wait_and_fail(plant: Plant) -> None:
    workers = [plant.start(number, waits_at=20) for number in range(WORKERS)]
    plant.reached(0, 20)
    (text,) = outputs([plant.start(3)], expect=1)
    taken = "all 3 places of job 'training' are taken"
    assert f"waits for a place, up to 120 s: {taken}: waits until a place is free\n" in text  # while it waits
    assert f"{taken} by living workers" in text
    (text,) = outputs([plant.start(3, seed=1)], expect=1)
    assert "job 'training' runs already: digest of their first values (made the same by" in text
    plant.go()
    outputs(workers)
    check([plant.saved(number) for number in range(WORKERS)])
