"""One process of a DDP training.

Ranks count from 0. end: the rank's socket at a switch's port; without one, gloo reduces as in plain DDP. The buckets
are small, so that several are under way at once. At the end the parameters are written to ``out``; after each step a
line is written to ``out``.losses.
Settings: steps; die_after, the number of steps after which the process ends with status 17 and without leaving the job;
loss_scale; members, how many the job has to have before the first step; waits_at, the step before which rank 0 waits
for a file `go` next to ``out``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from serene.client import FrameTransport
from serene.torch import SwitchReducer, reduce_bucket

STEPS, BATCH = 12, 16
LANES = 320


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(40, 60), nn.Tanh(), nn.Linear(60, 30), nn.Tanh(), nn.Linear(30, 5))


def slots() -> int:
    """The number of slots that the network needs: each parameter has slots of its own."""
    return sum(-(-parameter.numel() // LANES) for parameter in network().parameters())


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(BATCH, 40, generator=generator), torch.randint(0, 5, (BATCH,), generator=generator)


def logged(log: Path, *arguments: Any) -> None:
    """Runs ``main`` with these arguments, and appends its output to the log."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    main(*arguments)


def main(
    rank: int, workers: int, rendezvous: int, out: Path, settings: Mapping[str, float], end: socket.socket | None
) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{rendezvous}", rank=rank, world_size=workers)
    module = network()
    model = nn.parallel.DistributedDataParallel(module, bucket_cap_mb=0.004)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with contextlib.ExitStack() as stack:
        if end is not None:
            transport = FrameTransport(rank, local=end.detach())
            reducer = stack.enter_context(SwitchReducer(module, worker=rank, transport=transport))
            model.register_comm_hook(reducer, reduce_bucket)
            while "members" in settings and reducer.client.pull().members != settings["members"]:
                pass  # no rank contributes yet, so nothing is read
            dist.barrier()
        losses = stack.enter_context(out.with_suffix(".losses").open("w", buffering=1))
        for step in range(int(settings.get("steps", STEPS))):
            if step == settings.get("die_after"):
                os._exit(17)
            while rank == 0 and step == settings.get("waits_at") and not (out.parent / "go").exists():
                time.sleep(0.01)
            inputs, labels = batch(rank, step)
            optimiser.zero_grad()
            loss = settings.get("loss_scale", 1) * nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
            optimiser.step()
            losses.write(f"{float(loss).hex()}\n")
        dist.barrier()
    np.save(out, torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy())
    dist.destroy_process_group()
    # DDP keeps gloo's threads for longer than its process group; now and then the interpreter's shutdown collides with
    # them and aborts, with gloo alone as well (PyTorch's pull request 179291). All is written: exit at once.
    os._exit(0)
