"""Shared training whose workers come and go: a newcomer begins with the others' parameters, a dead worker delays them
only briefly, and all end with the same bits, which are the start plus what was sent."""

from __future__ import annotations

import re

import pytest

from serene.http import CONTROLLER
from serene.torch import DistributedOptimizer
from serene.torch.membership import Wanted, find_place
from serene.torch.opening import Controller, JobAccess
from tests.controller.processes import states, until
from tests.torch.local import PATIENCE_S, outputs
from tests.torch.sharers import Plant, check
from tests.torch.sharing import Settings, network, optimizer_of

pytestmark = pytest.mark.timeout(600)
ELASTIC = {"workers": 2, "places": 3, "minimum": 1, "evict_after": 1.5}


def test_elastic_training_survives_join_death_and_replacement(plant: Plant) -> None:
    """The controller restarts in between: it still knows after how long a worker is evicted. test_chaos.py has other
    strategies."""
    settings = {**ELASTIC, "strategy": "bsp", "optimizer": "adamw"}
    stays = plant.start(0, steps=0, **settings)
    dies = plant.start(1, steps=0, waits_at=10, **settings)
    dead = plant.saved(1)
    joins = plant.start(2, steps=0, **settings)
    until(lambda: states(plant.controller.client) == ["running"] * 3, "it has joined", PATIENCE_S)
    dies.kill()
    dies.wait()
    plant.controller.kill()
    plant.start_controller()
    until(lambda: "evicted" in states(plant.controller.client), "who is dead is evicted")
    for number in (0, 2):
        plant.reached(number, len(plant.losses(number)) + 10)
    assert plant.losses(2)[0] < plant.losses(0)[0], "it begins anew"
    comes = plant.start(3, steps=0, **settings)
    plant.reached(3, 10)
    (plant.folder / "end").touch()
    texts = outputs([stays, joins, comes])
    check([plant.saved(number) for number in (0, 2, 3)], dead.sent)
    assert re.search(r"members \[2, (3, 2, )?3", texts[0]), texts


def test_controller_restart_before_the_job_begins_is_survived(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits for others asks the next controller, and so does one that already had a place."""
    first = plant.start(0, **ELASTIC)
    assert first.stdout is not None
    assert any("1 of 2 processes of job 'training' are here" in line for line in first.stdout)  # it prints so after 3 s
    plant.controller.kill()
    plant.start_controller()

    monkeypatch.setenv(CONTROLLER, plant.controller.url)
    own = optimizer_of(network(Settings(out="")), "sgd")
    ghost = DistributedOptimizer(own, job="training", **ELASTIC)  # type: ignore[arg-type]
    elastic = {name: value for name, value in ELASTIC.items() if name != "workers"}
    wanted = Wanted("training", 2, ghost._settings(), {"name": "bsp"}, 1, 1, elastic)
    find_place(Controller(), wanted, "ghost", None, PATIENCE_S)  # both have places, and this one never joins
    plant.controller.kill()
    plant.start_controller()
    outputs([first, plant.start(1, **ELASTIC)])
    assert [job.name for job in plant.controller.client.jobs()] == ["training"]
    check([plant.saved(number) for number in (0, 1)])


def test_controller_restart_between_place_and_join_is_survived(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Controller.access

    def restarted(controller: Controller, job: int, values: int) -> JobAccess:
        monkeypatch.setattr(Controller, "access", access)
        plant.controller.kill()
        try:
            return access(controller, job, values)
        finally:
            plant.start_controller()

    monkeypatch.setattr(Controller, "access", restarted)
    monkeypatch.setenv(CONTROLLER, plant.controller.url)
    model = network(Settings(out=""))
    for parameter in model.parameters():
        parameter.grad = parameter.detach().clone()
    with DistributedOptimizer(optimizer_of(model, "sgd"), job="training", workers=1) as optimizer:
        optimizer.step()
        assert optimizer.workers == 1
