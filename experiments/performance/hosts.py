"""The parts of `make bench`: programs that run in the hosts of its networks, and write what they measured as JSON.

python -m serene.experiments.performance.hosts PART '{"...": ...}' RESULTS

PART is a name of PARTS, followed by its options as JSON and the file to write.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serene.client import Client, FrameTransport, Pool, ShmTransport, Transport, UdpTransport
from serene.client.allreduce.blocks import Layout
from serene.fixedpoint import DEFAULT_SCALE
from serene.workers.packets import PACKETS

Json = dict[str, Any]
WARM_UP = 5  # all-reduces that are not timed
WARM_UP_VALUES = 1_000_000  # of a long vector, whose all-reduce takes seconds, only these first ones


def gradient(worker: int, values: int) -> np.ndarray:
    """A worker's gradient, float32[values]. Every worker can compute all of them, and so the expected sum."""
    return np.random.default_rng(worker).normal(0, 0.1, values).astype(np.float32)


def _repeat(once: Callable[[], np.ndarray], expected: np.ndarray, bound: float, options: Json) -> Json:
    """Seconds and CPU seconds of an all-reduce: for each repeat, the mean over a series of all-reduces without a pause
    between them. once: does one, and returns at no worker before all have begun it. bound: error of a sum, at most.
    Ends the process if a sum is wrong."""
    for _ in range(WARM_UP):
        once()
    seconds, cpu, results = [], [], []
    for _ in range(options["repeats"]):
        once()  # waits for the other workers, so that a late one does not lengthen the others' time
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        for _ in range(options["series"]):
            result = once()
        seconds.append((time.perf_counter() - began) / options["series"])
        after = resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cpu.append(used / options["series"])
        results.append(result.copy())
    # Only after all repeats: the hosts share processors, and whoever is done first would slow down the others.
    error = max(float(np.abs(result - expected).max()) for result in results)
    if not error <= bound:
        raise SystemExit(f"a sum is wrong by {error:g}; at most {bound:g} was expected")
    return {"seconds": seconds, "cpu_s": cpu, "error": error, "bound": bound}


def _expected(options: Json) -> np.ndarray:
    rows = [gradient(worker, options["values"]).astype(np.float64) for worker in range(options["workers"])]
    return np.asarray(np.sum(rows, axis=0))


def _rounding(options: Json, expected: np.ndarray) -> float:
    """The error of a sum that rounding may cause: half a fixed-point unit for each contribution, and float32's own."""
    return float(options["workers"] * 0.5 / DEFAULT_SCALE + np.abs(expected).max() * 2**-23)


def serene(options: Json) -> Json:
    """All-reduces through the switch, with a vector of fixed length. place: the worker's rack and its number in it, if
    there are racks."""
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


def _join(options: Json, backend: str = "gloo") -> None:
    """Makes the process group. Groups of every backend have connections of gloo, which are to use the host's
    interface."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = options.get("interface", f"h{options['worker'] + 1}-eth0")
    address = options.get("meet_at", "10.0.0.1:29500")
    dist.init_process_group(
        backend, init_method=f"tcp://{address}", rank=options["worker"], world_size=options["workers"]
    )


def gloo(options: Json) -> Json:
    """All-reduces of the same vectors by gloo, over TCP."""
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
    """Seconds and CPU seconds of an all-reduce of long vectors, in place: for each repeat, the mean over a series
    without a pause. After a pause a link carries up to 64 kB at once, which must be a small part of what is measured.

    meet: returns when all workers have called it. bound: the sums' root mean square error, at most, relative to their
    root mean square. Ends the process if sums are wrong.
    """
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
        meet()  # the hosts share processors: whoever is done first must not check its result while others are measured
        if repeat >= 0:
            seconds.append((ended - began) / series)
            cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / series)
        error = max(_rms(result - expected[:length]) / _rms(expected[:length]) for result in results)
        if not error <= bound:
            raise SystemExit(f"sums are wrong by {error:g} of their size; at most {bound:g} was expected")
    return {"seconds": seconds, "cpu_s": cpu, "error": error, "bound": bound}


def _transport(options: Json) -> Transport:
    """The transport to ``port``, a port of an embedded switch on this machine, udp:LOCAL:SWITCH or shm:PATH; without
    that option, UDP over the host's network."""
    kind, _, where = options.get("port", "").partition(":")
    if kind == "shm":
        return ShmTransport(options["worker"], where)
    if kind == "udp":
        local, switch = map(int, where.split(":"))
        return FrameTransport(options["worker"], local=("127.0.0.1", local), switch=("127.0.0.1", switch))
    return UdpTransport()


def pool(options: Json) -> Json:
    """All-reduces through a pool of slots, of vectors of any length. bits: precision. limit: of a fixed scale.
    feedback: whether there is error feedback."""
    nothing, workers, bits = np.zeros(0, np.float32), options["workers"], options.get("bits", 32)
    held = np.zeros(options["values"]) if options.get("feedback") else None
    size = {"slots": options["slots"], "lanes": options["lanes"]}
    bound = workers * 2.0**-23
    # Half a level for each worker. The largest value is below five standard deviations, and above a quarter (16 bits)
    # or half (8 bits) of what the levels cover.
    if bits != 32:
        bound = {16: 10, 8: 5}[bits] / Layout(workers, options["lanes"], bits).levels
    with Pool(_transport(options), 0, options["worker"], incarnation=options.get("incarnation"), **size) as pool:
        pool.join()
        unit = pool.unit_of(options["limit"], bits) if "limit" in options else None
        all_reduce = partial(pool.all_reduce, bits=bits, unit=unit, residual=held)
        measured = _large(options, all_reduce, lambda: pool.all_reduce(nothing), bound)
        pool.leave()
        return {**measured, **asdict(pool.counts)}


def gloo_large(options: Json) -> Json:
    """All-reduces of long vectors by gloo, over TCP. compression: float16 or bfloat16, by the arithmetic of PyTorch's
    hooks for DistributedDataParallel; float32, the default, is none."""
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
    """Iterations in which DistributedDataParallel trains a small network: it exchanges a bucket of gradients while the
    backward pass computes the next one."""
    import torch.distributed as dist

    os.environ.update(options["environment"])
    _join(options, options["backend"])
    measured = _ddp_iterations(options)
    dist.barrier()
    dist.destroy_process_group()  # only now that the model is freed: see docs/pytorch.md, At the end
    return measured


def _ddp_iterations(options: Json) -> Json:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    module = _network()
    model = DistributedDataParallel(module, bucket_cap_mb=options["bucket_mb"])
    return _iterations(options, module, model, torch.optim.SGD(module.parameters(), lr=0.01))


def _network() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(1)
    layers = (nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    return nn.Sequential(*layers)


def _iterations(options: Json, module: Any, model: Any, optimiser: Any) -> Json:
    """model: what computes; module: what has the parameters."""
    import torch
    import torch.distributed as dist
    from torch import nn

    generator = torch.Generator().manual_seed(options["worker"])
    inputs = torch.randn(64, 784, generator=generator)
    labels = torch.randint(0, 10, (64,), generator=generator)
    seconds, losses = [], []
    for repeat in range(-2, options["repeats"]):  # two are not timed: after the first, DDP rebuilds its buckets
        dist.barrier()
        began = time.perf_counter()
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if repeat >= 0:
            seconds.append(time.perf_counter() - began)
        losses.append(loss.item())
    return {"seconds": seconds, "losses": losses, "values": sum(part.numel() for part in module.parameters())}


def shared(options: Json) -> Json:
    """Iterations of `ddp` by shared training."""
    import torch
    import torch.distributed as dist

    from serene.torch import DistributedOptimizer

    os.environ.update(options["environment"])
    _join(options)  # for the barriers between the iterations
    model = _network()
    own = torch.optim.SGD(model.parameters(), lr=0.01)
    overlap = options["overlap"]
    with DistributedOptimizer(own, job="bench", workers=options["workers"], overlap=overlap) as optimizer:
        measured = _iterations(options, model, model, optimizer)
    dist.barrier()
    dist.destroy_process_group()
    return measured


def pushes(options: Json) -> Json:
    """Answered PUSHes a second of a job's only worker, which never waits for others."""
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
    from serene.experiments.performance.seed import worker  # it imports Mininet, which the other parts do not need

    return worker(options)


def frames(options: Json) -> Json:
    """Frames a second that a router sends back; see `tables`."""
    from serene.experiments.performance import tables

    return tables.host_part(options)


PARTS = {
    "serene": serene,
    "gloo": gloo,
    "pool": pool,
    "gloo_large": gloo_large,
    "ddp": ddp,
    "shared": shared,
    "pushes": pushes,
    "seed": seed,
    "frames": frames,
}


if __name__ == "__main__":
    result = PARTS[sys.argv[1]](json.loads(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(result))
