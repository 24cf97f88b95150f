"""What `make bench` runs in the hosts of its networks; each part writes its measurements as JSON.

python -m experiments.performance.hosts PART '{"...": ...}' RESULTS
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serene.client import Client, FrameTransport, Pool, Session, ShmTransport, Transport, UdpTransport
from serene.client.blocks import Layout
from serene.client.parts import Parts
from serene.client.updates import PartUpdate
from serene.fixedpoint import DEFAULT_SCALE
from workers.packets import PACKETS

Json = dict[str, Any]
WARM_UP = 5
WARM_UP_VALUES = 1_000_000  # of a long vector: its first ones


def gradient(worker: int, values: int) -> np.ndarray:
    """float32[values], each worker's own and known to all."""
    return np.random.default_rng(worker).normal(0, 0.1, values).astype(np.float32)


def _repeat(once: Callable[[], np.ndarray], expected: np.ndarray, bound: float, options: Json) -> Json:
    """Seconds and CPU seconds an all-reduce, each over a series of them that follow one another without a pause. once:
    ends for nobody before all have begun it."""
    for _ in range(WARM_UP):
        once()
    seconds, cpu, results = [], [], []
    for _ in range(options["repeats"]):
        once()  # all hosts meet: what one did after the last repeat is in nobody's time
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        for _ in range(options["series"]):
            result = once()
        seconds.append((time.perf_counter() - began) / options["series"])
        after = resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cpu.append(used / options["series"])
        results.append(result.copy())
    # Not before all repeats are over, or who is first would take the processor that the others need to end theirs.
    error = max(float(np.abs(result - expected).max()) for result in results)
    if not error <= bound:
        raise SystemExit(f"a sum is wrong by {error:g}; at most {bound:g} was expected")
    return {"seconds": seconds, "cpu_s": cpu, "error": error, "bound": bound}


def _expected(options: Json) -> np.ndarray:
    rows = [gradient(worker, options["values"]).astype(np.float64) for worker in range(options["workers"])]
    return np.asarray(np.sum(rows, axis=0))


def _rounding(options: Json, expected: np.ndarray) -> float:
    """Half a unit for each contribution, and the last bit of a float32 sum."""
    return float(options["workers"] * 0.5 / DEFAULT_SCALE + np.abs(expected).max() * 2**-23)


def serene(options: Json) -> Json:
    """All-reduce through the switch: every worker's sum, within the fixed-point error. place: a worker's rack and its
    number in it, where there are racks."""
    expected = _expected(options)
    mine = gradient(options["worker"], options["values"])
    bound = _rounding(options, expected)
    carried = PACKETS[options.get("packets", "compiled")](UdpTransport())
    rack, number = options.get("place", (None, options["worker"]))
    with Client(carried, 0, number, options["values"], rack=rack) as client:
        client.join()
        measured = _repeat(lambda: client.exchange(mine).delta, expected, bound, options)
        measured["retransmissions"] = client.counts.retransmissions
        measured["window"] = client.window
        client.leave()
    return measured


def overlap(options: Json) -> Json:
    """Iterations of a backward pass through equal layers and their exchange, at once and one after the other.

    The pass is slept, not computed: the hosts share the machine's processors. Both send the same values.
    """
    expected = _expected(options)
    mine = gradient(options["worker"], options["values"])
    bound = _rounding(options, expected)
    layers = np.split(mine, options["layers"])
    layer_s = options["backward_s"] / options["layers"]
    with Client(UdpTransport(), 0, options["worker"], options["values"]) as client:
        slots = client.join().slots // options["layers"]

        def overlapped() -> np.ndarray:
            results: list[Future[PartUpdate]] = []
            for layer in reversed(range(options["layers"])):
                time.sleep(layer_s)
                results.append(parts.submit(layer * slots, layers[layer]))
            return np.concatenate([result.result().delta for result in reversed(results)])

        def in_turn() -> np.ndarray:
            for _ in layers:
                time.sleep(layer_s)
            return client.exchange(mine).delta

        with Parts(Session(client)) as parts:
            at_once = _repeat(overlapped, expected, bound, options)
        after = _repeat(in_turn, expected, bound, options)
        client.leave()
    return {"seconds": at_once["seconds"], "in_turn_s": after["seconds"]}


def _join(options: Json, backend: str = "gloo") -> None:
    """The process group; gloo's connections, which every group has, take the host's own interface."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = options.get("interface", f"h{options['worker'] + 1}-eth0")
    address = options.get("meet_at", "10.0.0.1:29500")
    dist.init_process_group(
        backend, init_method=f"tcp://{address}", rank=options["worker"], world_size=options["workers"]
    )


def gloo(options: Json) -> Json:
    """torch.distributed's all_reduce of the same vectors, over TCP."""
    import torch
    import torch.distributed as dist

    _join(options)
    mine = torch.from_numpy(gradient(options["worker"], options["values"]))
    result = torch.empty_like(mine)

    def once() -> np.ndarray:
        result.copy_(mine)
        dist.all_reduce(result)
        return result.numpy()

    expected = _expected(options)
    measured = _repeat(once, expected, options["workers"] * float(np.abs(expected).max()) * 2**-23, options)
    dist.barrier()
    dist.destroy_process_group()
    return measured


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def _large(options: Json, all_reduce: Callable[[np.ndarray], None], meet: Callable[[], None], bound: float) -> Json:
    """Seconds of an all-reduce in place, each over a series of them without a pause: what a link carries at once after
    a pause, a buffer of up to 64 kB, is a small part of a series. meet: returns when all workers have come. bound: of
    the sums' root mean square error, as a part of their root mean square."""
    count = options["values"]
    expected = np.zeros(count)
    for worker in range(options["workers"]):
        expected += gradient(worker, count)
    mine, series = gradient(options["worker"], count), options.get("series", 1)
    seconds, cpu = [], []
    for repeat in range(-1, options["repeats"]):  # the first one warms up
        length = count if repeat >= 0 else min(count, WARM_UP_VALUES)
        results = [mine[:length].copy() for _ in range(series)]
        meet()
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        for result in results:
            all_reduce(result)
        ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        meet()  # or who is first would look at its result on a processor that the others need to come to their end
        if repeat >= 0:
            seconds.append((ended - began) / series)
            cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / series)
        error = max(_rms(result - expected[:length]) / _rms(expected[:length]) for result in results)
        if not error <= bound:
            raise SystemExit(f"sums are wrong by {error:g} of their size; at most {bound:g} was expected")
    return {"seconds": seconds, "cpu_s": cpu, "error": error, "bound": bound}


def _transport(options: Json) -> Transport:
    """port: of an embedded switch on this machine, udp:LOCAL:SWITCH or shm:PATH; without one, the host's network."""
    kind, _, where = options.get("port", "").partition(":")
    if kind == "shm":
        return ShmTransport(options["worker"], where)
    if kind == "udp":
        local, switch = map(int, where.split(":"))
        return FrameTransport(options["worker"], local=("127.0.0.1", local), switch=("127.0.0.1", switch))
    return UdpTransport()


def pool(options: Json) -> Json:
    """All-reduce of vectors of any length through a pool of slots. bits: of a value on its way. limit: of a fixed
    scale; feedback: whether what is rounded off is held back."""
    nothing, workers, bits = np.zeros(0, np.float32), options["workers"], options.get("bits", 32)
    held = np.zeros(options["values"]) if options.get("feedback") else None
    size = {"slots": options["slots"], "lanes": options["lanes"]}
    bound = workers * 2.0**-23
    if bits != 32:  # half a level a worker, where the largest value is under five deviations, and a 4th or half of T
        bound = {16: 10, 8: 5}[bits] / Layout(workers, options["lanes"], bits).levels
    with Pool(_transport(options), 0, options["worker"], incarnation=options.get("incarnation"), **size) as pool:
        pool.join()
        unit = pool.unit_of(options["limit"], bits) if "limit" in options else None
        all_reduce = partial(pool.all_reduce, bits=bits, unit=unit, held_back=held)
        measured = _large(options, all_reduce, lambda: pool.all_reduce(nothing), bound)
        pool.leave()
        return {**measured, **asdict(pool.counts)}


def gloo_large(options: Json) -> Json:
    """The same by torch.distributed over TCP. compression: float16 or bfloat16, as PyTorch's hooks for
    DistributedDataParallel compress a bucket; none otherwise."""
    import torch
    import torch.distributed as dist

    _join(options)
    workers, kind = options["workers"], getattr(torch, options.get("compression", "float32"))

    def all_reduce(values: np.ndarray) -> None:
        tensor = torch.from_numpy(values)
        if kind is torch.float32:
            dist.all_reduce(tensor)
            return
        compressed = tensor.to(kind).div_(workers)
        dist.all_reduce(compressed)
        tensor.copy_(compressed).mul_(workers)

    measured = _large(options, all_reduce, dist.barrier, workers * torch.finfo(kind).eps)
    dist.barrier()
    dist.destroy_process_group()
    return measured


def ddp(options: Json) -> Json:
    """Iterations of a small network that DistributedDataParallel trains: a bucket of gradients is exchanged while the
    backward pass computes the next one."""
    import torch.distributed as dist

    os.environ.update(options["environment"])
    _join(options, options["backend"])
    measured = _ddp_iterations(options)
    dist.barrier()
    dist.destroy_process_group()  # when nothing has the model any more: see docs/pytorch.md, At the end
    return measured


def _ddp_iterations(options: Json) -> Json:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(1)
    layers = (nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=options["bucket_mb"])
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(options["worker"])
    inputs = torch.randn(64, 784, generator=generator)
    labels = torch.randint(0, 10, (64,), generator=generator)
    seconds, losses = [], []
    for repeat in range(-2, options["repeats"]):  # DDP makes its buckets anew after the first one
        dist.barrier()
        began = time.perf_counter()
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if repeat >= 0:
            seconds.append(time.perf_counter() - began)
        losses.append(loss.item())
    return {"seconds": seconds, "losses": losses, "values": sum(part.numel() for part in model.parameters())}


def pushes(options: Json) -> Json:
    """PUSHes a second of one worker, each answered at once."""
    with Client(UdpTransport(), 0, 0, options["values"]) as client:
        slots = client.join().slots
        mine = np.ones(options["values"], np.float32)
        client.exchange(mine)
        rates = []
        for _ in range(options["repeats"]):
            began, count = time.perf_counter(), 0
            while time.perf_counter() - began < options["seconds"]:
                client.exchange(mine)
                count += slots
            rates.append(count / (time.perf_counter() - began))
        client.leave()
        return {"rates": rates, "retransmissions": client.counts.retransmissions, "window": client.window}


def seed(options: Json) -> Json:
    """Rows a second through the program of the paper's authors."""
    from experiments.performance.seed import worker  # it imports Mininet, which the other parts do not need

    return worker(options)


PARTS = {
    "serene": serene,
    "overlap": overlap,
    "gloo": gloo,
    "pool": pool,
    "gloo_large": gloo_large,
    "ddp": ddp,
    "pushes": pushes,
    "seed": seed,
}


if __name__ == "__main__":
    result = PARTS[sys.argv[1]](json.loads(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(result))
