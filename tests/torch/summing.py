"""Checks sums by all-reduce and reduce-scatter, also in groups of some of the ranks.

    ... python -m tests.torch.summing

Every rank's last line is ``right``; the last line but one says which groups go through the switch.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

VALUES = 50_000


def given(rank: int, values: int = VALUES) -> torch.Tensor:
    """A rank's values: whole numbers, whose sums are exact in any order."""
    return torch.arange(values, dtype=torch.float32) % 997 * (rank + 1)


def main() -> None:
    dist.init_process_group("serene")
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [list(range(size)), [0, size - 1], list(range(size // 2, size))]
    through = []
    for ranks in groups:
        group = dist.new_group(ranks)
        if rank in ranks:
            values = given(rank)
            dist.all_reduce(values, group=group)
            assert torch.equal(values, given(0) * sum(other + 1 for other in ranks)), f"{ranks}: a wrong sum"
            through.append(f"{ranks}: job {group.job}")
            dist.barrier(group=group)
    part = torch.empty(VALUES // size)
    dist.reduce_scatter_tensor(part, given(rank))
    whole = given(0) * sum(range(1, size + 1))
    assert torch.equal(part, whole[rank * len(part) : (rank + 1) * len(part)]), "a wrong part"
    print("; ".join(through))
    print("right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
