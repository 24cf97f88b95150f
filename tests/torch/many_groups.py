"""More groups than the switch has jobs: ``python -m tests.torch.many_groups BACKEND``, as each of two ranks.

Prints the job of each group, and whether all groups sum and those without a job refuse error feedback.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist

from serene.errors import SereneError
from serene.torch import ErrorFeedback


def takes_feedback(group: dist.ProcessGroup) -> bool:
    try:
        ErrorFeedback(group)
    except SereneError:
        return False
    return True


def main(backend: str) -> None:
    dist.init_process_group(backend)
    groups: list[Any] = [dist.group.WORLD, *(dist.new_group([0, 1]) for _ in range(9))]
    sums = []
    for group in groups:
        values = torch.full((3,), dist.get_rank() + 1.0)
        dist.all_reduce(values, group=group)
        sums.append(values.tolist() == [3.0] * 3)
    refused = all(takes_feedback(group) == (group.job is not None) for group in groups)
    print([group.job for group in groups], all(sums) and refused, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
