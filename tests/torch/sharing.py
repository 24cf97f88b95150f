"""A worker of shared training for tests.

    python -m tests.torch.sharing '{"out": "FILE", "steps": 30, ...}'

Writes what it has read, what it has sent and its parameters to FILE.npz, and its losses to FILE.losses, one a line.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from serene.client import Client
from serene.client.session.updates import CaughtUp
from serene.torch import DistributedOptimizer
from serene.torch.replica import Replica


@dataclass(frozen=True)
class Settings:
    """pauses: the probability that a step takes 30 ms longer. compute_s: by how much each does. waits_at: before this
    step it waits for the file ``go`` beside ``out``; before that it writes what it has sent so far. width: of the
    hidden layer. steps: 0 for as many as there are until a file ``end`` is
    beside ``out``. ledger: keep what was sent in FILE.ledger, step by step, so that it is there when the process is
    killed (not with overlap). within: train within ``with optimizer``. fails_at: the step that raises an error. exits:
    the program's own handler of SIGTERM exits with this status. joins_until: a signal that
    the worker sends itself as soon as the controller has admitted it. catches_up_if_present: in each session, it waits
    for this file before it catches up with the others."""

    out: str
    number: int = 0
    job: str = "training"
    workers: int = 3
    steps: int = 30
    every: int = 1
    overlap: bool = False
    outer: float = 0.0
    strategy: str = "bsp"
    optimizer: str = "sgd"
    pauses: float = 0.0
    waits_at: int = -1
    seed: int = 0
    width: int = 64
    limit: float | None = None
    places: int | None = None
    minimum: int | None = None
    evict_after: float | None = None
    compute_s: float = 0.0
    ledger: bool = False
    within: bool = True
    fails_at: int = -1
    exits: int | None = None
    joins_until: int | None = None
    catches_up_if_present: str | None = None


class Ledger:
    """What one process has sent, in memory that outlives it: the sum of the contributions that are over, and the one
    that is under way. file: int32[3, values] behind a word that says which row has the sum, and whether one is under
    way; one word is written at once. Another word has the time, in ms, when the last one was over."""

    def __init__(self, file: Path, values: int, create: bool = False) -> None:
        shape = 2 + 3 * values
        self._words = np.memmap(file, np.int32, "w+" if create else "r+", shape=(shape,))
        self._rows = self._words[2:].reshape(3, values)

    @property
    def latest(self) -> tuple[np.ndarray, bool, float]:
        """The latest contribution, whether it is under way, and if it is not, how many seconds ago it was over."""
        while True:
            before = self._words[:2].copy()
            row = self._rows[2].copy()
            if np.array_equal(before, self._words[:2]):
                return row, bool(before[0] & 2), ((time.monotonic_ns() // 10**6 - int(before[1])) % 2**31) / 1e3

    @property
    def sent(self) -> np.ndarray:
        row: np.ndarray = self._rows[self._words[0] & 1].copy()
        return row

    @property
    def under_way(self) -> np.ndarray | None:
        return self._rows[2].copy() if self._words[0] & 2 else None

    def begins(self, contribution: np.ndarray) -> None:
        self._rows[2] = contribution
        self._words[0] |= 2

    def over(self) -> None:
        row = int(self._words[0] & 1)
        self._rows[1 - row] = self._rows[row] + self._rows[2]
        self._words[1] = time.monotonic_ns() // 10**6 % 2**31
        self._words[0] = 1 - row


def network(settings: Settings) -> nn.Module:
    torch.manual_seed(settings.seed)
    return nn.Sequential(nn.Linear(16, settings.width), nn.ReLU(), nn.Linear(settings.width, 4))


def optimizer_of(model: nn.Module, name: str) -> torch.optim.Optimizer:
    if name in ("sgd", "plain"):
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9 if name == "sgd" else 0.0)
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def batches(number: int) -> torch.Generator:
    """Returns the generator from which worker `number` draws its batches."""
    return torch.Generator().manual_seed(100 + number)


def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points, float32[32, 16], of four classes, int64[32]."""
    points = torch.randn(32, 16, generator=generator)
    return points, points[:, :4].argmax(dim=1)


def save(settings: Settings, model: nn.Module, optimizer: DistributedOptimizer, start: Tensor) -> None:
    beside = Path(settings.out).with_suffix(".new.npz")
    np.savez(
        beside,
        read=optimizer.sum_of_updates_read.numpy(),
        sent=optimizer.sum_of_updates_sent.numpy(),
        parameters=nn.utils.parameters_to_vector(model.parameters()).detach().numpy(),
        start=start.numpy(),
        unit=optimizer.unit,
    )
    beside.rename(f"{settings.out}.npz")


def main(settings: Settings) -> None:
    torch.set_num_threads(1)
    if settings.exits is not None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(settings.exits))
    catch_up = Client.catch_up

    def caught_up(client: Client) -> CaughtUp | None:
        if settings.joins_until is not None:
            os.kill(os.getpid(), settings.joins_until)
        while not (settings.catches_up_if_present is None or Path(settings.catches_up_if_present).exists()):
            time.sleep(0.02)
        return catch_up(client)

    Client.catch_up = caught_up  # type: ignore[method-assign,assignment]
    model = network(settings)
    start = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    heard: list[int] = []
    optimizer = DistributedOptimizer(
        optimizer_of(model, settings.optimizer),
        job=settings.job, workers=settings.workers, every=settings.every, overlap=settings.overlap,
        outer=settings.outer, strategy=settings.strategy, limit=settings.limit, timeout_s=120.0,
        places=settings.places, minimum=settings.minimum, evict_after=settings.evict_after, on_members=heard.append,
    )  # fmt: skip
    ledger = Ledger(Path(f"{settings.out}.ledger"), start.numel(), create=True) if settings.ledger else None
    if ledger is not None:
        contribute = Replica.contribute

        def noted(replica: Replica, workers: int) -> np.ndarray:
            contribution = contribute(replica, workers)
            ledger.begins(contribution)
            return contribution

        Replica.contribute = noted  # type: ignore[method-assign,assignment]
    generator = batches(settings.number)
    slow = random.Random(settings.number)
    with (
        optimizer if settings.within else nullcontext(),
        open(f"{settings.out}.losses", "w", buffering=1) as losses,
    ):
        for step in range(settings.steps) if settings.steps else count():
            if not settings.steps and Path(settings.out).with_name("end").exists():
                break
            if step == settings.waits_at:
                save(settings, model, optimizer, start)
                while not Path(settings.out).with_name("go").exists():
                    time.sleep(0.02)
            if step == settings.fails_at:
                raise RuntimeError(f"step {step} fails")
            points, labels = batch(generator)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(points), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            # Before the exchange: a process that dies meanwhile has lost this time, and its successor spends it again.
            time.sleep(settings.compute_s + 0.03 * (slow.random() < settings.pauses))
            optimizer.step()
            if ledger is not None:
                ledger.over()
            losses.write(f"{loss.item()}\n")
        all_left = optimizer.close()
    save(settings, model, optimizer, start)
    print(
        f"worker {optimizer.worker}: {'all have left' if all_left else 'others are missing'}; members {heard}",
        flush=True,
    )
    os._exit(0)


if __name__ == "__main__":
    main(Settings(**json.loads(sys.argv[1])))
