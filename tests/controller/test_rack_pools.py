"""A pool over racks on real switches: sums of all racks, and a change of precision."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np

from serene.client import Pool
from serene.controller.http.client import ControllerClient
from serene.racks import Racks
from serene.strategy import BSP
from tests.controller.processes import PATIENCE_S, until
from tests.controller.trees import Tree

SIZES = (2, 1, 1)
JOB = (2, 0, 1)  # a rack of which nobody takes part
WORKERS = sum(JOB)
SLOTS, VALUES = 16, 20_000


def joined(fabric: Tree, racks_client: ControllerClient, stack: ExitStack) -> list[Pool]:
    """The pools of a process group's job."""
    job = racks_client.create_job(WORKERS, BSP(), pool_slots=SLOTS, racks=JOB)
    lanes = racks_client.status().switch.lanes
    places = [Racks(JOB).place(worker) for worker in range(WORKERS)]
    made = [
        stack.enter_context(Pool(fabric.transport(*at), job.job, at[1], slots=SLOTS, lanes=lanes, rack=at[0]))
        for at in places
    ]
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


def test_pool_sums_cover_all_racks(fabric: Tree, racks_client: ControllerClient) -> None:
    """Also with another precision, which swaps the whole tree's policy, and with a rack in which no worker takes
    part."""
    with ExitStack() as stack:
        made = joined(fabric, racks_client, stack)
        for _ in range(3):
            assert all((values == EXPECTED).all() for values in summed(made))
        racks_client.set_precision(0, 8)
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
    until(lambda: racks_client.job(0).state == "finished", "the job is over")
