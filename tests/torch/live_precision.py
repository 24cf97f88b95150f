"""One rank of a training in the middle of which the precision changes; prints its results as JSON.

Rank 0 changes the precision from the training loop, as a user would by `serenectl precision`. Each gradient is
compared with the mean over all ranks, which gloo computes in float64.
"""

from __future__ import annotations

import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from serene.controller.http.client import ControllerClient
from serene.torch import SwitchGroup

STEPS = 24
CHANGES = {6: 8, 14: 32}


def main() -> None:
    dist.init_process_group("serene")
    plain = dist.new_group(backend="gloo")
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
    model = DistributedDataParallel(layers)
    generator = torch.Generator().manual_seed(dist.get_rank())
    group = dist.group.WORLD
    assert isinstance(group, SwitchGroup) and group._pool is not None and group.job is not None
    steps = []
    for step in range(STEPS):
        if step in CHANGES and dist.get_rank() == 0:
            with ControllerClient(os.environ["SERENE_CONTROLLER"]) as client:
                client.set_precision(group.job, CHANGES[step])
        inputs = torch.randn(32, 64, generator=generator)
        with model.no_sync():
            nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
        mean = torch.cat([part.grad.reshape(-1).double() for part in layers.parameters() if part.grad is not None])
        mean /= dist.get_world_size()
        largest = mean.abs().max()
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=plain)
        dist.all_reduce(mean, group=plain)
        model.zero_grad()
        sent, bits = group._pool.telemetry()["contributions_sent"], group._pool.precision
        nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
        found = torch.cat([part.grad.reshape(-1).double() for part in layers.parameters() if part.grad is not None])
        steps.append(
            {
                "bits": bits,
                "error": float((found - mean).abs().max() / largest),
                "contributions": group._pool.telemetry()["contributions_sent"] - sent,
                "gradient": found.double().sum().item(),
            }
        )
        model.zero_grad()
    result = {"steps": steps, "sent": group._pool.telemetry()["contributions_sent"], "job": group.job}
    dist.destroy_process_group()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
