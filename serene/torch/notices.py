"""What a group's ranks tell: on stderr for whom they wait and which rank is slow, and each other what they called."""

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
TELLING_TIMEOUT_S = 5.0  # for the other ranks to say which collective they called
PRESENT_AFTER_S = 1.0  # of waiting, a rank tells the others that it is there
ASK_EVERY_S = 5.0
PRESENT_EVERY_S = 0.02  # a rank that makes a group asks whether all are there


def _say(text: str) -> None:
    print(f"serene: {text}", file=sys.stderr, flush=True)


def await_ranks(
    store: Store, rank: int, size: int, timeout: timedelta, ranks: Sequence[int] = (), patience_s: float = LONG_WAIT_S
) -> None:
    """Waits until all ranks of a group are about to make it. After ``patience_s`` one of those that wait names those
    that are missing, and this returns: to wait with the group's timeout is for the caller. ranks: as of
    `SwitchGroup`."""
    names = ranks or range(size)
    store.set(f"here/{rank}", "")
    if timeout.total_seconds() <= patience_s:
        return
    until = time.monotonic() + patience_s
    with suppress(RuntimeError):  # whoever keeps the store has died, which the next step will notice
        while not store.check([f"here/{other}" for other in range(size)]):  # PyTorch warns of each wait() in vain
            if time.monotonic() < until:
                time.sleep(PRESENT_EVERY_S)
                continue
            here = [other for other in range(size) if other == rank or store.check([f"here/{other}"])]
            missing = [names[other] for other in range(size) if other not in here]
            if missing and rank == here[0]:
                _say(
                    f"rank {names[rank]} has waited {patience_s:g} s for {_ranks(missing)} to open the process group; "
                    "'serenectl status' lists the jobs"
                )
            return


class LongWaits:
    """Names the ranks that keep the others waiting for LONG_WAIT_S in a collective. The ranks that wait tell each other
    by the store, in a thread of its own: the program may be using the store meanwhile."""

    def __init__(self, store: Store, rank: int, size: int, job: int, patience_s: float = LONG_WAIT_S) -> None:
        self._store, self._rank, self._size, self._job = store, rank, size, job
        self._patience_s = patience_s
        self._began: float | None = None
        self._over: threading.Event | None = None

    def waiting(self, number: int, call: str) -> None:
        """To be called again and again while a collective waits. number: of the collective in the group. call: in
        words."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        elif self._over is None and now - self._began > min(PRESENT_AFTER_S, self._patience_s / 2):
            self._over = threading.Event()
            rest_s = self._patience_s - (now - self._began)
            threading.Thread(
                target=self._tell, args=(number, call, rest_s, self._over), name="serene-waits", daemon=True
            ).start()

    def over(self) -> None:
        """The collective has ended."""
        if self._over is not None:
            self._over.set()
        self._began = self._over = None

    def _tell(self, number: int, call: str, rest_s: float, over: threading.Event) -> None:
        with suppress(RuntimeError):  # whoever keeps the store has ended
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
            _say(
                f"rank {self._rank} has waited {self._patience_s:g} s {whom}, in {call}; see 'serenectl {what}{option}'"
            )

    def _reached(self, rank: int) -> int:
        """The last collective in which a rank has waited for long."""
        key = f"waits/{rank}"
        return int(self._store.get(key)) if self._store.check([key]) else 0


class SlowRank:
    """Rank 0's thread that asks the controller which rank is slow, and says so once each time. ask: of the controller,
    the fields of a `serene.controller.status.model.SlowWorker`, if there is one. ranks: of the job's workers, by their
    numbers in the job."""

    def __init__(self, job: int, ask: Callable[[], Mapping[str, Any] | None], ranks: Sequence[int]) -> None:
        self._job, self._ask, self._ranks = job, ask, ranks
        self._over = threading.Event()
        if os.environ.get(SLOW, "1") not in ("", "0"):
            threading.Thread(target=self._run, name="serene-slow", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        said: tuple[int, float] | None = None
        while not self._over.wait(ASK_EVERY_S):
            try:
                slow = self._ask()
            except SereneError:  # without the controller the sums go on, and so does this
                continue
            if slow is not None and said != (slow["worker"], slow["since"]):
                said = (slow["worker"], slow["since"])
                _say(
                    f"rank {self._ranks[slow['worker']]} is slow: {slow['why']}. See 'serenectl explain "
                    f"--job {self._job}'; {SLOW}= turns this message off"
                )


def what_each_does(store: Store, rank: int, size: int, number: int, call: str) -> str:
    """Which ranks called which collective, in words. All ranks notice a disagreement in the same collective, and tell
    each other here what they called. number: of the collective; call: this rank's."""
    said = {other: "unknown" for other in range(size)} | {rank: call}
    keys = {other: f"calls/{number}/{other}" for other in said}
    with suppress(RuntimeError):  # the process that keeps the store may have ended with this very error
        store.set(keys[rank], call)
        until = time.monotonic() + TELLING_TIMEOUT_S
        while not store.check(list(keys.values())) and time.monotonic() < until:
            time.sleep(0.01)
        for other, key in keys.items():
            if store.check([key]):
                said[other] = store.get(key).decode()
    calls: dict[str, list[int]] = {}
    for other, what in said.items():
        calls.setdefault(what, []).append(other)
    return "; ".join(f"{_ranks(ranks)}: {what}" for what, ranks in calls.items())


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s'[: len(ranks) > 1]} {', '.join(map(str, ranks))}"
