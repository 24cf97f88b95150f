"""A group's messages: lines on stderr that name awaited and slow ranks, and an exchange of the ranks' calls."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from torch.distributed import Store  # type: ignore[attr-defined]

from serene.errors import SereneError

SLOW = "SERENE_SLOW"  # empty or 0: the slow rank is not named
LONG_WAIT_S = 10.0
TELLING_TIMEOUT_S = 5.0  # for the other ranks' calls
PRESENT_AFTER_S = 1.0  # of waiting, after which a rank reports to the others that it is present
ASK_EVERY_S = 5.0
PRESENT_EVERY_S = 0.02  # between two checks whether all ranks of a new group are present


def _print_notice(text: str) -> None:
    print(f"serene: {text}", file=sys.stderr, flush=True)


def await_ranks(
    store: Store, rank: int, size: int, timeout: timedelta, ranks: Sequence[int] = (), patience_s: float = LONG_WAIT_S
) -> None:
    """Waits until all ranks of a group are about to make it. After ``patience_s`` one of the waiting ranks names the
    missing ones, and this returns: the caller waits with the group's timeout. ranks: as of `SwitchGroup`."""
    names = ranks or range(size)
    store.set(f"here/{rank}", "")
    if timeout.total_seconds() <= patience_s:
        return
    until = time.monotonic() + patience_s
    with suppress(RuntimeError):  # the store's process has died, which the next step will detect
        while not store.check([f"here/{other}" for other in range(size)]):  # PyTorch warns of each wait() in vain
            if time.monotonic() < until:
                time.sleep(PRESENT_EVERY_S)
                continue
            here = [other for other in range(size) if other == rank or store.check([f"here/{other}"])]
            missing = [names[other] for other in range(size) if other not in here]
            if missing and rank == here[0]:
                _print_notice(
                    f"rank {names[rank]} has waited {patience_s:g} s for {_ranks(missing)} to open the process group; "
                    "'serenectl status' lists the jobs"
                )
            return


class LongWaits:
    """Names the ranks for which the others have waited for LONG_WAIT_S in a collective. The waiting ranks communicate
    by the store, in a separate thread: the program may use the store meanwhile."""

    def __init__(self, store: Store, rank: int, size: int, job: int, patience_s: float = LONG_WAIT_S) -> None:
        self._store, self._rank, self._size, self._job = store, rank, size, job
        self._patience_s = patience_s
        self._began: float | None = None
        self._over: threading.Event | None = None

    def waiting(self, number: int, call: str) -> None:
        """Call it repeatedly while a collective waits. number: of the collective in the group. call: as a text."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        elif self._over is None and now - self._began > min(PRESENT_AFTER_S, self._patience_s / 2):
            self._over = threading.Event()
            rest_s = self._patience_s - (now - self._began)
            threading.Thread(
                target=self._announce, args=(number, call, rest_s, self._over), name="serene-waits", daemon=True
            ).start()

    def over(self) -> None:
        """The collective has ended."""
        if self._over is not None:
            self._over.set()
        self._began = self._over = None

    def _announce(self, number: int, call: str, rest_s: float, over: threading.Event) -> None:
        with suppress(RuntimeError):  # the store's process has ended
            self._store.set(f"waits/{self._rank}", str(number))
            if over.wait(rest_s):
                return
            there = [rank for rank in range(self._size) if self._reached(rank) >= number]
            missing = [rank for rank in range(self._size) if rank not in there]
            if over.is_set() or self._rank != there[0]:
                return
            whom = f"for {_ranks(missing)}" if missing else "for the switch: all ranks are there"
            what = "explain" if missing else "status"
            option = f" --job {self._job}" if missing else ""
            _print_notice(
                f"rank {self._rank} has waited {self._patience_s:g} s {whom}, in {call}; see 'serenectl {what}{option}'"
            )

    def _reached(self, rank: int) -> int:
        """The last collective in which a rank has waited for long."""
        key = f"waits/{rank}"
        return int(self._store.get(key)) if self._store.check([key]) else 0


class SlowRank:
    """Rank 0's thread that asks the controller for the slow rank, and prints it once each time. ask: returns the
    controller's fields of a `serene.controller.status.model.SlowWorker`, if there is one. ranks: of the job's workers,
    by their numbers in the job."""

    def __init__(self, job: int, ask: Callable[[], Mapping[str, Any] | None], ranks: Sequence[int]) -> None:
        self._job, self._ask, self._ranks = job, ask, ranks
        self._over = threading.Event()
        if os.environ.get(SLOW, "1") not in ("", "0"):
            threading.Thread(target=self._run, name="serene-slow", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        notified: tuple[int, float] | None = None
        while not self._over.wait(ASK_EVERY_S):
            try:
                slow = self._ask()
            except SereneError:  # without the controller the sums continue, and so does this thread
                continue
            if slow is not None and notified != (slow["worker"], slow["since"]):
                notified = (slow["worker"], slow["since"])
                _print_notice(
                    f"rank {self._ranks[slow['worker']]} is slow: {slow['why']}. See 'serenectl explain "
                    f"--job {self._job}'; {SLOW}= turns this message off"
                )


def what_each_does(store: Store, rank: int, size: int, number: int, call: str) -> str:
    """A text: which ranks called which collective. All ranks detect a disagreement in the same collective, and exchange
    their calls here. number: of the collective; call: this rank's."""
    calls_by_rank = {other: "unknown" for other in range(size)} | {rank: call}
    keys = {other: f"calls/{number}/{other}" for other in calls_by_rank}
    with suppress(RuntimeError):  # the process that keeps the store may have ended with this very error
        store.set(keys[rank], call)
        until = time.monotonic() + TELLING_TIMEOUT_S
        while not store.check(list(keys.values())) and time.monotonic() < until:
            time.sleep(0.01)
        for other, key in keys.items():
            if store.check([key]):
                calls_by_rank[other] = store.get(key).decode()
    calls: dict[str, list[int]] = {}
    for other, what in calls_by_rank.items():
        calls.setdefault(what, []).append(other)
    return "; ".join(f"{_ranks(ranks)}: {what}" for what, ranks in calls.items())


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s'[: len(ranks) > 1]} {', '.join(map(str, ranks))}"
