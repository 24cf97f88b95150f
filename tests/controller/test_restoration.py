"""Who takes part changes while the workers restore the sums that a switch has lost: no sum is doubled or forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from controller.http.client import ControllerClient
from serene.client import Client, FrameTransport, Session
from serene.strategy import BSP
from tests.controller.processes import ControllerProcess, SwitchProcess, until

VALUES, STEPS, PATIENCE_S = 700, 4, 60


class Member:
    """A worker that contributes its id + 1, and what its replica holds."""

    def __init__(self, switch: SwitchProcess, worker: int) -> None:
        here, there = switch.peer_udp_ports[worker + 1], switch.udp_ports[worker + 1]
        transport = FrameTransport(worker, local=("127.0.0.1", here), switch=("127.0.0.1", there))
        self.replica = np.zeros(VALUES, np.float32)
        self.worker = worker
        client = Client(transport, 0, worker, VALUES, silence_s=0.4)
        self.session = Session(client, self.apply, join_timeout_s=PATIENCE_S)

    def apply(self, delta: np.ndarray) -> None:
        self.replica += delta

    def step(self) -> None:
        self.session.exchange(np.full(VALUES, self.worker + 1, np.float32))


@pytest.fixture
def job(switch: SwitchProcess, controller: ControllerProcess) -> Iterator[tuple[ControllerClient, list[Member]]]:
    if switch.target != "embedded":
        pytest.skip("FrameTransport needs the embedded switch's udp: ports")
    controller.client.create_job(3, BSP())
    members = [Member(switch, worker) for worker in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda member: member.session.join(), members))
        for _ in range(STEPS):
            list(pool.map(lambda member: member.step(), members))
    everybody = list(members)
    yield controller.client, members
    for member in everybody:
        member.session.client.close()
    for each in controller.client.jobs():
        controller.client.delete_job(each.job)


@pytest.mark.parametrize("how", ["evicted", "evicted and readmitted"])
def test_a_worker_is_evicted_in_the_middle(
    switch: SwitchProcess, job: tuple[ControllerClient, list[Member]], how: str
) -> None:
    """Worker 2 has joined the new session, is expected to vote, and is evicted before it does."""
    client, members = job
    switch.restart()
    third = members[2]

    with ThreadPoolExecutor(3) as pool:
        # Two of them are in the middle of a step; the third only asks to join, and votes later.
        steps: list[Future[None]] = [pool.submit(member.step) for member in members[:2]]
        third.session.client.join(PATIENCE_S)
        until(lambda: client.job(0).restoring, "all have joined the next session")
        client.evict(0, 2)
        if how == "evicted":
            members.pop()
        else:
            until(lambda: client.job(0).state == "running", "the others go on without it")
            third.session.join()
            steps.append(pool.submit(third.step))
        for each in steps:
            each.result(PATIENCE_S)
    for member in members:
        member.apply(member.session.client.pull().delta)
    # What was contributed before the switch was restarted, and one step of each since.
    since = sum(member.worker + 1 for member in members)
    assert {float(member.replica[0]) for member in members} == {STEPS * 6.0 + since}
