"""How long a rank waits for the others, and for whom it has waited in vain: ranks tell each other by PyTorch's
store."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store
from torch.distributed import distributed_c10d
from typing_extensions import Self

from serene.client.parts import Waiting
from serene.torch.store import Questions, of_this_attempt

LOG = logging.getLogger("serene.torch")
LOOK_S = 0.5  # between looks at whether another rank's patience is over
TELLING_TIMEOUT_S = 5.0  # for ranks that began to wait a little later to say so
NOTING_TIMEOUT_S = 5.0  # for all ranks that wait to note who is missing


def group_timeout_s() -> float:
    """The default process group's timeout in seconds; infinite without a group."""
    if not (dist.is_available() and dist.is_initialized()):
        return math.inf
    group = dist.group.WORLD
    try:
        timeout = group._get_backend(torch.device("cpu")).options._timeout  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):  # a group that is not for the CPU, or a backend of another kind
        timeout = distributed_c10d.default_pg_timeout
    return float(timeout.total_seconds())


def _poll(condition: Callable[[], bool], timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)


class RanksWaiting(Waiting):
    """One rank's waiting, and what it tells the other ranks about it. what: names what they all wait for, as part of
    the store's keys.

    A rank that has waited for half of its patience says so in the store: ranks begin to wait one after the other, and
    the first whose patience is over has to know of all that wait. Its process may keep the store, and the error may end
    it: before that, each other rank that waits notes which ranks do not.
    """

    def __init__(self, what: str, rank: int, ranks: int, store: Store) -> None:
        self._store = store
        self._questions = Questions()
        self._waits = {other: f"{what}/waits/{other}" for other in range(ranks)}
        self._notes = {other: f"{what}/notes/{other}" for other in range(ranks)}
        self._over = f"{what}/over"  # there once a rank's patience is over
        self._rank = rank
        self._missing: list[int] | None = None  # the ranks that did not wait then
        self._look_at = 0.0  # when to look again, on the monotonic clock

    @classmethod
    def of_all(cls, what: str) -> Self:
        """For the ranks of the default process group. Every rank calls this with the same ``what``."""
        store = of_this_attempt(distributed_c10d._get_default_store())
        return cls(what, dist.get_rank(), dist.get_world_size(), store)

    def begin(self) -> None:
        self._questions.ask(self._begin)

    def go_on(self) -> None:
        if self._missing is None and time.monotonic() >= self._look_at and self._questions.all_answered:
            self._look_at = time.monotonic() + LOOK_S
            self._questions.ask(self._look)

    def end(self) -> None:
        self._missing = None
        self._questions.ask(self._end)

    def absent(self) -> str:
        """The ranks that do not wait, in words."""
        ask = self._questions.answer
        try:
            keys = list(self._waits.values())
            _poll(lambda: ask(lambda: self._store.check([self._over]) or self._store.check(keys)), TELLING_TIMEOUT_S)
            missing = ask(self._note)
            ask(lambda: self._store.set(self._over, "over"))
            others = [key for rank, key in self._notes.items() if rank not in missing]
            _poll(lambda: ask(lambda: self._store.check(others)), NOTING_TIMEOUT_S)
        except RuntimeError as error:  # the process that keeps the store has ended, or does not answer
            if self._missing is None:
                return f"other ranks; which, nobody can tell: {error}"
            missing = self._missing
        if not missing:
            return "other workers, though all ranks wait"
        names = ", ".join(map(str, missing))
        return f"rank {names}" if len(missing) == 1 else f"ranks {names}"

    # -- in the thread that asks the store -------------------------------------------------------------------

    def _begin(self) -> None:
        try:
            self._store.set(self._waits[self._rank], "waits")
        except RuntimeError as error:
            LOG.warning("cannot tell the other ranks that this one waits: %s", error)

    def _look(self) -> None:
        try:
            if self._store.check([self._over]):
                self._note()
        except RuntimeError:  # `absent` says so
            self._look_at = math.inf

    def _end(self) -> None:
        self._missing, self._look_at = None, 0.0
        try:
            for key in (self._waits[self._rank], self._notes[self._rank]):
                self._store.delete_key(key)
        except RuntimeError as error:
            LOG.warning("cannot tell the other ranks that this one does not wait any more: %s", error)

    def _note(self) -> list[int]:
        """The ranks that do not wait; says in the store that this rank has noted them."""
        self._missing = [other for other, key in self._waits.items() if not self._store.check([key])]
        self._store.set(self._notes[self._rank], "notes")
        return self._missing
