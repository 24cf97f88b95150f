"""One rank that sums until something goes wrong, and prints the error that it gets.

    ... python -m tests.torch.failing OUT [timeout_s=300] [later_s=S] [uneven=RANK] [leaves=RANK] [raises=RANK]
        [breaks=RANK] [grows=RANK] [forks=RANK] [after=STEPS] [way=WAY]

WAY is how it sums: 0 by all_reduce; 1 by DistributedDataParallel's backward(), which does not wait at once. After a few
steps it makes OUT/began-RANK.

later_s: the timeout to which the group is set once it exists.

What the given rank does at step ``after``: uneven: sums another number of values; leaves: destroys its group; raises:
ends its program by an exception; breaks: has no memory left in its pool; grows: sums more than fits memory. again: one
more collective after an error. forks: the rank has a child process, like one of a DataLoader, which ends when OUT/over
exists.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from functools import cache
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.distributed_c10d import _set_pg_timeout  # from 2.15 on also `dist.set_timeout`

from serene.errors import SereneError


def all_reduce(values: torch.Tensor) -> None:
    dist.all_reduce(values)
    assert bool((values == dist.get_world_size()).all())


@cache
def model() -> nn.parallel.DistributedDataParallel:
    return nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(100, 50), nn.Linear(50, 3)), bucket_cap_mb=1e-3)


def backward(values: torch.Tensor) -> None:
    model()(values[:, :100]).sum().backward()


def without_memory(*_: object, **__: object) -> None:
    raise MemoryError("none left")


WAYS = [all_reduce, backward]


def main(out: Path, settings: dict[str, float]) -> None:
    rank = int(os.environ["RANK"])
    dist.init_process_group("serene", timeout=timedelta(seconds=settings.get("timeout_s", 300)))
    if "later_s" in settings:
        _set_pg_timeout(timedelta(seconds=settings["later_s"]))
    if settings.get("forks") == rank and os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        while not (out / "over").exists():
            time.sleep(0.1)
        os._exit(0)
    step, add_up = 0, WAYS[int(settings.get("way", 0))]
    try:
        while True:
            at_the_step = step == settings.get("after", 20)
            if at_the_step and settings.get("leaves") == rank:
                dist.destroy_process_group()
                break
            if at_the_step and settings.get("raises") == rank:
                raise ValueError("a mistake in the program")
            if at_the_step and settings.get("breaks") == rank:
                dist.group.WORLD._pool.all_reduce = without_memory  # type: ignore[union-attr]
            if at_the_step and settings.get("grows") == rank:
                dist.all_reduce(torch.ones(1).expand(1 << 50), async_op=True)  # and nobody waits for it
            uneven = at_the_step and settings.get("uneven") == rank
            add_up(torch.ones((7, 100 + uneven)))
            step += 1
            if step == 5:
                (out / f"began-{rank}").touch()
            time.sleep(0.01)
    except (RuntimeError, SereneError) as error:
        print(f"rank {rank}: {type(error).__name__}: {error}", flush=True)
        if settings.get("again"):
            dist.all_reduce(torch.ones(3))
            print("again", flush=True)
    if model.cache_info().currsize:
        os._exit(0)  # with DistributedDataParallel PyTorch may abort at the end (pytorch/pytorch#179291)


if __name__ == "__main__":
    given = (argument.partition("=") for argument in sys.argv[2:])
    main(Path(sys.argv[1]), {name: float(value) for name, _, value in given})
