"""How long a rank waits for the others, and whom it has waited for in vain: they tell each other by PyTorch's store."""

from __future__ import annotations

import math
import time

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

TELLING_TIMEOUT_S = 5.0  # for the ranks that wait as well to say so


def group_timeout_s() -> float:
    """The default process group's timeout; without a group there is none."""
    if not (dist.is_available() and dist.is_initialized()):
        return math.inf
    group = dist.group.WORLD
    try:
        timeout = group._get_backend(torch.device("cpu")).options._timeout  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):  # a group that is not for the CPU, or a backend of another kind
        timeout = distributed_c10d.default_pg_timeout
    return float(timeout.total_seconds())


def absent(what: str, rank: int, ranks: int) -> str:
    """Which ranks do not wait as well: each whose patience has ended asks, about the same ``what``, and so tells the
    others."""
    try:
        store = distributed_c10d._get_default_store()
        keys = {other: f"{what}/{other}" for other in range(ranks)}
        store.set(keys[rank], "waits")
        until = time.monotonic() + TELLING_TIMEOUT_S
        while not store.check(list(keys.values())) and time.monotonic() < until:
            time.sleep(0.05)
        missing = [str(other) for other, key in keys.items() if not store.check([key])]
    except RuntimeError as error:  # whoever keeps the store has died
        return f"other ranks; which, nobody can tell: {error}"
    if not missing:
        return "other workers, though all ranks wait"
    names = ", ".join(missing)
    return f"rank {names}" if len(missing) == 1 else f"ranks {names}"
