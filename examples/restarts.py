"""Restarts: when a rank dies, torchrun restarts all ranks, and they resume from the last checkpoint.

    torchrun --nproc-per-node 4 --max-restarts 3 examples/restarts.py --checkpoint training.pt

With ``--die-at 120`` the last rank kills itself once, before that step, as a failure to recover from.
"""

import argparse
import json
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

SAVE_EVERY = 25


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 1))


def batch(step: int) -> tuple[Tensor, Tensor]:
    """A rank's batch for a step: points, float32[32, 32], and a function of them to learn, float32[32, 1]."""
    generator = torch.Generator().manual_seed(1000 * dist.get_rank() + step)
    inputs = torch.randn(32, 32, generator=generator)
    return inputs, inputs[:, :1] * inputs[:, 1:2] + torch.sin(2 * inputs[:, 2:3])


def train(arguments: argparse.Namespace) -> list[float]:
    """The losses of all steps, averaged over the ranks."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    model = DistributedDataParallel(network())
    if arguments.optimiser == "sgd":
        optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=0.002)
    losses: list[float] = []
    if arguments.checkpoint.exists():
        saved = torch.load(arguments.checkpoint)
        model.module.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        losses = saved["losses"]
        if rank == 0:
            print(f"resumes from step {len(losses)}", flush=True)
    first_time = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    while len(losses) < arguments.steps:
        step = len(losses)
        if step == arguments.die_at and first_time and rank == last:
            os.kill(os.getpid(), signal.SIGKILL)
        inputs, wanted = batch(step)
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimiser.step()
        mean = loss.detach()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        losses.append(mean.item())
        if rank == 0 and len(losses) % SAVE_EVERY == 0:
            saved = {"model": model.module.state_dict(), "optimiser": optimiser.state_dict(), "losses": losses}
            # Saved beside it first: a rank that is killed while it writes leaves the previous checkpoint whole.
            beside = arguments.checkpoint.with_suffix(".new")
            torch.save(saved, beside)
            beside.replace(arguments.checkpoint)
            print(f"step {len(losses)}: loss {losses[-1]:.4f}", flush=True)
    return losses


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="serene")
    parser.add_argument("--optimiser", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--checkpoint", type=Path, required=True, help="a file, read if it exists, written by rank 0")
    parser.add_argument("--die-at", type=int, metavar="STEP", help="the last rank kills itself before this step, once")
    parser.add_argument("--losses", help="a file for the losses of all steps, averaged over the ranks")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    losses = train(arguments)
    if arguments.losses and dist.get_rank() == 0:
        Path(arguments.losses).write_text(json.dumps(losses))
    dist.destroy_process_group()  # only after `train` has freed the model: see docs/pytorch.md, At the end


if __name__ == "__main__":
    main()
