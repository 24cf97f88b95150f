"""One rank of a training whose gradients may be sent in fewer bits; prints its results as JSON.

Each step's gradients are compared with the mean over all ranks, which gloo computes in float64. Errors are relative to
the largest value that a rank contributes to a mean.
"""

from __future__ import annotations

import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from serene.torch import SwitchGroup

STEPS = 8


def train() -> dict[str, object]:
    plain = dist.new_group(backend="gloo")
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
    model = DistributedDataParallel(layers)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    errors, losses, exact_losses = [], [], []
    for _ in range(STEPS):
        inputs = torch.randn(32, 64, generator=generator)
        optimiser.zero_grad()
        with model.no_sync():
            nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
        mean = torch.cat([part.grad.reshape(-1).double() for part in layers.parameters() if part.grad is not None])
        mean /= dist.get_world_size()
        largest = mean.abs().max()
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=plain)
        dist.all_reduce(mean, group=plain)
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), inputs)
        loss.backward()  # type: ignore[no-untyped-call]
        found = torch.cat([part.grad.reshape(-1).double() for part in layers.parameters() if part.grad is not None])
        errors.append(float((found - mean).abs().max() / largest))
        optimiser.step()
        loss, exact = loss.detach(), loss.detach().double()
        dist.all_reduce(loss)
        dist.all_reduce(exact, group=plain)
        losses.append(float(loss))
        exact_losses.append(float(exact))
    group = dist.group.WORLD
    assert isinstance(group, SwitchGroup) and group._pool is not None
    found_by_rank = [torch.zeros_like(found) for _ in range(dist.get_world_size())]
    dist.all_gather(found_by_rank, found)
    same = all(torch.equal(other, found) for other in found_by_rank)
    packets = group._pool.counts.sent
    joined = 0
    with model.join():
        for _ in range(2 + dist.get_rank()):
            optimiser.zero_grad()
            inputs = 100.0**joined * torch.randn(32, 64, generator=generator)
            nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
            joined += 1
    repeated = group.summed - group._pool.collectives
    for _ in range(2):
        optimiser.zero_grad()
        inputs = torch.randn(32, 64, generator=generator)
        nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
    repeated += group._pool.collectives - group.summed
    return {
        "joined": joined,
        "repeated": repeated,
        "errors": errors,
        "losses": losses,
        "exact": exact_losses,
        "packets": packets,
        "same": same,
    }


def main() -> None:
    dist.init_process_group("serene")
    result = train()
    dist.destroy_process_group()  # when `train` has let go of the model: see docs/pytorch.md, At the end
    print(json.dumps(result))


if __name__ == "__main__":
    main()
