"""Groups that are made and destroyed: ``python -m tests.torch.many_groups BACKEND GROUPS ...``, as each of two ranks.

For each number makes so many groups beside the default group, and destroys them. Prints the job of each group, the
default group's first, and whether all groups sum and those without a job refuse error feedback.
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


def main(backend: str, numbers: list[int]) -> None:
    dist.init_process_group(backend)
    for number in numbers:
        groups: list[Any] = [dist.group.WORLD, *(dist.new_group([0, 1]) for _ in range(number))]
        sums = []
        for group in groups:
            values = torch.full((3,), dist.get_rank() + 1.0)
            dist.all_reduce(values, group=group)
            sums.append(values.tolist() == [3.0] * 3)
        refused = all(takes_feedback(group) == (group.job is not None) for group in groups)
        print([group.job for group in groups], all(sums) and refused, flush=True)
        for group in groups[1:]:
            dist.destroy_process_group(group)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], [*map(int, sys.argv[2:])])
