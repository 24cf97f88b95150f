"""The contributions that workers over racks report as lost are those that the replicas lack."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from serene.strategy import ASP
from tests.controller.books import EVICTED, SIZES, WORKERS, Member, check
from tests.controller.processes import ControllerProcess, until
from tests.controller.trees import Tree


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
