"""One rank of a training with few bits and error feedback; prints its results as JSON.

For comparison the exact gradients of each step are summed over all ranks as fractions. The sum of what was read and
what the ranks hold back has to be the same, to the bit. DistributedDataParallel makes its buckets anew after the first
step.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from serene.torch import ErrorFeedback, SwitchGroup, mean_with_residual

STEPS = 6


def gradients(layers: nn.Module) -> list[Tensor]:
    return [part.grad.reshape(-1).double() for part in layers.parameters() if part.grad is not None]


def exact(vectors: list[Tensor]) -> list[Fraction]:
    return [
        sum((Fraction(value) for value in column), Fraction())
        for column in zip(*(v.tolist() for v in vectors), strict=True)
    ]


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


def main() -> None:
    dist.init_process_group("serene")
    plain = dist.new_group(backend="gloo")
    ranks = dist.get_world_size()
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 16))
    model = DistributedDataParallel(layers, bucket_cap_mb=0.002)
    feedback = ErrorFeedback()
    model.register_comm_hook(feedback, mean_with_residual)
    generator = torch.Generator().manual_seed(dist.get_rank())
    given, read = [], []
    for _ in range(STEPS):
        inputs = torch.randn(32, 16, generator=generator)
        with model.no_sync():
            nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
        own = torch.cat(gradients(layers))
        each = [torch.zeros_like(own) for _ in range(ranks)]
        dist.all_gather(each, own, group=plain)
        given += each
        model.zero_grad()
        nn.functional.mse_loss(model(inputs), inputs).backward()  # type: ignore[no-untyped-call]
        read.append(torch.cat(gradients(layers)) * ranks)
        model.zero_grad()
    held = torch.cat([feedback.residual(parameter).reshape(-1) for parameter in layers.parameters()])
    all_held = [torch.zeros_like(held) for _ in range(ranks)]
    dist.all_gather(all_held, held, group=plain)
    apart = [one - other for one, other in zip(exact(given), exact([*read, *all_held]), strict=True)]
    group = dist.group.WORLD
    assert isinstance(group, SwitchGroup) and group._pool is not None
    result = {
        "apart": float(max(map(abs, apart))),
        "held": float(held.abs().max()),
        "precision": group._pool.precision,
        "kept": [is_kept(of, next(layers.parameters())) for of in (feedback.residual, feedback.lost)],
        "sparse": sparse_gradient(dist.get_rank()),
        "buckets": len(feedback._held._by_bucket),
    }
    dist.destroy_process_group()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
