"""Members change while workers restore the sums that a switch has lost: no sum is doubled or lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from serene.client import Client, Session
from serene.controller.http.client import ControllerClient, Rejected
from serene.strategy import BSP
from tests.controller.processes import ControllerProcess, SwitchProcess, until

VALUES, STEPS, PATIENCE_S = 700, 4, 120


class Member:
    """A worker that contributes its id + 1, and what its replica holds."""

    def __init__(self, switch: SwitchProcess, worker: int, silence_s: float = 0.4) -> None:
        self.replica = np.zeros(VALUES, np.float32)
        self.worker = worker
        client = Client(switch.transport(worker), 0, worker, VALUES, silence_s=silence_s)
        self.session = Session(client, self.apply, join_timeout_s=PATIENCE_S)

    def apply(self, delta: np.ndarray) -> None:
        self.replica += delta

    def step(self) -> None:
        self.session.exchange(np.full(VALUES, self.worker + 1, np.float32))


@pytest.fixture
def job(switch: SwitchProcess, controller: ControllerProcess) -> Iterator[tuple[ControllerClient, list[Member]]]:
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


def evicted(client: ControllerClient, worker: int) -> bool:
    """Evicts a worker, and returns whether the controller accepted that."""
    with suppress(Rejected):
        return bool(client.evict(0, worker))
    return False


def test_workers_of_a_lost_session_are_called(switch: SwitchProcess, controller: ControllerProcess) -> None:
    """They would not ask by themselves here."""
    controller.client.create_job(2, BSP())
    members = [Member(switch, worker, silence_s=1e6) for worker in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda member: member.session.join(), members))
        list(pool.map(lambda member: member.step(), members))
        switch.restart()
        list(pool.map(lambda member: member.step(), members))
    assert [member.replica[0] for member in members] == [6.0, 6.0]
    for member in members:
        member.session.client.close()
    controller.client.delete_job(0)


@pytest.mark.parametrize("how", ["evicted", "evicted, and joins again"])
def test_worker_evicted_during_a_restoration_does_not_block_it(
    switch: SwitchProcess, job: tuple[ControllerClient, list[Member]], how: str
) -> None:
    """Worker 2 has joined the new session, should vote, and is evicted before it does."""
    client, members = job
    switch.restart()
    third = members[2]

    with ThreadPoolExecutor(3) as pool:
        # Two of them are in the middle of a step; the third only asks to join, and votes later.
        steps: list[Future[None]] = [pool.submit(member.step) for member in members[:2]]
        third.session.client.join(PATIENCE_S)
        until(lambda: client.job(0).restoring, "all have joined the next session")
        with pytest.raises(Rejected, match="nobody is readmitted, and only workers silent for 3 s are evicted"):
            client.evict(0, 2)  # it was heard just now, and the others would have to begin again
        until(lambda: evicted(client, 2), "it is silent")
        for each in steps:
            each.result(PATIENCE_S)
        if how == "evicted":
            members.pop()
        else:  # it waits until the others have restored the sums, and reads them
            third.session.join()
    for member in members:
        member.apply(member.session.client.pull().delta)
    # What was contributed before the switch was restarted, and a step of two since.
    assert {float(member.replica[0]) for member in members} == {STEPS * 6.0 + 3.0}


def test_requests_during_a_restoration_do_not_prevent_it(
    switch: SwitchProcess, job: tuple[ControllerClient, list[Member]]
) -> None:
    """One worker is evicted and readmitted all the time. The workers begin one session, not one for each request."""
    client, members = job
    enough = threading.Event()

    def request() -> None:
        while not enough.wait(0.05):
            for change in (client.evict, client.readmit):
                with suppress(Rejected):
                    change(0, 2)

    with ThreadPoolExecutor(4) as pool:
        requests = pool.submit(request)
        try:
            switch.restart()
            for step in [pool.submit(member.step) for member in members]:
                step.result(PATIENCE_S)
        finally:
            enough.set()
        requests.result(PATIENCE_S)
    for member in members:
        member.apply(member.session.client.pull().delta)
    assert {float(member.replica[0]) for member in members} == {(STEPS + 1) * 6.0}
    assert len({epoch.session for epoch in client.job(0).history}) == 2
