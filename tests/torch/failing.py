"""One rank that sums for ever, until something happens; says what it was told.

    ... python -m tests.torch.failing OUT [timeout_s=300] [uneven=RANK] [leaves=RANK] [raises=RANK]
        [forks=RANK] [after=STEPS]

Makes OUT/began-RANK after some collectives. What happens at step ``after``: uneven: this rank sums another number of
values; leaves: it destroys its group; raises: its program ends by an exception. again: after an error there is one
collective more. forks: this rank has a child, as a DataLoader's, which stays until OUT/over is there.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def main(out: Path, settings: dict[str, float]) -> None:
    rank = int(os.environ["RANK"])
    dist.init_process_group("serene", timeout=timedelta(seconds=settings.get("timeout_s", 300)))
    if settings.get("forks") == rank and os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        while not (out / "over").exists():
            time.sleep(0.1)
        os._exit(0)
    step = 0
    try:
        while True:
            at_the_step = step == settings.get("after", 20)
            if at_the_step and settings.get("leaves") == rank:
                dist.destroy_process_group()
                break
            if at_the_step and settings.get("raises") == rank:
                raise ValueError("a mistake in the program")
            uneven = at_the_step and settings.get("uneven") == rank
            values = torch.ones((7, 100 + uneven))
            dist.all_reduce(values)
            assert bool((values == dist.get_world_size()).all())
            step += 1
            if step == 5:
                (out / f"began-{rank}").touch()
            time.sleep(0.01)
    except RuntimeError as error:
        print(f"rank {rank}: {error}", flush=True)
        if settings.get("again"):
            dist.all_reduce(torch.ones(3))
            print("again", flush=True)


if __name__ == "__main__":
    given = (argument.partition("=") for argument in sys.argv[2:])
    main(Path(sys.argv[1]), {name: float(value) for name, _, value in given})
