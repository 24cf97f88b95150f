"""A vector of any size through one embedded switch: k-of-n with live swaps, every sum checked, memory and time printed.

python -m serene.experiments.performance.any_size [--values 124000000] [--workers 4] [--exchanges 6]

With --train resnet18 or gpt2 the workers train this model instead, by `DistributedOptimizer`.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import contextlib
import hashlib
import os
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from serene.arguments import Parser, command, whole
from serene.client import Client, FrameTransport, Session
from serene.controller.http.client import ControllerClient
from serene.errors import SereneError
from serene.experiments.performance.one_machine import popen
from serene.experiments.performance.parts import Json, run_parts
from serene.experiments.shared.machine import memory_bytes
from serene.http import CONTROLLER
from serene.process.memory import free_bytes
from serene.program import Program
from serene.strategy import ASP, BSP, SSP, Quorum
from serene.topologies.processes import controller, embedded_switch, free_ports, set_up_turn

PERIOD = 1021  # of the numbers that workers contribute, so that what their sum has to be takes no memory
PART = 1 << 20  # values that are checked at a time
PATIENCE_S = 3600.0
MOST_WORKERS = 32  # of a job; one worker leaves none for a quorum of all but one
UNIT = 2.0**-20  # of the default scale: what is contributed is exact
# Bytes of a worker that trains, by count. Of each value: 4 of the parameter, the gradient, the start, the contribution,
# the residual, the sum of what was sent, and three vectors of the client. Then those of libraries and data.
TRAINED_BYTES, TRAINER_BYTES = 36, 700_000_000
MODELS = ("resnet18", "gpt2-4-layers", "gpt2")  # of large_models


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


def host_part(options: Json) -> Json:
    """The part that runs as a worker (experiments.performance.hosts)."""
    return train(options) if options["train"] else work(options)


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


def train(options: Json) -> Json:
    """As `work`, for a worker that trains a model. ``wrong``: of its parameters, those that are not their start plus
    the sum. ``sent`` and ``read``: sums of its own and all contributions, each value times an odd number, modulo 2^32:
    the workers' ``sent`` add up to ``read``."""
    import torch

    from serene.experiments.performance.large_models import MODELS
    from serene.torch import DistributedOptimizer

    os.environ[CONTROLLER] = options["url"]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    large = MODELS[options["train"]]
    model, generator = large.model(), torch.Generator().manual_seed(100 + options["worker"])
    own = torch.optim.SGD(model.parameters(), lr=0.01)
    # During the exchange the gradients are not needed, but their memory is.
    own.register_step_post_hook(lambda *_: own.zero_grad())
    seconds, losses, before = [], list[float](), memory_bytes()
    with DistributedOptimizer(
        own, job=options["train"], workers=options["workers"], strategy=f"quorum:{options['workers'] - 1}",
        timeout_s=PATIENCE_S,
    ) as optimizer:  # fmt: skip
        for _ in range(options["exchanges"]):
            inputs, labels = large.batch(generator)
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.item())
            began = time.monotonic()
            optimizer.step()
            seconds.append(time.monotonic() - began)
        complete = optimizer.close()
    memory, wrong, at, digest = memory_bytes(), 0, 0, hashlib.blake2b(digest_size=8)
    for parameter in model.parameters():
        part = slice(at, at := at + parameter.numel())
        moved = optimizer.sum_of_updates_read[part].double().mul_(optimizer.unit).add_(optimizer.start[part])
        wrong += int(torch.count_nonzero(parameter.detach().reshape(-1) != moved.float()))
        digest.update(parameter.detach().numpy().tobytes())
    sums = (optimizer.sum_of_updates_sent.numpy(), optimizer.sum_of_updates_read.numpy())
    return {
        "seconds": seconds, "complete": complete, "wrong": wrong, "memory": memory, "before": before,
        "losses": losses, "digest": digest.hexdigest(), "sent": _folded(sums[0]), "read": _folded(sums[1]),
    }  # fmt: skip


def _folded(values: np.ndarray) -> int:
    """The sum of int32[n], each value times an odd number, modulo 2^32."""
    odd = np.arange(1, 2 * len(values), 2, dtype=np.uint32)
    return int(np.sum(odd * values.view(np.uint32), dtype=np.uint32))


def run(
    values: int, workers: int, exchanges: int, folder: Path, slots: int | None = None, train: str = ""
) -> dict[str, Any]:
    """Workers that contribute ``exchanges`` times each under k-of-n (all but one), with swaps meanwhile, through a
    switch with as many slots as they need. train: the model that they train; else they contribute numbers. Raises
    SereneError where a part fails, or without memory for a training. Returns what was measured: by worker, and the
    switch's memory."""
    loaded = Program.load()
    needed = -(-values // loaded.lanes) if slots is None else slots
    per_value = (loaded.bytes_per_slot or 0) / loaded.lanes
    wanted, free = workers * (TRAINED_BYTES * values + TRAINER_BYTES) + per_value * values, free_bytes()
    if train and free is not None and wanted > free:
        raise SereneError(
            f"training {values:,} values on {workers} workers takes about {wanted / 1e9:.0f} GB of memory, and "
            f"{free / 1e9:.0f} GB are free: choose a smaller model, or fewer workers"
        )
    with contextlib.ExitStack() as stack:
        with set_up_turn():
            grpc, http = free_ports(9559, 8559)
            udp = free_ports(*[24300] * 2 * workers, kind=socket.SOCK_DGRAM)
            pairs = list(zip(udp[::2], udp[1::2], strict=True))
            listed = ",".join(f"{number}:{switch}:{local}" for number, (switch, local) in enumerate(pairs, 1))
            ports = {number: f"udp:{switch}:{local}" for number, (switch, local) in enumerate(pairs, 1)}
            switch = embedded_switch(ports, grpc, folder / "switch.log")
            stack.callback(switch.stop)
            commanding = controller(
                grpc, http, workers, folder / "controller.log", "--slots", str(needed), "--udp-ports", listed
            )
            stack.callback(commanding.stop)
        url = f"http://127.0.0.1:{http}"
        client = stack.enter_context(ControllerClient(url))
        if not train:
            client.create_job(workers, Quorum(workers - 1))
        ends = [(local, switch) for switch, local in pairs]
        options = {
            "values": values, "workers": workers, "exchanges": exchanges, "ends": ends, "train": train, "url": url,
        }  # fmt: skip
        swapping = Swapping(client, workers, exchanges)
        parts = dict.fromkeys(range(workers), ("any_size", options))
        results = run_parts(popen, parts, folder, PATIENCE_S, swapping.look)
        job = client.job(0)
        return {
            "slots": needed, "bytes_per_value": per_value, "swaps": swapping.done,
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
        if not (jobs := self._client.jobs()):  # workers that train make it
            return
        (job,) = jobs
        least = min(worker.iteration for worker in job.workers)
        if job.state.value == "running" and self.done < least < self._exchanges - 1:
            self._client.set_strategy(0, self._turns[self.done % len(self._turns)])
            self.done += 1


@command
def main() -> int:
    parser = Parser(__doc__)
    parser.add_argument("--values", type=whole(1), default=11_200_000, help="number of values (%(default)s)")
    parser.add_argument("--workers", type=whole(2, MOST_WORKERS), default=4, help="number of workers (%(default)s)")
    parser.add_argument("--exchanges", type=whole(1), default=6, help="number of exchanges (%(default)s)")
    parser.add_argument("--train", choices=MODELS, default="", help="train this model; --values has no effect then")
    options = parser.parse_args()
    values, workers, exchanges = options.values, options.workers, options.exchanges
    if options.train:
        from serene.experiments.performance.large_models import MODELS as LARGE

        values = LARGE[options.train].values
    with tempfile.TemporaryDirectory() as folder:
        done = run(values, workers, exchanges, Path(folder), train=options.train)
    print(
        f"{options.train} {values:,} values, {workers} workers, {exchanges} exchanges each, {workers - 1}-of-{workers} "
        f"and {done['swaps']} live swaps".strip()
    )
    size = f"{done['slots']:,} slots, {done['bytes_per_value']:.1f} bytes a value"
    print(f"switch: {size}, {done['switch'] / 1e9:.2f} GB resident")
    for number, worker in enumerate(done["workers"]):
        times = (worker["memory"] - worker["before"]) / (4 * values)
        if options.train:
            further = f"loss {worker['losses'][0]:.3f} -> {worker['losses'][-1]:.3f}"
        else:
            further = f"{worker['retransmissions']} retransmissions"
        print(
            f"worker {number}: {statistics.median(worker['seconds']):.2f} s each (first {worker['seconds'][0]:.2f}), "
            f"{worker['memory'] / 1e9:.2f} GB, {times:.1f} times its vector beyond what it began with; "
            f"{further}, {worker['wrong']} wrong sums"
        )
    print(f"all processes: {(done['switch'] + sum(each['memory'] for each in done['workers'])) / 1e9:.2f} GB at most")
    exact = all(worker["complete"] and not worker["wrong"] for worker in done["workers"])
    print("every sum exact at the end" if exact else "NOT every sum is exact")
    if options.train:
        equal = len({worker["digest"] for worker in done["workers"]}) == 1
        sent = sum(worker["sent"] for worker in done["workers"]) % 2**32
        counted = all(worker["read"] == sent for worker in done["workers"])
        print(f"replicas {'equal' if equal else 'NOT equal'}, the sum is {'' if counted else 'NOT '}what was sent")
        exact = exact and equal and counted
    return 0 if exact else 1


if __name__ == "__main__":
    raise SystemExit(ended(main))
