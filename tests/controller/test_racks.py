"""Jobs over several racks: one controller, embedded leaves and a root, and workers' own code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from controller.http.client import ControllerClient
from serene.client import Client, Refused, Session
from serene.racks import Racks
from serene.strategy import BSP
from tests.controller.processes import ControllerProcess
from tests.controller.trees import Tree, controller

SIZES = (2, 2, 1)
VALUES = 700
STEPS = 20


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    made = Tree(tmp_path_factory.mktemp("tree"), SIZES)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def daemon(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    process = controller(tree, tmp_path_factory.mktemp("controller") / "controller.log")
    yield process
    assert process.stop() == 0
    assert "Traceback" not in process.log.read_text()


@pytest.fixture
def client(daemon: ControllerProcess) -> Iterator[ControllerClient]:
    yield daemon.client
    for job in daemon.client.jobs():
        daemon.client.delete_job(job.job)


def adding_to(total: np.ndarray) -> Callable[[np.ndarray], None]:
    def apply(delta: np.ndarray) -> None:
        np.add(total, delta, out=total)

    return apply


def train(worker: Client, number: int, steps: int = STEPS) -> np.ndarray:
    """All that it has read at the end, float32[VALUES]. Contributes number + 1 in each step."""
    total = np.zeros(VALUES, np.float32)
    with Session(worker, adding_to(total)) as session:
        session.join()
        for _ in range(steps):
            session.exchange(np.full(VALUES, number + 1, np.float32))
        assert session.finish(60.0)
    return total


def test_racks_train_and_every_contribution_counts_once(tree: Tree, client: ControllerClient) -> None:
    racks, workers = Racks(SIZES), sum(SIZES)
    job = client.create_job(workers, BSP(), racks=SIZES)
    assert job.racks == list(SIZES)
    with ThreadPoolExecutor(workers) as pool:
        members = [tree.client(*racks.place(number), VALUES) for number in range(workers)]
        totals = list(pool.map(train, members, range(workers)))
    for total in totals:
        assert (total == STEPS * sum(range(1, workers + 1))).all()
    done = client.job(0)
    assert done.state == "finished"
    assert [(worker.rack, worker.place) for worker in done.workers] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert [worker.contributions for worker in done.workers] == [STEPS * done.slots] * workers
    assert [worker.contributions_sent for worker in done.workers] == [STEPS * done.slots] * workers


def test_a_worker_is_where_its_hello_comes_from(tree: Tree, client: ControllerClient) -> None:
    client.create_job(3, BSP(), racks=[2, 1])
    with (
        tree.client(0, 0, VALUES, says=2) as liar,
        pytest.raises(Refused, match="worker 0 says that it is in rack 2, and its HELLO came in at rack 0"),
    ):
        liar.join(10.0)
    with (
        tree.client(1, 1, VALUES) as too_many,
        pytest.raises(Refused, match="job 0 has no worker 1 in rack 1: expected 0 to 0"),
    ):
        too_many.join(10.0)
    with (
        tree.client(2, 0, VALUES) as elsewhere,
        pytest.raises(Refused, match="job 0 has no workers in rack 2: it has 2, 1 by rack"),
    ):
        elsewhere.join(10.0)
