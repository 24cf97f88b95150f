"""One rank of a training under the scale in $SERENE_SCALE; prints its results as JSON. Arguments: "feedback" or
"rounding", and anything more if the precision is to change at the steps in CHANGES.

For comparison the exact gradients of each step are summed over all ranks as fractions.
"""

from __future__ import annotations

import json
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from serene.controller.http.client import ControllerClient
from serene.torch import ErrorFeedback, SwitchGroup, mean_with_residual
from tests.torch.error_feedback import exact, gradients

STEPS = 21
CHANGES = {5: 8, 13: 32}


def everybodys(own: Tensor, plain: dist.ProcessGroup) -> list[Tensor]:
    each = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(each, own, group=plain)
    return each


def main() -> None:
    feedback = ErrorFeedback if sys.argv[1] == "feedback" else None
    changes = CHANGES if len(sys.argv) > 2 else {}
    dist.init_process_group("serene")
    plain = dist.new_group(backend="gloo")
    assert plain is not None
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
    model = DistributedDataParallel(layers, bucket_cap_mb=0.002)
    kept = feedback() if feedback is not None else None
    if kept is not None:
        model.register_comm_hook(kept, mean_with_residual)
    group = dist.group.WORLD
    assert isinstance(group, SwitchGroup) and group._pool is not None and group.job is not None
    generator = torch.Generator().manual_seed(dist.get_rank())
    given, read, bits, errors, said = [], [], [], [], []
    for step in range(STEPS):
        if step in changes and dist.get_rank() == 0:
            with ControllerClient(os.environ["SERENE_CONTROLLER"]) as client:
                client.set_precision(group.job, changes[step])
        inputs = torch.randn(32, 16, generator=generator)
        with model.no_sync():
            nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
        given += everybodys(torch.cat(gradients(layers)), plain)
        model.zero_grad()
        bits.append(group._pool.precision)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call] # the user's line
        said += [[warning.filename, warning.lineno, str(warning.message)] for warning in caught]
        read.append(torch.cat(gradients(layers)) * dist.get_world_size())
        errors.append(float((read[-1] - sum(given[-dist.get_world_size() :])).abs().max()))
        model.zero_grad()
    accounts = list(read)
    if kept is not None:
        for of in (kept.residual, kept.lost):
            accounts += everybodys(torch.cat([of(parameter).reshape(-1) for parameter in layers.parameters()]), plain)
    apart = [one - other for one, other in zip(exact(given), exact(accounts), strict=True)]
    pool = group._pool
    result = {
        "apart": float(max(map(abs, apart))),
        "largest": max(float(vector.abs().max()) for vector in given),
        "errors": errors,
        "bits": bits,
        "gradients": [vector.sum().item() for vector in read],
        "warnings": said,
        "clipped": pool.clipped_values,
        "lost": pool.lost_values,
        "sent": pool.telemetry()["contributions_sent"],
        "job": group.job,
    }
    dist.destroy_process_group()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
