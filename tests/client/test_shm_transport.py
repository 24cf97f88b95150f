"""Workers at shared-memory ports of a running switch, in C and in Python: sums compared with the oracle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from serene.client import Client, Pool, ShmTransport
from serene.client.allreduce.fastpool import FastPool
from serene.client.allreduce.plainpool import PlainPool
from serene.client.compiled.fastpath import library
from serene.experiments.performance.one_machine import SLOTS, OneMachine
from serene.program import Program
from serene.sim.hosts import Host
from tests.support.numbers import expected, given_limit, random_values, right, same

pytestmark = pytest.mark.skipif(library() is None, reason="shared memory needs a C compiler")

WORKERS = 3
PATIENCE_S = 30


def transport(machine: OneMachine, worker: int) -> ShmTransport:
    return ShmTransport(worker, machine.ports[worker].removeprefix("shm:"))


def together(bodies: list[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(bodies)) as threads:
        for done in [threads.submit(body) for body in bodies]:
            done.result()


@pytest.mark.parametrize(("lengths", "plain"), [((0, 1, 20_000), 2), ((1_000_003,), None)], ids=["short", "long"])
@pytest.mark.parametrize("program", [*map(Program.load, ("serene", "serene_jumbo"))], ids=lambda program: program.name)
def test_shm_pools_in_c_and_python_match_the_oracle(
    program: Program, tmp_path: Path, lengths: tuple[int, ...], plain: int | None
) -> None:
    """The long vectors are many times larger than a ring. plain: the worker without the compiled client."""
    rng = np.random.default_rng(lengths)
    given = [[random_values(rng, length, program.lanes) for _ in range(WORKERS)] for length in lengths]
    results = [[values.copy() for values in of] for of in given]
    with OneMachine(program, WORKERS, "shm", tmp_path) as machine:

        def work(worker: int) -> None:
            way = transport(machine, worker)
            with Pool(way, 0, worker, slots=SLOTS, lanes=program.lanes, incarnation=1) as pool:
                pool.join()
                if worker == plain:
                    pool._engine = PlainPool(pool._client)
                assert isinstance(pool._engine, PlainPool if worker == plain else FastPool)
                for of in results:
                    pool.all_reduce(of[worker])

        together([lambda worker=worker: work(worker) for worker in range(WORKERS)])  # type: ignore[misc]
    for vectors, of in zip(given, results, strict=True):
        wanted = expected(vectors, program.lanes)
        assert all(same(result, wanted) for result in of)


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


@pytest.mark.parametrize("unit", [None, -12], ids=["voted scales", "a given scale"])
@pytest.mark.parametrize("bits", [32, 8])
def test_packets_lost_with_a_ring_are_sent_again_as_they_were(tmp_path: Path, bits: int, unit: int | None) -> None:
    """The switch takes a worker's port away with the packets in its ring, and opens it again, in the middle of
    collectives."""
    program = Program.load("serene")
    rng = np.random.default_rng(bits)
    if bits == 32 and unit is None:
        given = [random_values(rng, 300_000, program.lanes) for _ in range(2)]
    else:
        given = [rng.normal(0, 0.1, 300_000).astype(np.float32) for _ in range(2)]
    limit = np.inf if unit is None else given_limit(2, bits, unit)
    clipped = [int((np.abs(one) > limit).sum()) for one in given]
    pools: dict[int, Pool] = {}
    enough = threading.Event()

    with OneMachine(program, 2, "shm", tmp_path) as machine:

        def work(worker: int) -> None:
            way = transport(machine, worker)
            with Pool(way, 0, worker, slots=SLOTS, lanes=program.lanes, incarnation=1) as pool:
                pool.join()
                pools[worker] = pool
                for _ in range(10_000):
                    over = np.array([enough.is_set()], np.float32)
                    pool.all_reduce(over, timeout_s=PATIENCE_S)  # whether some worker has had enough
                    values = given[worker].copy()
                    pool.all_reduce(values, timeout_s=PATIENCE_S, bits=bits, unit=unit)
                    assert right(values, given, program.lanes, bits, unit)
                    if over[0]:
                        break
                if unit is not None:
                    assert pool.clipped_values == pool.collectives // 2 * clipped[worker]

        def lose() -> None:
            while len(pools) < 2:
                assert not done[0].done() and not done[1].done()
            switch, host = machine._switch.switch, Host.of(0)
            try:
                while not any(one.done() for one in done) and pools[0].counts.retransmissions < 100:
                    before = switch.port_counts(host.port).received
                    while switch.port_counts(host.port).received < before + 200 and not any(one.done() for one in done):
                        pass
                    switch._lib.switch_port_remove(switch._state, host.port)
                    switch.add_shm(host.port, machine.ports[0].removeprefix("shm:"))
            finally:
                enough.set()

        with ThreadPoolExecutor(2) as threads:
            done = [threads.submit(work, worker) for worker in range(2)]
            lose()
            for one in done:
                one.result()
