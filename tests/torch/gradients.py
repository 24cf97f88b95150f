"""One rank of a training whose gradients go in few bits, or under another scale; prints what it found as JSON.

    SERENE_SCALE=... SERENE_PRECISION=... python -m tests.torch.gradients [feedback] [STEP=BITS ...]

feedback: with error feedback. STEP=BITS: rank 0 sets the precision at this step, as a user would by `serenectl
precision`. Each step's gradients are compared with the sum of what each rank computed alone: in float64 by gloo, and at
the end, with the residuals, as fractions.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from serene.controller.http.client import ControllerClient
from serene.torch import ErrorFeedback, SwitchGroup, mean_with_residual

STEPS = 21


def inputs_of(generator: torch.Generator) -> Tensor:
    return torch.randn(32, 16, generator=generator)


def backward(model: nn.Module, inputs: Tensor) -> None:
    nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call] # the user's line


def taken(layers: nn.Module) -> Tensor:
    """The gradients, float64, which are zero from then on."""
    found = torch.cat([part.grad.reshape(-1).double() for part in layers.parameters() if part.grad is not None])
    layers.zero_grad()
    return found


def exact(vectors: list[Tensor]) -> list[Fraction]:
    columns = zip(*(vector.tolist() for vector in vectors), strict=True)
    return [sum(map(Fraction, column), Fraction()) for column in columns]


def everybodys(own: Tensor, plain: dist.ProcessGroup) -> list[Tensor]:
    each = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(each, own, group=plain)
    return each


def is_kept(of: Callable[[Tensor], Tensor], parameter: Tensor) -> bool:
    """Whether there is memory for it, and not only zeros that are made when somebody asks."""
    one, other = of(parameter), of(parameter)
    return one.data_ptr() == other.data_ptr()


def sparse_gradient(rank: int) -> list[float]:
    """The mean over the ranks of a sparse gradient, which goes through gloo, in a model with error feedback."""
    model = DistributedDataParallel(nn.Embedding(6, 1, sparse=True))
    model.register_comm_hook(ErrorFeedback(), mean_with_residual)
    model(torch.tensor([rank, 5])).sum().backward()
    gradient = model.module.weight.grad
    assert gradient is not None and gradient.is_sparse
    return [float(value) for value in gradient.to_dense().reshape(-1)]


def joined(model: DistributedDataParallel, group: SwitchGroup, generator: torch.Generator) -> dict[str, object]:
    """Ranks end at different steps, and join the others' collectives. steps: this rank's. repeated: how many
    collectives were played twice, in these steps and the two after them, since ranks had different scales."""
    pool, steps = group._pool, 0
    assert pool is not None
    with model.join():
        for _ in range(2 + dist.get_rank()):
            backward(model, 100.0**steps * inputs_of(generator))
            steps += 1
    repeated = group.summed - pool.collectives
    for _ in range(2):
        backward(model, inputs_of(generator))
    return {"steps": steps, "repeated": repeated + pool.collectives - group.summed}


def main() -> None:
    with_feedback = "feedback" in sys.argv
    changes = {int(step): int(bits) for step, bits in (each.split("=") for each in sys.argv[1:] if "=" in each)}
    dist.init_process_group("serene")
    plain, rank, ranks = dist.new_group(backend="gloo"), dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(16, 192), nn.ReLU(), nn.Linear(192, 16))
    parameters = list(layers.parameters())
    model = DistributedDataParallel(layers, bucket_cap_mb=0.002)  # several buckets, made anew after the first step
    feedback = ErrorFeedback() if with_feedback else None
    if feedback is not None:
        model.register_comm_hook(feedback, mean_with_residual)
    group = dist.group.WORLD
    assert plain is not None and isinstance(group, SwitchGroup) and group._pool is not None and group.job is not None
    pool, generator = group._pool, torch.Generator().manual_seed(rank)
    given: list[Tensor] = []
    read: list[Tensor] = []
    steps, warned = [], []
    for number in range(STEPS):
        if number in changes and rank == 0:
            with ControllerClient(os.environ["SERENE_CONTROLLER"]) as client:
                client.set_precision(group.job, changes[number])
        inputs = inputs_of(generator)
        with model.no_sync():
            backward(model, inputs)
        own = everybodys(taken(layers), plain)
        bits, sent = pool.precision, pool.telemetry()["contributions_sent"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            backward(model, inputs)
        warned += [[warning.filename, warning.lineno, str(warning.message)] for warning in caught]
        given, read = [*given, *own], [*read, taken(layers) * ranks]
        loss = torch.tensor(float(rank + 1) / 3)  # other sums keep all their bits
        dist.all_reduce(loss)
        steps.append(
            {
                "bits": bits,
                "contributions": pool.telemetry()["contributions_sent"] - sent,
                "error": float((read[-1] - sum(own)).abs().max()),
                "largest": max(float(vector.abs().max()) for vector in own),
                "other": float(loss) - sum(range(ranks + 1)) / 3,
                "digest": hashlib.sha256(read[-1].numpy().tobytes()).hexdigest(),
            }
        )
    accounts = list(read)
    for of in (feedback.residual, feedback.lost) if feedback is not None else ():
        accounts += everybodys(torch.cat([of(parameter).reshape(-1) for parameter in parameters]), plain)
    result = {
        "apart": float(max(abs(one - other) for one, other in zip(exact(given), exact(accounts), strict=True))),
        "steps": steps,
        "warnings": warned,
        "clipped": pool.clipped_values,
        "lost": pool.lost_values,
        "sent": pool.telemetry()["contributions_sent"],
        "job": group.job,
    }
    if feedback is None:
        result["joined"] = joined(model, group, generator)
    else:
        result["kept"] = [is_kept(of, parameters[0]) for of in (feedback.residual, feedback.lost)]
        result["held"] = max(float(feedback.residual(parameter).abs().max()) for parameter in parameters)
        result["buckets"] = len(feedback._held._by_bucket)
        result["sparse"] = sparse_gradient(rank)
    del model  # see docs/pytorch.md, At the end
    dist.destroy_process_group()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
