"""One training of the study: a process for each worker, on this machine."""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel

from serene.experiments.pytorch_study.grid import DDP, SHARED, Cell
from serene.experiments.pytorch_study.tasks import TASKS, Task
from serene.experiments.shared.together import CONTEXT, results
from serene.http import CONTROLLER
from serene.torch.optimizer import DistributedOptimizer
from serene.wire import ENCAPSULATION_BYTES, HEADER

PATIENCE_S = 600.0  # for one training; one that takes longer hangs
LOOK_EVERY = 8  # steps from one look at the parameters to the next, at least
TEST_BATCH = 250
PAUSE_S = 0.02  # by which a straggler's step is longer
OPTIMIZERS: Mapping[str, Callable[[Any, float], torch.optim.Optimizer]] = {
    "sgd": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate, momentum=0.9),
    "adamw": lambda parameters, rate: torch.optim.AdamW(parameters, lr=rate),
}
# Whether a worker's step is a straggler's: by the worker's number, of so many, and a number drawn from 0 to 1.
STRAGGLERS: Mapping[str, Callable[[int, int, float], bool]] = {
    "none": lambda number, workers, drawn: False,
    "one slow": lambda number, workers, drawn: number == workers - 1,
    "random": lambda number, workers, drawn: drawn < 0.1,
}


def train(controller: str, cell: Cell) -> dict[str, Any]:
    """Trains: ``losses`` of worker 0, its ``accuracies`` as [seconds, step, accuracy] until the task's target is
    reached, its accuracy at the end ``accuracy``, ``seconds`` until the last worker has done its steps, ``sent`` bytes
    of a worker (mean), whether all replicas are ``equal``, and the machine's ``load`` at the beginning. controller: its
    address. Raises CallFailed."""
    os.environ[CONTROLLER] = controller
    torch.set_num_threads(1)  # before anything is computed: the workers are forked from this process
    task, together = TASKS[cell.task](), CONTEXT.Barrier(cell.workers)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        calls = {
            f"worker {number}": partial(_work, cell, task, number, str(Path(folder, "store")), together)
            for number in range(cell.workers)
        }
        reports = [*results(calls, PATIENCE_S).values()]
    return {
        **reports[0],
        "seconds": max(each["seconds"] for each in reports),
        "sent": sum(each["sent"] for each in reports) / len(reports),
        "equal": len({each["digest"] for each in reports}) == 1,
        "load": load,
        "date": date.today().isoformat(),
    }


def _work(cell: Cell, task: Task, number: int, store: str, together: Any) -> dict[str, Any]:
    torch.manual_seed(cell.seed)
    model = task.model()
    own = OPTIMIZERS[cell.optimizer](model.parameters(), task.rates[cell.optimizer])
    size = sum(parameter.numel() for parameter in model.parameters())
    draws = torch.Generator().manual_seed(1000 * cell.seed + number)
    pauses = random.Random(1000 * cell.seed + number)
    losses, looks = [], []
    with ExitStack() as stack:
        forward, optimizer = _joined(cell, model, own, number, store, stack)
        together.wait(PATIENCE_S)
        began = time.monotonic()
        for step in range(1, cell.steps + 1):
            inputs, labels = task.train(draws, task.batch)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(forward(inputs), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            if STRAGGLERS[cell.stragglers](number, cell.workers, pauses.random()):
                time.sleep(PAUSE_S)
            optimizer.step()
            losses.append(loss.item())
            if number == 0 and step % max(cell.every, LOOK_EVERY) == 0:
                looks.append((time.monotonic() - began, step, _vector(model).clone()))
        seconds = time.monotonic() - began
    if isinstance(optimizer, DistributedOptimizer):
        assert optimizer._member is not None
        client = optimizer._member.session.client
        packet = ENCAPSULATION_BYTES + HEADER.itemsize + 4 * client.membership.lanes
        sent = client.counts.sent * packet
    else:  # a ring's all-reduce, without headers: docs/network-study.md
        sent = cell.steps // cell.every * 2 * (cell.workers - 1) * 4 * size // cell.workers
    report = {
        "seconds": seconds,
        "sent": sent,
        "digest": hashlib.blake2b(_vector(model).numpy().tobytes(), digest_size=8).hexdigest(),
    }
    if number == 0:
        report |= {"losses": losses, "accuracy": accuracy(model, task.test), "parameters": size}
        report["accuracies"] = _until_target(model, task, looks)
    return report


def _joined(
    cell: Cell, model: nn.Module, own: torch.optim.Optimizer, number: int, store: str, stack: ExitStack
) -> tuple[nn.Module, torch.optim.Optimizer]:
    """What computes, and the optimizer. At the end of the stack the worker has left, and has all parameters."""
    if cell.way == SHARED:
        shared = DistributedOptimizer(
            own, job=str(cell)[-64:], workers=cell.workers, every=cell.every, strategy=cell.strategy,
            timeout_s=PATIENCE_S,
        )  # fmt: skip
        return model, stack.enter_context(shared)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=cell.workers)
    stack.callback(dist.barrier)
    if cell.way == DDP:
        return DistributedDataParallel(model), own
    from torch.distributed.optim import PostLocalSGDOptimizer  # imports FSDP, which takes a second

    # It averages at the end of each period, not of its first step: so replicas are equal after the last period.
    averager = PeriodicModelAverager(period=cell.every, warmup_steps=cell.every - 1)
    return model, PostLocalSGDOptimizer(own, averager)


def _vector(model: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def _until_target(model: nn.Module, task: Task, looks: list[tuple[float, int, Tensor]]) -> list[list[float]]:
    found: list[list[float]] = []
    for seconds, step, parameters in looks:
        nn.utils.vector_to_parameters(parameters, model.parameters())
        found.append([seconds, step, accuracy(model, task.test)])
        if found[-1][2] >= task.target:
            break
    return found


def accuracy(model: nn.Module, test: tuple[Tensor, Tensor]) -> float:
    """The share of the test set's labels that the model classifies correctly."""
    right = total = 0
    with torch.no_grad():
        for inputs, labels in zip(*(torch.split(each, TEST_BATCH) for each in test), strict=True):
            hits = model(inputs).argmax(dim=1) == labels
            right, total = right + int(hits.sum()), total + hits.numel()
    return right / total
