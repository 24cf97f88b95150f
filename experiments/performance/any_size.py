"""A vector of any size through one embedded switch: k-of-n with live swaps, every sum checked, memory and time printed.

python -m serene.experiments.performance.any_size [--values 124000000] [--workers 4] [--exchanges 6]
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import contextlib
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from serene.arguments import Parser, whole
from serene.client import Client, FrameTransport, Session
from serene.controller.http.client import ControllerClient
from serene.experiments.performance.one_machine import Loopback
from serene.experiments.performance.parts import Json, run_parts
from serene.experiments.shared import terminal
from serene.experiments.shared.machine import memory_bytes
from serene.program import Program
from serene.strategy import ASP, BSP, SSP, Quorum
from serene.topologies.processes import controller, embedded_switch, free_ports, set_up_turn

PERIOD = 1021  # of the numbers that workers contribute, so that what their sum has to be takes no memory
PART = 1 << 20  # values that are checked at a time
PATIENCE_S = 600.0
UNIT = 2.0**-20  # of the default scale: what is contributed is exact


def numbers(worker: int, exchange: int, values: int, out: np.ndarray) -> None:
    """A worker's contribution, float32[values], in whole units."""
    pattern = ((np.arange(PERIOD) * (worker + 3) + 17 * exchange) % PERIOD - PERIOD // 2) * UNIT
    whole = values // PERIOD * PERIOD
    out[:whole].reshape(-1, PERIOD)[:] = pattern
    out[whole:] = pattern[: values - whole]


def expected(workers: int, exchanges: int) -> np.ndarray:
    """The sum of all contributions in units, a period of it, uint32[PERIOD]."""
    total = np.zeros(PERIOD, np.int64)
    for worker in range(workers):
        for exchange in range(exchanges):
            total += (np.arange(PERIOD) * (worker + 3) + 17 * exchange) % PERIOD - PERIOD // 2
    return total.astype(np.uint32)


def wrong_values(held: np.ndarray, values: int, period: np.ndarray) -> int:
    """How many of the values that a worker has read last are not the sum. held: uint32[slots, lanes]."""
    flat, wrong = held.reshape(-1)[:values], 0
    for first in range(0, values, PART):
        part = flat[first : first + PART]
        wrong += int(np.count_nonzero(part != period[np.arange(first, first + len(part)) % PERIOD]))
    return wrong


def work(options: Json) -> Json:
    """One worker, and what it measured (experiments.performance.hosts)."""
    worker, values, (local, switch) = options["worker"], options["values"], options["ends"][options["worker"]]
    gradient = np.empty(values, np.float32)
    transport = FrameTransport(worker + 1, local=("127.0.0.1", local), switch=("127.0.0.1", switch))
    seconds = []
    before = memory_bytes()
    with Session(Client(transport, 0, worker, values), join_timeout_s=PATIENCE_S) as session:
        session.join()
        for exchange in range(options["exchanges"]):
            numbers(worker, exchange, values, gradient)
            began = time.monotonic()
            session.exchange(gradient)
            seconds.append(time.monotonic() - began)
        complete = session.finish(PATIENCE_S)
        wrong = wrong_values(
            session.client.protocol.held_values, values, expected(options["workers"], options["exchanges"])
        )
        repeated = session.client.counts.retransmissions
    return {
        "seconds": seconds, "complete": complete, "wrong": wrong, "memory": memory_bytes(), "before": before,
        "retransmissions": repeated,
    }  # fmt: skip


def run(values: int, workers: int, exchanges: int, folder: Path, slots: int | None = None) -> dict[str, Any]:
    """Workers that contribute ``exchanges`` times each under k-of-n (all but one), with swaps meanwhile, through a
    switch with as many slots as they need. Raises SereneError where a part fails. Returns what was measured: by
    worker, and the switch's memory."""
    loaded = Program.load()
    needed = -(-values // loaded.lanes) if slots is None else slots
    with contextlib.ExitStack() as stack:
        with set_up_turn():
            grpc, http = free_ports(9559, 8559)
            udp = free_ports(*[24300] * 2 * workers, kind=socket.SOCK_DGRAM)
            pairs = list(zip(udp[::2], udp[1::2], strict=True))
            ports = {number: f"udp:{switch}:{local}" for number, (switch, local) in enumerate(pairs, 1)}
            switch = embedded_switch(ports, grpc, folder / "switch.log")
            stack.callback(switch.stop)
            commanding = controller(grpc, http, workers, folder / "controller.log", "--slots", str(needed))
            stack.callback(commanding.stop)
        client = stack.enter_context(ControllerClient(f"http://127.0.0.1:{http}"))
        client.create_job(workers, Quorum(workers - 1))
        ends = [(local, switch) for switch, local in pairs]
        options = {"values": values, "workers": workers, "exchanges": exchanges, "ends": ends}
        swapping = Swapping(client, workers, exchanges)
        parts = dict.fromkeys(range(workers), ("any_size", options))
        results = run_parts(Loopback(), parts, folder, PATIENCE_S, swapping.look)
        job = client.job(0)
        return {
            "slots": needed, "bytes_per_value": (loaded.bytes_per_slot or 0) / loaded.lanes, "swaps": swapping.done,
            "workers": results, "switch": memory_bytes(switch.pid),
            "applied": [worker.contributions for worker in job.workers],
        }  # fmt: skip


class Swapping:
    """Swaps the strategy each time when all have got on by an exchange. done: how often."""

    def __init__(self, client: ControllerClient, workers: int, exchanges: int) -> None:
        self._client, self._exchanges = client, exchanges
        self._turns = [BSP(), SSP(2), Quorum(workers - 1), ASP(), Quorum(workers - 1)]
        self.done = 0

    def look(self) -> None:
        job = self._client.job(0)
        least = min(worker.iteration for worker in job.workers)
        if job.state.value == "running" and self.done < least < self._exchanges - 1:
            self._client.set_strategy(0, self._turns[self.done % len(self._turns)])
            self.done += 1


@terminal.command
def main() -> int:
    parser = Parser(
        prog="python -m serene.experiments.performance.any_size", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--values", type=whole(1), default=11_200_000, help="number of values (%(default)s)")
    parser.add_argument("--workers", type=whole(1), default=4, help="number of workers (%(default)s)")
    parser.add_argument("--exchanges", type=whole(1), default=6, help="number of exchanges (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done = run(options.values, options.workers, options.exchanges, Path(folder))
    vector = 4 * options.values
    print(
        f"{options.values:,} values, {options.workers} workers, {options.exchanges} exchanges each, "
        f"{options.workers - 1}-of-{options.workers} and {done['swaps']} live swaps"
    )
    size = f"{done['slots']:,} slots, {done['bytes_per_value']:.1f} bytes a value"
    print(f"switch: {size}, {done['switch'] / 1e9:.2f} GB resident")
    for number, worker in enumerate(done["workers"]):
        times = (worker["memory"] - worker["before"]) / vector
        print(
            f"worker {number}: {statistics.median(worker['seconds']):.2f} s each (first {worker['seconds'][0]:.2f}), "
            f"{worker['memory'] / 1e9:.2f} GB, {times:.1f} times its vector beyond what it began with; "
            f"{worker['retransmissions']} retransmissions, {worker['wrong']} wrong sums"
        )
    exact = all(worker["complete"] and not worker["wrong"] for worker in done["workers"])
    print("every sum exact at the end" if exact else "NOT every sum is exact")
    return 0 if exact else 1


if __name__ == "__main__":
    raise SystemExit(ended(main))
