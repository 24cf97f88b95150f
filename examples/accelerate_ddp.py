"""Hugging Face Accelerate. The process group is made before the Accelerator, which then uses it.

torchrun --nproc-per-node 4 examples/accelerate_ddp.py
"""

import argparse
import json

import torch
import torch.distributed as dist
from accelerate import Accelerator
from ddp import dataset, network
from torch import nn
from torch.utils.data import DataLoader


def train(optimiser_name: str, steps: int) -> list[float]:
    """The losses of all steps, averaged over the ranks."""
    accelerator = Accelerator(cpu=True)
    model = network()
    if optimiser_name == "sgd":
        optimiser: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=0.002)
    loader = DataLoader(dataset(), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(2))
    model, optimiser, loader = accelerator.prepare(model, optimiser, loader)
    losses: list[float] = []
    while len(losses) < steps:
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimiser.step()
            losses.append(accelerator.reduce(loss.detach(), "mean").item())
            if accelerator.is_main_process and len(losses) % 50 == 0:
                print(f"step {len(losses)}: loss {losses[-1]:.4f}", flush=True)
            if len(losses) == steps:
                break
    return losses


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="serene")
    parser.add_argument("--optimiser", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--losses", help="a file for the losses of all steps, averaged over the ranks")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)  # Accelerate itself would take gloo for tensors on the CPU
    losses = train(arguments.optimiser, arguments.steps)
    if arguments.losses and dist.get_rank() == 0:
        with open(arguments.losses, "w") as file:
            json.dump(losses, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
