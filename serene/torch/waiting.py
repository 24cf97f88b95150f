"""How long a rank waits for the others, and whom it has waited for in vain: they tell each other by PyTorch's store."""

from __future__ import annotations

import logging
import math
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store
from torch.distributed import distributed_c10d
from typing_extensions import Self

from serene.client.parts import Waiting

LOG = logging.getLogger("serene.torch")
TELLING_TIMEOUT_S = 5.0  # for ranks that began to wait after half of this one's patience


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


class RanksWaiting(Waiting):
    """One rank's, which tells the others about the same ``what``. A rank that has waited for half of its patience says
    so: ranks begin to wait one after the other, and whoever comes to the end first has to know of all that do."""

    def __init__(self, what: str, rank: int, ranks: int, store: Store) -> None:
        self._store = store
        self._keys = {other: f"{what}/{other}" for other in range(ranks)}
        self._own = self._keys[rank]

    @classmethod
    def of_all(cls, what: str) -> Self:
        """Of the default process group's ranks."""
        return cls(what, dist.get_rank(), dist.get_world_size(), distributed_c10d._get_default_store())

    def begin(self) -> None:
        try:
            self._store.set(self._own, "waits")
        except RuntimeError as error:
            LOG.warning("cannot tell the other ranks that this one waits: %s", error)

    def end(self) -> None:
        try:
            self._store.delete_key(self._own)
        except RuntimeError as error:
            LOG.warning("cannot tell the other ranks that this one does not wait any more: %s", error)

    def absent(self) -> str:
        """Which ranks do not wait as well."""
        keys = self._keys
        try:
            until = time.monotonic() + TELLING_TIMEOUT_S
            while not self._store.check(list(keys.values())) and time.monotonic() < until:
                time.sleep(0.05)
            missing = [str(other) for other, key in keys.items() if not self._store.check([key])]
        except RuntimeError as error:  # whoever keeps the store has died
            return f"other ranks; which, nobody can tell: {error}"
        if not missing:
            return "other workers, though all ranks wait"
        names = ", ".join(missing)
        return f"rank {names}" if len(missing) == 1 else f"ranks {names}"
