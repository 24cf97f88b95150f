"""Pools over racks, real switches: sums of all racks, another precision in mid-run, and what breaks a pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from serene.client import FrameTransport, Pool, PoolBroken, Refused
from serene.controller.http.client import ControllerClient
from serene.racks import Racks
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from tests.controller.processes import PATIENCE_S, ControllerProcess, until
from tests.controller.trees import Tree, controller

SIZES = (2, 0, 1)
WORKERS = sum(SIZES)
SLOTS, VALUES = 16, 20_000


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    made = Tree(tmp_path_factory.mktemp("tree"), (2, 1, 1))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def daemon(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    process = controller(tree, tmp_path_factory.mktemp("controller") / "controller.log")
    yield process
    assert process.stop() == 0


@pytest.fixture
def client(daemon: ControllerProcess) -> Iterator[ControllerClient]:
    yield daemon.client
    for job in daemon.client.jobs():
        daemon.client.delete_job(job.job)


def transport(tree: Tree, rack: int, place: int) -> FrameTransport:
    leaf = tree.leaves[rack]
    here, there = leaf.peers[place + 1], leaf.ports[place + 1]
    number = 3 * rack + place
    return FrameTransport(number, local=("127.0.0.1", here), switch=("127.0.0.1", there), udp_port=42000 + number)


def pools(tree: Tree, client: ControllerClient, stack: ExitStack) -> list[Pool]:
    """All have joined."""
    job = client.create_job(WORKERS, BSP(), pool_slots=SLOTS, racks=SIZES)
    lanes = client.status().switch.lanes
    made = []
    for worker in range(WORKERS):
        rack, place = Racks(SIZES).place(worker)
        way = transport(tree, rack, place)
        made.append(stack.enter_context(Pool(way, job.job, place, slots=SLOTS, lanes=lanes, rack=rack)))
    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(lambda pool: pool.join(PATIENCE_S), made))
    return made


def summed(made: Sequence[Pool], bits: int = 32) -> list[np.ndarray]:
    """Worker w gives w + 1 times 0, 1, 2, ..., whose sums are exact in 32 bits."""

    def work(worker: int) -> np.ndarray:
        values = np.arange(VALUES, dtype=np.float32) % 1000 * (worker + 1)
        made[worker].all_reduce(values, bits=bits, timeout_s=60.0)
        return values

    with ThreadPoolExecutor(WORKERS) as threads:
        return list(threads.map(work, range(WORKERS)))


EXPECTED = np.arange(VALUES, dtype=np.float32) % 1000 * sum(range(1, WORKERS + 1))


def test_sums_are_those_of_all_racks(tree: Tree, client: ControllerClient) -> None:
    """Also with another precision, which swaps the whole tree's policy, and with a rack of which nobody takes part."""
    with ExitStack() as stack:
        made = pools(tree, client, stack)
        for _ in range(3):
            assert all((values == EXPECTED).all() for values in summed(made))
        client.set_precision(0, 8)
        for _ in range(20):
            narrow = summed(made, made[0].precision)
            if made[0].precision == 8:
                break
        assert [pool.precision for pool in made] == [8] * WORKERS
        narrow = summed(made, 8)
        assert all((values == narrow[0]).all() for values in narrow) and not (narrow[0] == EXPECTED).all()
        np.testing.assert_allclose(narrow[0], EXPECTED, atol=EXPECTED.max() / 4)
        for pool in made:
            pool.leave()
    until(lambda: client.job(0).state == "finished", "the job is over")


def test_a_worker_that_leaves_breaks_the_pool_of_the_other_racks(tree: Tree, client: ControllerClient) -> None:
    with ExitStack() as stack:
        made = pools(tree, client, stack)
        summed(made)
        made[-1].leave()
        with pytest.raises(PoolBroken, match="has 2 members now, not 3"):
            made[0].all_reduce(np.ones(VALUES, np.float32), timeout_s=PATIENCE_S)


def test_a_worker_in_another_rack_than_it_says_is_refused(tree: Tree, client: ControllerClient) -> None:
    job = client.create_job(WORKERS, BSP(), pool_slots=SLOTS, racks=SIZES)
    lanes = client.status().switch.lanes
    with (
        Pool(transport(tree, 0, 0), job.job, 0, slots=SLOTS, lanes=lanes, rack=2) as stray,
        pytest.raises(Refused, match="says that it is in rack 2, but its HELLO came from rack 0"),
    ):
        stray.join(120.0)


@pytest.mark.parametrize("strategy", [ASP(), SSP(1), Quorum(2), Mixed((2,))], ids=str)
def test_a_job_under_another_strategy_is_no_pool(tree: Tree, client: ControllerClient, strategy: Strategy) -> None:
    """Also where a worker's own rack looks as it does under BSP: in the mixed one all of rack 0 is counted."""
    lanes = client.status().switch.lanes
    job = client.create_job(WORKERS, strategy, racks=SIZES)
    with ExitStack() as stack:
        made = []
        for worker in range(WORKERS):
            rack, place = Racks(SIZES).place(worker)
            way = transport(tree, rack, place)
            made.append(stack.enter_context(Pool(way, job.job, place, slots=SLOTS, lanes=lanes, rack=rack)))

        def contribute(pool: Pool) -> None:
            pool.join(PATIENCE_S)
            with pytest.raises(PoolBroken, match=r"does not wait for this worker|is not under BSP"):
                pool.all_reduce(np.ones(VALUES, np.float32), timeout_s=PATIENCE_S)

        with ThreadPoolExecutor(WORKERS) as threads:
            list(threads.map(contribute, made))
