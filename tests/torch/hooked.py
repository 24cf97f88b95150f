"""Compares DistributedDataParallel with the hook over racks and DistributedDataParallel with gloo on the same batches.

    ... python -m tests.torch.hooked RACKS

Job 0 has the ranks divided evenly among the racks. Every rank's last line is ``the same``.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

from serene.racks import Racks
from serene.torch import SwitchReducer, reduce_bucket
from tests.torch.ddp_worker import batch, network

STEPS = 8


def main(racks: int) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    _, worker = Racks.even(dist.get_world_size(), racks).place(rank)
    modules = [network(), network()]
    models = [nn.parallel.DistributedDataParallel(module, bucket_cap_mb=0.004) for module in modules]
    optimisers = [torch.optim.SGD(module.parameters(), lr=0.1) for module in modules]
    with SwitchReducer(modules[0], worker=worker) as reducer:
        models[0].register_comm_hook(reducer, reduce_bucket)
        for step in range(STEPS):
            for model, optimiser in zip(models, optimisers, strict=True):
                inputs, labels = batch(rank, step)
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        assert reducer.client.membership.racks == racks
        dist.barrier()
    for one, other in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-4)
    print("the same", flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads may collide with the interpreter's end, as in tests.torch.ddp_worker


if __name__ == "__main__":
    main(int(sys.argv[1]))
