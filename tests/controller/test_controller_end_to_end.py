"""The controller on a real switch, with hosts that speak in whole frames.

What these tests cannot see: the client library, and training.
"""

from __future__ import annotations

import threading

from serene.controller.http.client import ControllerClient
from serene.controller.status.model import Event, Snapshot
from serene.strategy import ASP, BSP, SSP, Quorum
from serene.wire import Op, ReadMode
from tests.controller.hosts import Host, ethernet, join, reaches_only, started
from tests.controller.processes import report, until


def test_job_starts_when_all_workers_have_joined(client: ControllerClient, hosts: list[Host]) -> None:
    switch = client.status().switch
    assert (switch.connected, switch.trouble, switch.program) == (True, None, "serene")
    assert (switch.lanes, switch.slots) == (320, 8192)
    job = client.create_job(2, BSP())
    assert (job.job, job.state, job.epoch) == (0, "waiting", 0)
    hosts[0].hello(0, 0, 700)
    until(lambda: client.job(0).workers[0].state == "joined", "worker 0 joined")
    assert client.job(0).state == "waiting"
    assert client.job(0).workers[0].port == 1

    welcomes = join(hosts[:2], 0, 700)
    job = client.job(0)
    assert job.state == "running"
    assert job.slots == 3
    for worker, welcome in enumerate(welcomes):
        assert (welcome["worker"], welcome["epoch"], welcome["session"]) == (worker, 1, job.session)
        assert (welcome["sync_mask"], welcome["staleness"], welcome["quorum"]) == (0b11, 0, 2)
        assert welcome["read_mode"] == ReadMode.SNAPSHOT
    assert [change.reason for change in job.history] == ["started"]


def test_push_is_summed_and_counted(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:2], BSP())
    hosts[0].push(0, 0, [1, 2], session=session, epoch=1, seq=1)
    until(lambda: client.job(0).workers[0].contributions == 1, "the first contribution is counted")
    answer = hosts[1].ask(lambda: hosts[1].push(0, 1, [10, 20], session=session, epoch=1, seq=1), Op.ANSWER)
    assert (answer["total"], answer["seq"]) == (2, 1)
    assert answer.body[:8] == (11).to_bytes(4, "big") + (22).to_bytes(4, "big")
    hosts[1].ask(lambda: hosts[1].push(0, 1, [10, 20], session=session, epoch=1, seq=1), Op.ANSWER)
    first, second = client.job(0).workers
    assert (first.contributions, first.blocked, first.releases, first.iteration) == (1, 1, 1, 1)
    assert (second.contributions, second.answers) == (1, second.repeats + 1)
    assert second.repeats >= 1
    assert client.status().switch.totals.contributions == 2


def test_swap_is_visible_in_the_next_answers(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:2], BSP())
    change = client.set_strategy(0, ASP())
    assert (change.epoch, change.strategy, change.before) == (2, ASP(), BSP())
    answer = hosts[0].ask(lambda: hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1), Op.ANSWER)
    assert (answer["epoch"], answer["sync_mask"], answer["read_mode"]) == (2, 0, ReadMode.LATEST)
    client.set_strategy(0, SSP(3))
    answer = hosts[0].ask(lambda: hosts[0].push(0, 0, [1], session=session, epoch=2, seq=2), Op.ANSWER)
    assert (answer["epoch"], answer["sync_mask"], answer["staleness"]) == (3, 0b11, 3)
    history = client.job(0).history
    assert [(past.epoch, past.strategy.name) for past in history] == [
        (1, "bsp"),
        (2, "asp"),
        (3, "ssp"),
    ]
    assert sorted(past.t for past in history) == [past.t for past in history]


def test_repeated_refusals_are_rate_limited(client: ControllerClient, hosts: list[Host]) -> None:
    hosts[0].udp_port = 50000  # a source that has not been refused yet
    for _ in range(20):
        hosts[0].say_hello(7, 0, 5)
    assert hosts[0].hear(5.0) is not None
    assert hosts[0].hear(0.3) is None


def test_leave_is_acknowledged_and_swaps_the_policy(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts, Quorum(3))
    bye = hosts[2].ask(lambda: hosts[2].leave(0, 2, contributions_sent=7), Op.BYE)
    assert bye.text == '{"job_over": false}'
    job = client.job(0)
    assert (job.workers[2].state, job.workers[2].contributions_sent) == ("left", 7)
    answer = hosts[0].ask(lambda: hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1), Op.ANSWER)
    assert (answer["epoch"], answer["sync_mask"], answer["quorum"]) == (2, 0b011, 2)
    hosts[0].ask(lambda: hosts[0].leave(0, 0), Op.BYE)
    assert hosts[1].ask(lambda: hosts[1].leave(0, 1), Op.BYE).text == '{"job_over": true}'
    assert client.job(0).state == "finished"
    answer = hosts[0].ask(lambda: hosts[0].send(Op.PULL, 0, 0, bytes(1280), session=session, seq=1), Op.ANSWER)
    assert answer["total"] == 1, "a last PULL is still served"
    assert hosts[2].ask(lambda: hosts[2].leave(0, 2), Op.BYE).text == '{"job_over": true}'


def test_deleted_job_is_gone_from_the_switch(client: ControllerClient, hosts: list[Host]) -> None:
    client.create_job(2, BSP())
    session = join(hosts[:2], 0, 320 * 8192)[0]["session"]
    strangers = client.status().switch.drops["stranger"]
    client.delete_job(0)
    hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1)
    until(lambda: client.status().switch.drops["stranger"] > strangers, "the push is a stranger's")
    client.create_job(2, BSP())
    later = join(hosts[:2], 0, 320 * 8192)[0]
    assert later["session"] > session


def test_reports_reach_the_status_and_bad_json_is_ignored(client: ControllerClient, hosts: list[Host]) -> None:
    started(client, hosts[:1], BSP())
    hosts[0].report(0, 0, iteration=3, loss=0.5, state="computing")
    told = until(lambda: client.job(0).workers[0].report, "the report arrives")
    assert told == {"iteration": 3, "loss": 0.5, "state": "computing"}
    hosts[0].send(Op.REPORT, 0, 0, b"{no json")
    hosts[0].send(Op.REPORT, 0, 0, b'{"iteration": 4, "loss": NaN, "accuracy": 1e999}')
    until(lambda: report(client)["iteration"] == 4, "a bad report does no harm")
    assert report(client) == {"iteration": 4, "loss": None, "accuracy": None}


def test_hosts_reach_each_other_through_mac_learning(client: ControllerClient, hosts: list[Host]) -> None:
    """A learning switch floods at first, then sends to one port, and after a move to the new one."""
    first, second, third = hosts
    first.link.send(ethernet(second.mac, first.mac, b"unknown"))
    assert second.hears(b"unknown", 60.0)
    assert third.hears(b"unknown", 60.0)
    until(lambda: reaches_only(second, first.mac, first, third), "frames for the first host reach its port only")
    third.link.send(ethernet(second.mac, first.mac, b"moved"))
    assert second.hears(b"moved", 60.0)
    until(lambda: reaches_only(second, first.mac, third, first), "frames for the first host reach its new port only")
    first.link.send(ethernet(second.mac, first.mac, b"and back"))
    until(lambda: reaches_only(second, first.mac, first, third), "frames for the first host reach its port again")


def test_event_stream_begins_with_a_snapshot_and_sends_events(client: ControllerClient) -> None:
    told: list[Snapshot | Event] = []

    def listen() -> None:
        for event in ControllerClient(client.url).events():
            told.append(event)
            if event.event == "job_created":
                return

    listener = threading.Thread(target=listen)
    listener.start()
    until(lambda: told, "a first snapshot")
    client.create_job(4, SSP(2))
    listener.join(60)
    assert not listener.is_alive()
    first, last = told[0], told[-1]
    assert isinstance(first, Snapshot) and first.status.jobs == []
    assert isinstance(last, Event) and last.job == 0


def test_restarted_worker_gets_new_epoch_and_incarnation(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:2], Quorum(1))
    worker = hosts[1]
    answer = worker.ask(lambda: worker.push(0, 1, [3], session=session, epoch=1, seq=5), Op.ANSWER)
    assert answer["seen"] == 5
    before, worker.incarnation = worker.incarnation, 77
    welcome = worker.ask(lambda: worker.hello(0, 1, 5, session), Op.WELCOME)
    assert (welcome["epoch"], welcome["incarnation"]) == (2, 77)
    job = client.job(0)
    assert job.workers[1].incarnation == 77
    assert job.history[-1].reason == "worker 1 restarted"

    strangers = client.status().switch.drops["stranger"]
    worker.push(0, 1, [3], session=session, epoch=2, seq=6, incarnation=before)
    until(lambda: client.status().switch.drops["stranger"] == strangers + 1, "the earlier process is a stranger")
    worker.ask(lambda: worker.push(0, 1, [3], session=session, epoch=2, seq=6), Op.ANSWER)


def test_controller_reply_carries_session_of_its_request(client: ControllerClient, hosts: list[Host]) -> None:
    """A process that is in a later session by then can ignore it. The same holds for the reply at the job's end."""
    client.create_job(2, BSP())
    assert hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WAIT)["session"] == 0
    session = join(hosts[:2], 0)[0]["session"]
    refused = hosts[2].ask(lambda: hosts[2].hello(0, 0, 5, session=session - 1), Op.REFUSED)
    assert refused["session"] == session - 1
    bye = hosts[0].ask(lambda: hosts[0].send(Op.LEAVE, 0, 0, b"{}", session=session), Op.BYE)
    assert bye["session"] == session
    hosts[1].forget()
    client.delete_job(0)
    assert hosts[1].ask(lambda: None, Op.REFUSED)["session"] == session  # beside a WELCOME that comes late


def test_wait_reply_names_workers_that_have_not_joined(client: ControllerClient, hosts: list[Host]) -> None:
    client.create_job(4, BSP())
    wait = hosts[1].ask(lambda: hosts[1].hello(0, 1, 5), Op.WAIT)
    assert (wait.text, wait["incarnation"]) == ("job 0 waits for workers 0, 2, 3", hosts[1].incarnation)
