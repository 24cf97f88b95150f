"""What PyTorch's profiler shows of a sum, and what its debug level says of calls that do not fit together.

    TORCH_DISTRIBUTED_DEBUG=DETAIL ... python -m tests.torch.watched

Prints the profiler's events of the process group, and the error of a broadcast of tensors of different shapes.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import set_debug_level_from_env


def main() -> None:
    set_debug_level_from_env()  # tests start processes that have imported PyTorch before they get this environment
    dist.init_process_group("serene")
    with torch.autograd.profiler.profile() as profile:
        dist.all_reduce(torch.ones(9))
        dist.reduce_scatter_single(torch.ones(4), torch.ones(4 * dist.get_world_size()))
    print(*(event.name for event in profile.function_events if event.name.startswith("serene")), flush=True)
    try:
        dist.broadcast(torch.ones(4 + dist.get_rank()), 0)
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
