"""Workers at shared-memory ports of a running switch, in C and in Python: sums compared with the oracle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from serene.client import Client, Pool, PoolBroken, ShmTransport
from serene.client.allreduce.fastpool import FastPool
from serene.client.allreduce.plainpool import PlainPool
from serene.client.compiled.fastpath import library
from serene.experiments.performance.one_machine import SLOTS, OneMachine
from serene.program import Program
from tests.support.numbers import expected, random_values, same

pytestmark = pytest.mark.skipif(library() is None, reason="shared memory needs a C compiler")

WORKERS = 3


@pytest.fixture(params=["serene", "serene_jumbo"])
def program(request: pytest.FixtureRequest) -> Program:
    return Program.load(request.param)


def transport(machine: OneMachine, worker: int) -> ShmTransport:
    return ShmTransport(worker, machine.ports[worker].removeprefix("shm:"))


def together(bodies: list[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(bodies)) as threads:
        for done in [threads.submit(body) for body in bodies]:
            done.result()


@pytest.mark.parametrize("length", [0, 1, 20_000, 1_000_003])
def test_shm_pools_in_c_and_python_match_the_oracle(program: Program, tmp_path: Path, length: int) -> None:
    """The vectors are many times larger than a ring."""
    rng = np.random.default_rng(length)
    given = [random_values(rng, length, program.lanes) for _ in range(WORKERS)]
    results = [values.copy() for values in given]
    with OneMachine(program, WORKERS, "shm", tmp_path) as machine:

        def work(worker: int, plain: bool) -> None:
            way = transport(machine, worker)
            with Pool(way, 0, worker, slots=SLOTS, lanes=program.lanes, incarnation=1) as pool:
                pool.join()
                if plain:
                    pool._engine = PlainPool(pool._client)
                assert isinstance(pool._engine, PlainPool if plain else FastPool)
                pool.all_reduce(results[worker])

        together([lambda worker=worker: work(worker, worker == 2 and length < 10**6) for worker in range(WORKERS)])  # type: ignore[misc]
    wanted = expected(given, program.lanes)
    assert all(same(result, wanted) for result in results)


@pytest.mark.parametrize("plain", [False, True])
def test_shm_client_exchanges_in_c_and_python(tmp_path: Path, plain: bool) -> None:
    program = Program.load("serene")
    count = SLOTS * program.lanes
    deltas: dict[int, np.ndarray] = {}
    with OneMachine(program, WORKERS, "shm", tmp_path) as machine:

        def work(worker: int) -> None:
            with Client(transport(machine, worker), 0, worker, count, incarnation=1) as client:
                client.join()
                if plain:
                    client._fast = None
                for _ in range(3):
                    deltas[worker] = client.exchange(np.full(count, worker + 1, np.float32)).delta

        together([lambda worker=worker: work(worker) for worker in range(WORKERS)])  # type: ignore[misc]
    assert all((delta == 6).all() for delta in deltas.values())


def test_switch_restart_breaks_pool_and_names_new_session(tmp_path: Path) -> None:
    """The new session ends the pool; a new pool works at the same ports."""
    program = Program.load("serene")
    stopped, again = threading.Barrier(3), threading.Barrier(3)
    machine = OneMachine(program, 2, "shm", tmp_path)

    def work(worker: int) -> None:
        way = transport(machine, worker)
        with Pool(way, 0, worker, slots=SLOTS, lanes=program.lanes, incarnation=1, silence_s=0.1) as pool:
            pool.join()
            values = np.ones(1000, np.float32)
            pool.all_reduce(values)
            assert (values == 2).all()
            stopped.wait(60)
            again.wait(60)
            with pytest.raises(PoolBroken, match="now in session 2"):
                pool.all_reduce(values, timeout_s=60)

    with ThreadPoolExecutor(2) as threads:
        with machine:
            done = [threads.submit(work, worker) for worker in range(2)]
            stopped.wait(60)
        with OneMachine(program, 2, "shm", tmp_path, session=2):
            again.wait(60)
            for one in done:
                one.result()
