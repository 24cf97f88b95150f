"""The controller and the client library together: workers that join, exchange through swaps, and leave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from serene.client import Client, Refused, Session, Update
from serene.controller.http.client import ControllerClient
from serene.strategy import ASP, BSP, SSP, Strategy
from tests.controller.processes import ControllerProcess, SwitchProcess, until

VALUES = 700
WORKERS = 3
STEPS = 60
SWAPS: dict[int, Strategy] = {15: SSP(2), 30: ASP(), 45: BSP()}


@pytest.fixture
def client(controller: ControllerProcess) -> Iterator[ControllerClient]:
    yield controller.client
    for job in controller.client.jobs():
        controller.client.delete_job(job.job)


def worker(switch: SwitchProcess, number: int) -> Client:
    return Client(switch.transport(number), job=0, worker=number, vector_length=VALUES)


def test_swaps_under_way_lose_nothing(switch: SwitchProcess, client: ControllerClient) -> None:
    client.create_job(WORKERS, BSP())
    in_step = threading.Barrier(WORKERS, timeout=120)

    def train(number: int) -> tuple[np.ndarray, list[int], int]:
        with worker(switch, number) as member:
            member.join()
            total = np.zeros(VALUES, np.float32)
            epochs = []
            for step in range(STEPS):
                if step in SWAPS:
                    # Otherwise the fast ones are through before the swap: nobody is slow here.
                    in_step.wait()
                    if number == 0:
                        client.set_strategy(0, SWAPS[step])
                    in_step.wait()
                update = member.exchange(np.full(VALUES, number + 1, np.float32))
                total += update.delta
                epochs.append(update.epoch)
            member.report({"iteration": STEPS, "state": "finished"})
            assert member.leave_and_wait(120.0)
            return total + member.pull().delta, epochs, member.contributions_sent

    with ThreadPoolExecutor(WORKERS) as pool:
        trained = list(pool.map(train, range(WORKERS)))
    for total, epochs, _ in trained:
        assert (total == STEPS * sum(range(1, WORKERS + 1))).all()
        assert epochs == sorted(epochs)
        assert {1, 2, 3, 4} <= set(epochs)

    job = client.job(0)
    assert job.state == "finished"
    for (_, _, sent), seen in zip(trained, job.workers, strict=True):
        assert sent == seen.contributions_sent == seen.contributions == STEPS * job.slots
        assert seen.iteration == STEPS
        assert (seen.report or {})["state"] == "finished"
    swaps = [past.strategy.name for past in job.history if past.reason == "requested"]
    assert swaps == ["ssp", "asp", "bsp"]


def test_refusal_reaches_the_worker(switch: SwitchProcess, client: ControllerClient) -> None:
    client.create_job(1, BSP())
    with (
        worker(switch, 1) as stranger,
        pytest.raises(Refused, match="job 0 has no worker 1: expected 0 to 0"),
    ):
        stranger.join(60.0)


def test_deletion_ends_a_worker_that_waits(switch: SwitchProcess, client: ControllerClient) -> None:
    client.create_job(2, BSP())
    with worker(switch, 0) as waiting, worker(switch, 1) as idle, ThreadPoolExecutor(2) as pool:
        for joining in [pool.submit(member.join) for member in (waiting, idle)]:
            joining.result(120)
        blocked = pool.submit(waiting.exchange, np.ones(VALUES, np.float32))
        until(lambda: client.status().jobs[0].workers[0].blocked, "the switch has not answered worker 0")
        client.delete_job(0)
        with pytest.raises(Refused, match=r"job 0 was deleted|there is no job 0"):
            blocked.result(120)


@pytest.mark.parametrize("how", [Session.leave, Session.abandon], ids=["leave", "abandon"])
def test_who_leaves_as_the_switch_loses_its_state_keeps_nobody_waiting(
    switch: SwitchProcess, client: ControllerClient, how: Callable[[Session], None]
) -> None:
    """It has to hear of the session that follows: there it is waited for until it leaves that one."""
    client.create_job(2, BSP())
    ones = np.ones(VALUES, np.float32)
    with ThreadPoolExecutor(2) as pool, worker(switch, 0) as one, worker(switch, 1) as other:
        stays, leaves = (Session(each, lambda delta: None) for each in (one, other))
        for done in [pool.submit(each.join) for each in (stays, leaves)]:
            done.result(120)
        for exchanged in [pool.submit(each.exchange, ones) for each in (stays, leaves)]:
            exchanged.result(120)
        switch.restart()
        left = pool.submit(how, leaves)
        pool.submit(stays.exchange, ones).result(60)
        left.result(60)
        assert [seen.state for seen in client.job(0).workers] == ["running", "left"]
        stays.leave()


def test_a_switch_that_restarts_before_the_last_read_fails_nobody(
    switch: SwitchProcess, client: ControllerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have contributed and left: there is no session to go on in, and nothing to complain of."""
    client.create_job(1, BSP())
    member = worker(switch, 0)
    pull = member.pull

    def after_a_restart(timeout_s: float) -> Update:
        switch.restart()
        return pull(timeout_s)

    with Session(member) as session:
        session.join()
        session.exchange(np.ones(VALUES, np.float32))
        monkeypatch.setattr(member, "pull", after_a_restart)
        assert session.finish(60.0) is False
    assert client.job(0).state == "finished"
