"""One rank that repeatedly calls a collective of gloo's while gloo's threads release the tensors of an earlier one.

    ... python -m tests.torch.busy_gloo [WITHOUT]

WITHOUT: a collective whose method is removed from `GlooGroup`, to see that it hangs without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from serene.torch.gloo import GlooGroup

TIMES = 40


def around(values: Tensor) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        dist.send(values, 1)
        dist.recv(values, size - 1)
    else:
        dist.recv(values, rank - 1)
        dist.send(values, (rank + 1) % size)


def all_gather(values: Tensor) -> None:
    dist.all_gather([torch.zeros_like(values) for _ in range(dist.get_world_size())], values)


def all_to_all(values: Tensor) -> None:
    dist.all_to_all_single(torch.zeros_like(values), values)


def all_gather_single(values: Tensor) -> None:
    dist.all_gather_single(values.repeat(dist.get_world_size()), values)


def gather(values: Tensor) -> None:
    size = dist.get_world_size()
    dist.gather(values, [torch.zeros_like(values) for _ in range(size)] if dist.get_rank() == 0 else None)


def scatter(values: Tensor) -> None:
    size = dist.get_world_size()
    dist.scatter(values, [torch.zeros_like(values) for _ in range(size)] if dist.get_rank() == 0 else None)


def all_to_all_lists(values: Tensor) -> None:
    parts = [torch.zeros(4) for _ in range(2 * dist.get_world_size())]
    dist.all_to_all(parts[::2], parts[1::2])


def any_source(values: Tensor) -> None:
    if dist.get_rank() == 0:
        for _ in range(dist.get_world_size() - 1):
            dist.recv(values)
    else:
        dist.send(values, 0)


COLLECTIVES: list[Callable[[Tensor], object]] = [
    lambda values: dist.broadcast(values, 0), lambda values: dist.barrier(), all_gather, all_to_all, around,
    all_gather_single, gather, scatter, all_to_all_lists, any_source, lambda values: dist.reduce(values, 0),
]  # fmt: skip


def main() -> None:
    for name in sys.argv[1:]:
        delattr(GlooGroup, name)
    dist.init_process_group("serene")
    for collective in COLLECTIVES:
        for _ in range(TIMES):
            # gloo holds the last reference to these tensors, and its thread needs the GIL to release it.
            for _ in range(3):
                dist.all_reduce(torch.ones(4, dtype=torch.int64), dist.ReduceOp.MAX, async_op=True)
            collective(torch.zeros(16))
    dist.barrier()
    print("over", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
