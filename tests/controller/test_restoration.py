"""A switch restarts: members change while workers restore its sums, leave, or have read for the last time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from serene.client import Client, Session, Update
from serene.controller.http.client import ControllerClient, Rejected
from serene.controller.status.explain import SILENT_S
from serene.strategy import BSP
from tests.controller.processes import ControllerProcess, SwitchProcess, states, until

VALUES, STEPS, PATIENCE_S = 700, 4, 120


class Member:
    """A worker that contributes its id + 1, and what its replica holds."""

    def __init__(self, switch: SwitchProcess, worker: int) -> None:
        self.replica = np.zeros(VALUES, np.float32)
        self.worker = worker
        client = Client(switch.transport(worker), 0, worker, VALUES, silence_s=0.4)
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
    try:
        return bool(client.evict(0, worker))
    except Rejected as refused:
        assert "nobody is readmitted, and only workers silent for 3 s are evicted" in str(refused)
    return False


def test_worker_evicted_during_a_restoration_does_not_block_it(
    switch: SwitchProcess, job: tuple[ControllerClient, list[Member]]
) -> None:
    """Worker 2 has joined the new session, should vote, and is evicted before it does. It joins again when the others
    have restored the sums, and reads them."""
    client, members = job
    switch.restart()
    third = members[2]

    with ThreadPoolExecutor(3) as pool:
        # Two of them are in the middle of a step; the third only asks to join, and votes later.
        steps: list[Future[None]] = [pool.submit(member.step) for member in members[:2]]
        began = time.monotonic()
        third.session.client.join(PATIENCE_S)
        until(lambda: client.job(0).restoring, "all have joined the next session")
        # While it has been heard recently, that is refused: the others would have to begin again.
        until(lambda: evicted(client, 2), "it is silent")
        assert time.monotonic() - began >= SILENT_S
        assert client.job(0).lost_sessions == 1, "the switch has lost one; the session that follows the eviction is new"
        for each in steps:
            each.result(PATIENCE_S)
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


@pytest.mark.parametrize("how", [Session.leave, Session.abandon], ids=["leave", "abandon"])
def test_leave_during_switch_restart_keeps_no_worker_waiting(
    switch: SwitchProcess, job: tuple[ControllerClient, list[Member]], how: Callable[[Session], None]
) -> None:
    """It must learn of the session that follows: the others wait for it there until it leaves again."""
    client, (*stay, leaves) = job
    switch.restart()
    with ThreadPoolExecutor(3) as pool:
        left = pool.submit(how, leaves.session)
        for step in [pool.submit(member.step) for member in stay]:
            step.result(PATIENCE_S)
        left.result(PATIENCE_S)
    until(lambda: states(client) == ["running", "running", "left"], "the others continue without it")


def test_switch_restart_before_the_last_read_is_no_error(
    switch: SwitchProcess, job: tuple[ControllerClient, list[Member]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All workers have contributed and left, so no session follows, and nothing is reported."""
    client, (*others, last) = job
    for member in others:
        member.session.leave()
    pull = last.session.client.pull

    def after_a_restart(timeout_s: float) -> Update:
        switch.restart()
        return pull(timeout_s)

    monkeypatch.setattr(last.session.client, "pull", after_a_restart)
    assert last.session.finish(60.0) is False
    assert client.job(0).state == "finished"
