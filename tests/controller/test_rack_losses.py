"""The contributions that workers over racks report as lost are those that the replicas lack.

Every contribution is counted in a lane of its worker's, in units so small that they never wrap. So at the end a replica
shows how many contributions of each worker it holds, and the rest has to be what the workers report as lost.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from serene.client import Session
from serene.racks import Racks
from serene.strategy import ASP
from tests.controller.processes import ControllerProcess, until
from tests.controller.trees import Tree

SIZES = (2, 2)
RACKS = Racks(SIZES)
WORKERS = sum(SIZES)
UNIT = 2.0**-10  # of the lanes that count: 2 million contributions are 2^31 fixed-point units
LIMIT = 8.0  # of the last lane: 256 contributions at once wrap
EVICTED = 3  # the worker that is evicted
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


def check(members: list[Member]) -> None:
    """What the replicas hold is what was sent, less what worker 0 reports as lost, which is never evicted. Where more
    contributions came at once than 32 bits may hold, the worker reports it."""
    sent = np.array([member.session.iteration for member in members])
    account = [f"sent {sent}"]
    for member in members:
        session = member.session
        account.append(
            f"worker {member.number} holds {member.counted}, wrapped by {member.wrapped:g}; "
            f"{session.sessions_lost} sessions and {session.contributions_lost} contributions lost, "
            f"{session.iterations_repeated} iterations repeated, {session.reads_at_risk} reads at risk"
        )
    held = members[0].counted
    right = (sent - held).sum() == members[0].session.contributions_lost
    for member in members:
        right &= (member.counted == held).all() and (not member.wrapped or member.session.reads_at_risk > 0)
    print("\n".join(account))
    assert right, "\n".join(account)


def test_rack_contributions_during_root_outage_count_as_lost(tree: Tree, daemon: ControllerProcess) -> None:
    """Under ASP each rack continues alone. One rack's sum is restored. The contributions of the other's workers are
    lost, also those of an evicted worker, which votes and stays evicted."""
    client = daemon.client
    client.create_job(WORKERS, ASP(), racks=SIZES)
    members, enough = [Member(tree, number) for number in range(WORKERS)], threading.Event()

    def all_past(more: int) -> None:
        goals = [member.session.iteration + more for member in members]
        passed = lambda: all(m.session.iteration >= goal for m, goal in zip(members, goals, strict=True))  # noqa: E731
        until(passed, "they train")

    with ThreadPoolExecutor(WORKERS) as pool:
        training = [pool.submit(member.train, enough, 0.02) for member in members]
        try:
            all_past(10)
            client.evict(0, EVICTED)
            all_past(10)
            tree.root.kill()
            all_past(20)
            tree.root.start()
            until(
                lambda: client.job(0).lost_sessions and not client.job(0).restoring and client.job(0).epoch > 1, "again"
            )
            assert [worker.state.value for worker in client.job(0).workers] == ["running"] * 3 + ["evicted"]
            all_past(10)
        finally:
            enough.set()
        for each in training:
            each.result(120)
    check(members)
    assert {member.session.sessions_lost for member in members} == {1}
    (lost,) = {member.session.contributions_lost for member in members}
    assert lost > 20, "a rack has trained alone"
    assert daemon.stop() == 0
