"""The parts of `make bench`: programs that run in the hosts of its networks, and write what they measured as JSON.

python -m serene.experiments.performance.hosts PART '{"...": ...}' RESULTS

PART is a name as `part` takes it, followed by its options as JSON and the file to write.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from serene.client import Client, FrameTransport, Pool, ShmTransport, Transport, UdpTransport
from serene.client.allreduce.blocks import Layout
from serene.fixedpoint import DEFAULT_SCALE
from serene.workers.packets import PACKETS

Json = dict[str, Any]
SHORT = 1_000_000  # values of a long vector, whose all-reduce takes seconds, that warm up and meet


def gradient(worker: int, values: int) -> np.ndarray:
    """A worker's gradient, float32[values]. Every worker can compute all of them, and so the expected sum."""
    return np.random.default_rng(worker).normal(0, 0.1, values).astype(np.float32)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def _timed(options: Json, all_reduce: Callable[[np.ndarray], object], bound: float) -> Json:
    """Seconds and CPU seconds of an all-reduce, in place: for each repeat, the mean over a series without a pause.
    After a pause a link carries up to 64 kB at once, which must be a small part of what is measured.

    bound: the sums' root mean square error, at most, relative to their root mean square. Ends the process if sums are
    wrong.
    """
    count, series = options["values"], options.get("series", 1)
    expected = np.zeros(count)
    for worker in range(options["workers"]):
        expected += gradient(worker, count)
    mine, short = gradient(options["worker"], count), min(count, SHORT)
    seconds, cpu = [], []
    for repeat in range(-1, options["repeats"]):  # the first one warms up
        length = count if repeat >= 0 else short
        results = [mine[:length].copy() for _ in range(series)]
        all_reduce(np.zeros(short, np.float32))  # all workers meet
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        for result in results:
            all_reduce(result)
        ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        # The hosts share processors: whoever is done first must not check its result while others are measured.
        all_reduce(np.zeros(short, np.float32))
        if repeat >= 0:
            seconds.append((ended - began) / series)
            cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / series)
        error = max(_rms(result - expected[:length]) / _rms(expected[:length]) for result in results)
        if not error <= bound:
            raise SystemExit(f"sums are wrong by {error:g} of their size; at most {bound:g} was expected")
    return {"seconds": seconds, "cpu_s": cpu}


def all_reduces(repeats: int, series: int) -> int:
    """How many all-reduces of a vector of up to SHORT values `_timed` does."""
    return (1 + repeats) * (1 + series + 1)


def serene(options: Json) -> Json:
    """All-reduces through the switch, of vectors with a fixed length of up to SHORT. place: the worker's rack and its
    number in it, if there are racks."""
    carried = PACKETS[options.get("packets", "compiled")](UdpTransport())
    rack, number = options.get("place", (None, options["worker"]))
    with Client(carried, 0, number, options["values"], rack=rack) as client:
        client.join()

        def all_reduce(values: np.ndarray) -> None:
            values[:] = client.exchange(values).delta

        # Rounding: half a fixed-point unit for each contribution. The sums' size is 0.1 or more.
        measured = _timed(options, all_reduce, options["workers"] * 0.5 / DEFAULT_SCALE / 0.1)
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
    workers, bits = options["workers"], options.get("bits", 32)
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
        # The residual is of whole vectors, not of the short ones with which workers meet.
        measured = _timed(options, lambda values: pool.all_reduce(
            values, bits=bits, unit=unit, residual=held if len(values) == options["values"] else None
        ), bound)  # fmt: skip
        pool.leave()
    return measured


def gloo(options: Json) -> Json:
    """All-reduces by gloo, over TCP. compression: float16 or bfloat16, by the arithmetic of PyTorch's
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

    measured = _timed(options, all_reduce, workers * torch.finfo(kind).eps)
    dist.barrier()
    dist.destroy_process_group()
    return measured


def training(options: Json) -> Json:
    """Iterations in which a small network is trained, by shared training if there is an option ``overlap``; else by
    DistributedDataParallel, which exchanges a bucket of gradients while the backward pass computes the next one.
    compute_s: an iteration computes so long, and the next one follows at once; without ``overlap``, no exchange."""
    import torch.distributed as dist

    os.environ.update(options["environment"])
    _join(options, options.get("backend", "gloo"))  # in shared training for the barriers between the iterations
    measured = _iterations(options)
    dist.barrier()
    dist.destroy_process_group()  # only now that the model is freed: see docs/pytorch.md, At the end
    return measured


def _iterations(options: Json) -> Json:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    from serene.torch import DistributedOptimizer

    torch.manual_seed(1)
    layers = (nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    module: Any = nn.Sequential(*layers)
    optimiser: Any = torch.optim.SGD(module.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(options["worker"])
    inputs = torch.randn(64, 784, generator=generator)
    labels = torch.randint(0, 10, (64,), generator=generator)
    seconds, losses, compute_s = [], [], options.get("compute_s", 0.0)
    model = module
    with contextlib.ExitStack() as stack:
        if "overlap" in options:
            shared = {"workers": options["workers"], "overlap": options["overlap"]}
            shared["strategy"] = options.get("strategy", "bsp")
            optimiser = stack.enter_context(DistributedOptimizer(optimiser, job="bench", **shared))
        elif not compute_s:
            model = DistributedDataParallel(module, bucket_cap_mb=options["bucket_mb"])
        for repeat in range(-2, options["repeats"]):  # two are not timed: after the first, DDP rebuilds its buckets
            if not compute_s:
                dist.barrier()
            began = time.perf_counter()
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            time.sleep(max(0.0, began + compute_s - time.perf_counter()))
            optimiser.step()
            if repeat >= 0:
                seconds.append(time.perf_counter() - began)
            losses.append(loss.item())
    return {"seconds": seconds, "losses": losses, "values": sum(part.numel() for part in module.parameters())}


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
        return {"rates": rates, "window": client.window}


PARTS = {"serene": serene, "gloo": gloo, "pool": pool, "training": training, "pushes": pushes}


def part(name: str) -> Callable[[Json], Json]:
    """A part by name; another module's ``host_part`` by the module's, which is imported here, for it needs more."""
    if name in PARTS:
        return PARTS[name]
    found: Callable[[Json], Json] = import_module(f"serene.experiments.performance.{name}").host_part
    return found


if __name__ == "__main__":
    result = part(sys.argv[1])(json.loads(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(result))
