"""The training of a task, as torchrun starts it on every rank. Losses and accuracies go into a file.

torchrun --nproc-per-node 4 -m serene.experiments.pytorch_study.training --task resnet --losses losses.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from serene.experiments.pytorch_study.tasks import TASKS, TEST_BATCH, Task

EVALUATE_EVERY = 40  # steps


def accuracy(model: nn.Module, task: Task) -> float:
    """The accuracy on the test set, 0 to 1. Each rank evaluates a part of it."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    counts = torch.zeros(2)
    model.eval()
    with torch.no_grad():
        inputs, labels = (examples[rank::ranks] for examples in task.test)
        for some, right in zip(torch.split(inputs, TEST_BATCH), torch.split(labels, TEST_BATCH), strict=True):
            hits = model(some).argmax(dim=1) == right
            counts += torch.tensor([hits.sum(), hits.numel()], dtype=torch.float32)
    model.train()
    dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def train(which: str, steps: int, seed: int) -> dict[str, object]:
    """Trains a task. Returns ``losses`` of all steps, averaged over the ranks, ``accuracies`` as [step, accuracy],
    ``seconds`` of each step, and the number of ``parameters``."""
    torch.manual_seed(seed)
    task = TASKS[which]()
    model = DistributedDataParallel(task.model, gradient_as_bucket_view=True)  # saves a copy of the gradients
    draws = torch.Generator().manual_seed(1000 * seed + dist.get_rank())
    losses, accuracies, seconds = [], [], []
    for step in range(1, steps + 1):
        began = time.monotonic()
        inputs, labels = task.train(draws, task.batch)
        task.optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        torch.autograd.backward(loss)
        task.optimiser.step()
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        losses.append(mean.item())
        seconds.append(time.monotonic() - began)
        if step % EVALUATE_EVERY == 0 or step == steps:
            accuracies.append([step, accuracy(task.model, task)])
            if dist.get_rank() == 0:
                print(f"step {step}: loss {losses[-1]:.4f}, accuracy {accuracies[-1][1]:.4f}", flush=True)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"losses": losses, "accuracies": accuracies, "seconds": seconds, "parameters": parameters}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="serene")
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--losses", type=Path, required=True)
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    found = train(arguments.task, arguments.steps, arguments.seed)
    if dist.get_rank() == 0:
        arguments.losses.write_text(json.dumps(found))
    dist.destroy_process_group()  # only after `train` has freed the model: see docs/pytorch.md, At the end


if __name__ == "__main__":
    main()
