"""An ordinary program with DistributedDataParallel. Only the backend's name selects Serene.

torchrun --nproc-per-node 4 examples/ddp.py
torchrun --nproc-per-node 4 examples/ddp.py --backend gloo --optimiser adam
"""

import argparse
import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def dataset() -> TensorDataset:
    """4,096 points, float32[64] each, of four classes: a class is ten clouds of points around random centres."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4096) % 4
    centres = torch.randn(4, 10, 64, generator=generator)
    which = torch.randint(0, 10, (len(labels),), generator=generator)
    return TensorDataset(centres[labels, which] + torch.randn(len(labels), 64, generator=generator), labels)


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 4))


def train(optimiser_name: str, steps: int) -> list[float]:
    """The losses of all steps, averaged over the ranks."""
    model = DistributedDataParallel(network())
    if optimiser_name == "sgd":
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=0.002)
    data = dataset()
    sampler = DistributedSampler(data, seed=2)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    losses: list[float] = []
    epoch = 0
    while len(losses) < steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimiser.step()
            mean = loss.detach()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            losses.append(mean.item())
            if dist.get_rank() == 0 and len(losses) % 50 == 0:
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

    dist.init_process_group(arguments.backend)
    losses = train(arguments.optimiser, arguments.steps)
    if arguments.losses and dist.get_rank() == 0:
        with open(arguments.losses, "w") as file:
            json.dump(losses, file)
    dist.destroy_process_group()  # only after `train` has freed the model: see docs/pytorch.md, At the end


if __name__ == "__main__":
    main()
