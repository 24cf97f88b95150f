"""The books of a job over racks, while workers are evicted and readmitted, strategies swapped and switches restarted.

    python -m tests.controller.books SEED [SECONDS]

Every contribution is counted in a lane of its worker's, in units so small that they never wrap. So at the end a replica
shows how many contributions of each worker it holds, and the rest has to be what the workers report as lost.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import random
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from serene.client import Session
from serene.controller.http.client import ControllerClient, NoController, Rejected
from serene.experiments.shared.random_strategies import some
from serene.racks import Racks
from serene.strategy import BSP
from tests.controller.processes import until
from tests.controller.trees import Tree, controller

SIZES = (2, 2)
RACKS = Racks(SIZES)
WORKERS = sum(SIZES)
FAMILIES = ("bsp", "ssp", "asp", "mixed")
UNIT = 2.0**-10  # of the lanes that count: 2 million contributions are 2^31 fixed-point units
LIMIT = 8.0  # of the last lane: 256 contributions at once wrap
EVICTED = 3  # the worker that is evicted and readmitted
EVICT_EVERY_S, SWAP_EVERY_S, RESTART_EVERY_S = 0.125, 0.4, 6.0
PATIENCE_S = 100.0


@dataclass
class Member:
    """A worker, and its replica."""

    tree: Tree
    number: int
    replica: np.ndarray = field(default_factory=lambda: np.zeros(WORKERS + 1))

    def __post_init__(self) -> None:
        client = self.tree.client(*RACKS.place(self.number), WORKERS + 1)
        self.session = Session(client, self.apply, join_timeout_s=PATIENCE_S)

    def apply(self, delta: np.ndarray) -> None:
        self.replica += delta

    def train(self, enough: threading.Event, step_s: float) -> None:
        """Contributes every ``step_s`` seconds until it is enough."""
        gradient = np.zeros(WORKERS + 1, np.float32)
        gradient[self.number], gradient[WORKERS] = UNIT, LIMIT
        with self.session as session:
            session.join()
            while not enough.wait(step_s):
                session.exchange(gradient)
            assert session.finish(PATIENCE_S), "the job is over for all"

    @property
    def counted(self) -> np.ndarray:
        """How many contributions of each worker the replica holds."""
        held: np.ndarray = np.rint(self.replica[:WORKERS] / UNIT).astype(int)
        return held

    @property
    def wrapped(self) -> float:
        """By how much the lane in which all contribute the most is off: a multiple of 4,096, after reads that held more
        than 32 bits can."""
        return float(self.replica[WORKERS] - LIMIT * self.counted.sum())


def disturb(client: ControllerClient, tree: Tree, rng: random.Random, seconds: float) -> None:
    """Evicts and readmits a worker, swaps strategies and restarts switches, for so long."""
    began = time.monotonic()
    due = {"evict": began + 1.0, "swap": began + 1.0, "restart": began + 2.0}
    evicted = False
    restarting = ThreadPoolExecutor(1)
    refused: dict[str, int] = {}
    while (now := time.monotonic()) < began + seconds:
        try:
            if now >= due["evict"]:
                due["evict"] += EVICT_EVERY_S
                evicted = not evicted
                (client.evict if evicted else client.readmit)(0, EVICTED)
            if now >= due["swap"]:
                due["swap"] += rng.uniform(0.5, 1.5) * SWAP_EVERY_S
                client.set_strategy(0, some(rng.choice(FAMILIES), rng, WORKERS))
        except (Rejected, NoController) as error:
            refused[str(error)] = refused.get(str(error), 0) + 1
        if now >= due["restart"]:
            due["restart"] += rng.uniform(0.7, 1.3) * RESTART_EVERY_S
            switch = rng.choice(tree.switches)
            print(f"{now - began:6.2f} restart {switch.log.stem}", flush=True)
            restarting.submit(switch.restart)
        time.sleep(0.02)
    restarting.shutdown()
    for text, times in refused.items():
        print(f"{times} times refused: {text}")


def play(folder: Path, seed: int, seconds: float) -> None:
    """One run. Raises AssertionError where the books are not right."""
    rng = random.Random(f"books/{seed}")
    tree = Tree(folder, SIZES)
    daemon = controller(tree, folder / "controller.log")
    client, enough = daemon.client, threading.Event()
    try:
        client.create_job(WORKERS, BSP(), racks=SIZES)
        members = [Member(tree, number) for number in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as pool:
            steps = [rng.uniform(0.001, 0.02) for _ in members]
            training = [pool.submit(member.train, enough, step) for member, step in zip(members, steps, strict=True)]
            try:
                disturb(client, tree, rng, seconds)

                def settled() -> bool:
                    job = client.job(0)
                    return job.state.value == "running" and not job.restoring and client.status().switch.connected

                began = time.monotonic()
                until(settled, "the job runs", PATIENCE_S)
                client.set_strategy(0, BSP())
                print(
                    f"settled after {time.monotonic() - began:.1f} s: {[w.state.value for w in client.job(0).workers]}"
                )
            finally:
                enough.set()
            for each in training:
                each.result(PATIENCE_S)
    finally:
        daemon.kill()
        tree.stop()
    check(members)


def check(members: list[Member]) -> None:
    """What the replicas hold is what was sent, less what worker 0 reports as lost, which is never evicted. Where more
    contributions came at once than 32 bits may hold, the worker says so."""
    sent = np.array([member.session.iteration for member in members])
    books = [f"sent {sent}"]
    for member in members:
        told = member.session
        books.append(
            f"worker {member.number} holds {member.counted}, wrapped by {member.wrapped:g}; "
            f"{told.sessions_lost} sessions and {told.contributions_lost} contributions lost, "
            f"{told.iterations_repeated} iterations repeated, {told.reads_at_risk} reads at risk"
        )
    held = members[0].counted
    right = (sent - held).sum() == members[0].session.contributions_lost
    for member in members:
        right &= (member.counted == held).all() and (not member.wrapped or member.session.reads_at_risk > 0)
    print("\n".join(books))
    assert right, "\n".join(books)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("seconds", type=float, nargs="?", default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder), options.seed, options.seconds)


if __name__ == "__main__":
    raise SystemExit(ended(main))
