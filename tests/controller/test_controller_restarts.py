"""Controllers and switches that restart under workers: sessions, places, and commands meanwhile. All are real."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from serene.controller.http.client import ControllerClient, Rejected
from serene.strategy import ASP, BSP, SSP
from serene.wire import Op
from tests.controller.hosts import Host, join, started
from tests.controller.processes import ControllerProcess, Start, SwitchProcess, states, until


def test_workers_of_a_lost_session_join_a_new_one(switch: SwitchProcess, start: Start, hosts: list[Host]) -> None:
    controller = start()
    session = started(controller.client, hosts[:2], BSP())
    switch.restart()
    until(lambda: controller.client.job(0).state == "waiting", "the job waits for its workers again")
    hosts[0].hello(0, 0, 5, session)

    def both(first: int, second: int) -> None:
        hosts[0].hello(0, 0, 5, first)
        hosts[1].hello(0, 1, 5, second)

    welcome = hosts[1].ask(lambda: both(session, session), Op.WELCOME)
    assert welcome["session"] > session
    job = controller.client.job(0)
    assert (job.lost_sessions, job.state) == (1, "running")
    controller.kill()

    second = start()
    hosts[1].incarnation += 1
    # The sums are not restored yet: all begin again.
    later = welcome["session"]
    again = hosts[1].ask(lambda: both(later, session), Op.WELCOME)
    assert again["session"] > later
    assert second.client.job(0).lost_sessions == 1


def test_silent_evicted_worker_does_not_keep_its_job_alive(start: Start, hosts: list[Host]) -> None:
    """Neither under this controller nor under the next one."""
    first = start("--gone-after", "1.5")
    client = first.client
    session = started(client, hosts[:2], BSP())
    client.evict(0, 1)
    hosts[1].push(0, 1, [1], session=session, epoch=2, seq=1)
    until(lambda: client.job(0).workers[1].contributions, "it has been heard")
    assert hosts[0].ask(lambda: hosts[0].leave(0, 0), Op.BYE).text == '{"job_over": false}'
    assert client.job(0).state == "running"
    until(lambda: client.job(0).state == "finished", "it is taken for gone")
    assert hosts[0].ask(lambda: hosts[0].leave(0, 0), Op.BYE).text == '{"job_over": true}'
    first.kill()
    assert start().client.job(0).state == "finished"


@pytest.mark.parametrize("strategy", [ASP(), BSP()])
def test_restarted_controller_does_not_wait_for_left_workers(
    start: Start, hosts: list[Host], strategy: ASP | BSP
) -> None:
    """The controller does not remember who left; the switch does."""
    first = start()
    session = started(first.client, hosts, strategy)
    hosts[1].ask(lambda: hosts[1].leave(0, 1), Op.BYE)
    first.kill()
    second = start()
    assert states(second.client) == ["running", "evicted", "running"]
    assert second.client.job(0).limit == 8.0
    epoch = second.client.set_strategy(0, BSP()).epoch
    hosts[0].push(0, 0, [1], session=session, epoch=epoch, seq=1)
    answer = hosts[2].ask(lambda: hosts[2].push(0, 2, [1], session=session, epoch=epoch, seq=1), Op.ANSWER)
    assert (answer["sync_mask"], answer["members"], answer["round"]) == (0b101, 2, 1)


def test_commands_amid_switch_restarts_leave_consistent_state(
    switch: SwitchProcess, start: Start, hosts: list[Host]
) -> None:
    """Commands continue while the switch restarts and workers join again: in the end, both sides agree."""
    controller = start()
    client = controller.client
    started(client, hosts, BSP())
    stop = False

    def keep(command: Callable[[ControllerClient, int], object]) -> None:
        with ControllerClient(controller.url) as own:
            turn = 0
            while not stop:
                turn += 1
                try:
                    command(own, turn)
                except Rejected as error:
                    assert error.status in (409, 422, 503), error

    def runs() -> bool:
        for worker in range(3):
            hosts[worker].hello(0, worker, 5)
        return bool(client.job(0).state == "running")

    def turn_out(own: ControllerClient, turn: int) -> None:
        """Not in a restoration: that would begin again each time, and never end."""
        if not own.job(0).restoring:
            own.evict(0, 2) if turn % 2 else own.readmit(0, 2)

    commands: list[Callable[[ControllerClient, int], object]] = [
        lambda own, turn: own.set_strategy(0, SSP(turn % 9) if turn % 3 else ASP()),
        turn_out,
    ]
    with ThreadPoolExecutor(len(commands)) as pool:
        given = [pool.submit(keep, command) for command in commands]
        try:
            for _ in range(4):
                switch.restart()
                until(lambda: client.job(0).state == "waiting", "the loss is noticed")
                until(runs, "they are all back")
                until(lambda: not given[0].done() and not given[1].done(), "commands go on")
        finally:
            stop = True
        for one in given:
            one.result(120)
    job = client.job(0)
    hosts[0].forget()
    welcome = hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WELCOME)
    assert (welcome["session"], welcome["epoch"]) == (job.session, job.epoch)
    assert welcome["members"] == states(client).count("running")


def test_replaced_process_is_refused_after_controller_restart(start: Start, hosts: list[Host]) -> None:
    """It was paused, and the controller that replaced it has ended. Its packets would pass for repeats of the other
    process's: nothing would be added, without a report."""
    first = start()
    first.client.create_job(1, ASP())
    worker = hosts[0]
    session = worker.ask(lambda: worker.hello(0, 0, 5), Op.WELCOME)["session"]
    paused, worker.incarnation = worker.incarnation, 77
    worker.ask(lambda: worker.hello(0, 0, 5), Op.WELCOME)
    worker.ask(lambda: worker.push(0, 0, [1], session=session, epoch=2, seq=1), Op.ANSWER)
    first.kill()

    second = start()
    worker.incarnation = paused
    refused = worker.ask(lambda: worker.hello(0, 0, 5, session, epoch=1), Op.REFUSED, Op.WELCOME)
    assert refused.text == "another process has taken the place of worker 0 of job 0"
    assert second.client.job(0).workers[0].incarnation == 77


def test_takeover_keeps_elastic_settings_and_evicted_workers(start: Start, hosts: list[Host]) -> None:
    """Its name, minimum and evict_after: it evicts silent workers, and readmits evicted ones that are heard again."""
    first = start()
    for process in ("a", "b"):
        asked = {"process": process, "workers": 2, "places": 3, "minimum": 1, "evict_after": 1.5}
        named = {"name": "gpt", "settings": {"every": 1}, "scale": 2**20, "limit": 2**20}
        httpx.post(f"{first.url}/v1/places", json={**asked, **named}).raise_for_status()
    session = join(hosts[:2], 0)[0]["session"]

    def running(client: ControllerClient) -> list[int]:
        return [worker for worker, state in enumerate(states(client)) if state == "running"]

    fields = {"session": session, "epoch": 1, "seq": 1}
    hosts[1].push(0, 1, [1], **fields)

    def left_alone(controller: ControllerProcess, stays: int) -> bool:
        hosts[stays].push(0, stays, [1], **fields)
        return running(controller.client) == [stays]

    until(lambda: left_alone(first, 0), "the silent worker is evicted")
    first.kill()
    second = start()
    job = second.client.job(0)
    assert (job.name, job.places, job.minimum, job.evict_after) == ("gpt", 3, 1, 1.5)
    assert running(second.client) == [0], "who was silent still is"
    until(lambda: left_alone(second, 1), "one is heard again, and the other is silent")
