"""The controller and the client library together: workers that join, exchange through swaps, and leave."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from serene.client import Client, Refused, Session, Update
from serene.controller.http.client import ControllerClient
from serene.strategy import BSP
from tests.controller.processes import SwitchProcess, until

VALUES = 700


def worker(switch: SwitchProcess, number: int) -> Client:
    return Client(switch.transport(number), job=0, worker=number, vector_length=VALUES, silence_s=0.4)


def test_job_deletion_ends_a_waiting_worker(switch: SwitchProcess, client: ControllerClient) -> None:
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
def test_leave_during_switch_restart_keeps_no_worker_waiting(
    switch: SwitchProcess, client: ControllerClient, how: Callable[[Session], None]
) -> None:
    """It must learn of the session that follows: the others wait for it there until it leaves again."""
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
        pool.submit(stays.exchange, ones).result(120)
        left.result(120)
        assert [seen.state for seen in client.job(0).workers] == ["running", "left"]
        stays.leave()


def test_switch_restart_before_the_last_read_is_no_error(
    switch: SwitchProcess, client: ControllerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All workers have contributed and left, so no session follows, and nothing is reported."""
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
