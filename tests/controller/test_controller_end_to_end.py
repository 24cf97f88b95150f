"""The controller on a real switch, with hosts that speak in whole frames.

What these tests cannot see: the client library, and training.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from serene.controller.http.client import ControllerClient, Rejected
from serene.controller.status.model import Event, Snapshot
from serene.strategy import ASP, BSP, SSP, Quorum
from serene.wire import Op, ReadMode
from tests.controller.hosts import Host, join, started
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


REFUSALS = [  # job, worker, vector_length
    (5, 0, 5, "there is no job 5 (jobs: 0)"),
    (8, 0, 5, "there is no job 8 (jobs: 0)"),  # more than a switch has
    (255, 32, 5, "there is no job 255 (jobs: 0)"),
    (0, 2, 5, "job 0 has no worker 2: expected 0 to 1"),
    (0, 255, 5, "job 0 has no worker 255: expected 0 to 1"),
    (0, 1, 6, "vector_length 6: expected 5, which the other workers of job 0 have"),
]


def test_hello_with_wrong_numbers_is_refused_with_a_reason(client: ControllerClient, hosts: list[Host]) -> None:
    client.create_job(2, BSP())
    hosts[0].hello(0, 0, 5)
    until(lambda: client.job(0).workers[0].state == "joined", "worker 0 joined")
    for job, worker, vector_length, reason in REFUSALS:
        hosts[1].incarnation += 1  # or the next refusal would come later
        refused = hosts[1].ask(partial(hosts[1].hello, job, worker, vector_length), Op.REFUSED)
        assert (refused.text, refused["job"], refused["worker"]) == (reason, job, worker)


def test_hello_for_a_taken_place_from_another_port_is_refused(client: ControllerClient, hosts: list[Host]) -> None:
    started(client, hosts[:1], BSP())
    thief = hosts[2]
    thief.ip, thief.mac, thief.udp_port = hosts[0].ip, hosts[0].mac, hosts[0].udp_port
    refused = thief.ask(lambda: thief.hello(0, 0, 5), Op.REFUSED)
    assert refused.text == (
        "worker 0 of job 0 is at port 1 (02:00:00:00:00:01, 10.0.0.1:40001), "
        "not at port 3 (02:00:00:00:00:01, 10.0.0.1:40001)"
    )


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


def test_dropped_packets_are_counted_by_reason(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:1], BSP())
    before = client.status().switch.drops
    hosts[0].push(0, 0, [1], session=session + 1, epoch=1, seq=1)
    hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1, slot=1)
    hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1, round=1)
    hosts[1].push(0, 0, [1], session=session, epoch=1, seq=1)
    hosts[0].send(Op.PUSH, 0, 0, bytes(8))
    expected = {
        **before,
        **{
            reason: before[reason] + 1
            for reason in ("wrong_session", "wrong_slot", "wrong_round", "stranger", "malformed")
        },
    }
    until(lambda: client.status().switch.drops == expected, f"drops become {expected}")


def test_reports_reach_the_status_and_bad_json_is_ignored(client: ControllerClient, hosts: list[Host]) -> None:
    started(client, hosts[:1], BSP())
    hosts[0].report(0, 0, iteration=3, loss=0.5, state="computing")
    told = until(lambda: client.job(0).workers[0].report, "the report arrives")
    assert told == {"iteration": 3, "loss": 0.5, "state": "computing"}
    hosts[0].send(Op.REPORT, 0, 0, b"{no json")
    hosts[0].send(Op.REPORT, 0, 0, b'{"iteration": 4, "loss": NaN, "accuracy": 1e999}')
    until(lambda: report(client)["iteration"] == 4, "a bad report does no harm")
    assert report(client) == {"iteration": 4, "loss": None, "accuracy": None}


def test_two_jobs_share_the_switch(client: ControllerClient, hosts: list[Host]) -> None:
    client.create_job(1, BSP())
    client.create_job(1, ASP())
    first, second = join(hosts[:1], 0)[0], hosts[1].ask(lambda: hosts[1].hello(1, 0, 5), Op.WELCOME)
    assert second["session"] > first["session"]
    assert [job.first_slot for job in client.jobs()] == [0, 1]
    hosts[0].ask(lambda: hosts[0].push(0, 0, [1], session=first["session"], epoch=1, seq=1), Op.ANSWER)
    answer = hosts[1].ask(lambda: hosts[1].push(1, 0, [5], session=second["session"], epoch=1, seq=1), Op.ANSWER)
    assert answer.body[:4] == (5).to_bytes(4, "big")


def test_hosts_reach_each_other_through_mac_learning(client: ControllerClient, hosts: list[Host]) -> None:
    """A learning switch floods at first, then sends to one port, and after a move to the new one."""

    def ethernet(destination: str, source: str, text: bytes) -> bytes:
        return bytes.fromhex((destination + source).replace(":", "")) + b"\x88\xb5" + text.ljust(50, b".")

    def heard(host: Host, text: bytes, timeout_s: float) -> bool:
        frame = host.link.receive(timeout_s)
        while frame is not None and text not in frame:
            frame = host.link.receive(timeout_s)
        return frame is not None

    first, second, third = hosts
    first.link.send(ethernet(second.mac, first.mac, b"unknown"))
    assert heard(second, b"unknown", 60.0)
    assert heard(third, b"unknown", 60.0)
    sent = 0

    def learned(receiver: Host, others: Host) -> bool:
        nonlocal sent
        sent += 1
        text = b"to the first, %d" % sent
        second.link.send(ethernet(first.mac, second.mac, text))
        return heard(receiver, text, 1.0) and not heard(others, text, 0.1)

    until(lambda: learned(first, third), "frames for the first host reach its port only")
    third.link.send(ethernet(second.mac, first.mac, b"moved"))
    assert heard(second, b"moved", 60.0)
    until(lambda: learned(third, first), "frames for the first host reach its new port only")
    first.link.send(ethernet(second.mac, first.mac, b"and back"))
    until(lambda: learned(first, third), "frames for the first host reach its port again")


def test_bad_requests_are_rejected_with_a_reason(client: ControllerClient) -> None:
    client.create_job(2, BSP())
    calls: list[tuple[Callable[[], object], int, str]] = [
        (lambda: client.job(3), 404, "there is no job 3 (jobs: 0)"),
        (lambda: client.set_strategy(0, Quorum(3)), 422, "a quorum of 3 of 2 workers: expected 1 to 2"),
        (lambda: client.create_job(33, BSP()), 422, "a job of 33 workers: expected 1 to 32"),
        (lambda: client.create_job(1, BSP(), job=8), 422, "job 8: expected 0 to 7"),
        (lambda: client.create_job(1, BSP(), job=0), 409, "job 0 is waiting: 'serenectl jobs delete --job 0' first, or "
         "choose another id"),
        (lambda: client.create_job(4, BSP(), places=3), 422, "places 3: expected 4 (the number of workers) to 32"),
        (
            lambda: client.create_job(4, BSP(), places=5, pool_slots=4), 422,
            "places, minimum and evict_after do not apply to a pool (pool_slots)",
        ),
        (
            lambda: client.create_job(32, BSP(), scale=2**24), 422,
            "limit 8 with scale 16777216 cannot hold one round of 32 workers: expected a limit of 5.96046e-08 to 4",
        ),
    ]  # fmt: skip
    for call, status, error in calls:
        with pytest.raises(Rejected) as rejected:
            call()
        assert rejected.value.status == status and error in str(rejected.value)


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
