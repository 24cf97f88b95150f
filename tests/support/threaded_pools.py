"""Pools whose workers are threads, over real sockets to the P4 program."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from serene.client import Pool
from serene.client.allreduce.fastpool import FastPool
from serene.client.allreduce.plainpool import PlainPool
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.faults import Faults
from tests.support.pools import FINE
from tests.support.udp_switch import UdpSwitch


class Run:
    """A job whose workers are threads. plain: the workers that do everything in Python, without the compiled client."""

    def __init__(
        self, switch: P4Switch, workers: int, slots: int, faults: Faults = FINE, plain: tuple[int, ...] = ()
    ) -> None:
        self.network = UdpSwitch(switch, workers, slots, faults)
        self.pools = [
            Pool(self.network.transport(worker), 0, worker, slots=slots, lanes=switch.lanes, incarnation=1)
            for worker in range(workers)
        ]
        self._plain = plain

    def play(self, body: Callable[[int, Pool], None]) -> list[BaseException | None]:
        """Runs ``body`` in every worker, and returns what each raised."""

        def live(worker: int) -> None:
            with self.pools[worker] as pool:
                pool.join()
                if worker in self._plain:
                    pool._engine = PlainPool(pool._client)
                assert isinstance(pool._engine, PlainPool if worker in self._plain else FastPool)
                body(worker, pool)

        with self.network, ThreadPoolExecutor(len(self.pools)) as threads:
            return [
                future.exception() for future in [threads.submit(live, worker) for worker in range(len(self.pools))]
            ]


def all_reduce(run: Run, given: list[np.ndarray], bits: int = 32) -> list[np.ndarray]:
    """Plays one collective, and returns what each worker has afterwards. Raises the first worker's error."""
    results = [vector.copy() for vector in given]
    for error in run.play(lambda worker, pool: pool.all_reduce(results[worker], bits=bits)):
        if error:
            raise error
    return results
