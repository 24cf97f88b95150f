"""Workers that come back, stay away, or are another process: on a real switch, with hosts that send whole frames."""

from __future__ import annotations

from functools import partial

import pytest

from serene.controller.http.client import ControllerClient, Rejected
from serene.strategy import ASP, BSP, Quorum
from serene.wire import SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, Op, control_payload, encapsulation
from tests.controller.hosts import Host, join, started
from tests.controller.processes import states, until

# -- the same place, another life ----------------------------------------------------------------------------


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


@pytest.mark.parametrize("running", [False, True])
def test_later_of_two_living_processes_keeps_the_place(
    client: ControllerClient, hosts: list[Host], running: bool
) -> None:
    """They do not take the place from each other in turns."""
    client.create_job(2, ASP())
    if running:
        join(hosts[:2], 0)
    worker = hosts[1]
    refused = set()
    for incarnation in [501, 502] * 10:
        worker.incarnation = incarnation
        worker.hello(0, 1, 5)
        answer = worker.hear(0.1)
        while answer is not None:
            if answer.op is Op.REFUSED:
                refused.add(answer["incarnation"])
            answer = worker.hear(0.02)
        if not running and incarnation == 501:
            until(lambda: client.job(0).workers[1].incarnation is not None, "it has joined")
    if not running:

        def runs() -> bool:
            hosts[0].hello(0, 0, 5)
            return client.job(0).state == "running"

        until(runs, "the other one comes")
    worker.incarnation = 501
    assert "another process" in worker.ask(lambda: worker.hello(0, 1, 5), Op.REFUSED).text
    worker.incarnation = 502
    assert worker.ask(lambda: worker.hello(0, 1, 5), Op.WELCOME)["worker"] == 1
    assert client.job(0).workers[1].incarnation == 502
    assert client.job(0).epoch <= 3
    assert refused <= {501}


def test_leave_of_an_earlier_incarnation_changes_nothing(client: ControllerClient, hosts: list[Host]) -> None:
    started(client, hosts[:2], BSP())
    worker = hosts[1]
    before, worker.incarnation = worker.incarnation, 79
    worker.ask(lambda: worker.hello(0, 1, 5), Op.WELCOME)
    for _ in range(3):
        worker.send(Op.LEAVE, 0, 1, b"{}", incarnation=before)
    worker.report(0, 1, iteration=1)
    until(lambda: client.job(0).workers[1].report, "a report that came later is here")
    assert states(client) == ["running", "running"]
    bye = worker.ask(lambda: worker.leave(0, 1), Op.BYE)
    assert bye["incarnation"] == 79
    assert worker.ask(lambda: worker.leave(0, 1), Op.BYE).text == '{"job_over": false}', "as often as it likes"
    assert client.job(0).epoch == 3


# -- sessions ------------------------------------------------------------------------------------------------


def test_paused_worker_of_a_deleted_job_gets_no_new_place(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:2], BSP())
    client.delete_job(0)
    assert hosts[0].ask(lambda: None, Op.REFUSED).text == "job 0 was deleted"
    hosts[1].forget()
    client.create_job(2, BSP())
    refused = hosts[0].ask(lambda: hosts[0].hello(0, 0, 5, session), Op.REFUSED)
    assert refused.text.startswith(f"session {session} of job 0 is over; the id belongs to a new job")
    assert states(client) == ["expected", "expected"]
    later = join(hosts[:2], 0)[0]["session"]
    assert later > session
    hosts[1].incarnation += 1
    refused = hosts[1].ask(lambda: hosts[1].hello(0, 1, 5, session), Op.REFUSED)
    assert refused.text.startswith(f"session {session} of job 0 is over")
    assert hosts[1].ask(lambda: hosts[1].hello(0, 1, 5, later), Op.WELCOME)["session"] == later


# -- telling a worker what is wrong --------------------------------------------------------------------------


def test_wait_reply_names_workers_that_have_not_joined(client: ControllerClient, hosts: list[Host]) -> None:
    client.create_job(4, BSP())
    wait = hosts[1].ask(lambda: hosts[1].hello(0, 1, 5), Op.WAIT)
    assert (wait.text, wait["incarnation"]) == ("job 0 waits for workers 0, 2, 3", hosts[1].incarnation)
    hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WAIT)
    hosts[2].ask(lambda: hosts[2].hello(0, 2, 5), Op.WAIT)
    wait = hosts[1].ask(lambda: hosts[1].hello(0, 1, 5), Op.WAIT)
    until(lambda: hosts[1].ask(lambda: hosts[1].hello(0, 1, 5), Op.WAIT).text == "job 0 waits for worker 3", "only one")


def test_welcome_carries_the_job_limit(client: ControllerClient, hosts: list[Host]) -> None:
    assert client.create_job(1, BSP(), scale=1000, limit=2.5).limit == 2.5
    welcome = hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WELCOME)
    assert int.from_bytes(welcome.body[12:16], "big") == 2500
    with pytest.raises(Rejected, match=r"expected a limit of 9\.53674e-07 to 2048, or a scale of 1 to 2$"):
        client.create_job(1, BSP(), limit=1e9)


def test_packets_forging_the_switch_address_are_dropped(client: ControllerClient, hosts: list[Host]) -> None:
    payload = control_payload(Op.REFUSED, b"go away")
    ends = {"source": (SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT), "destination": (hosts[1].mac, hosts[1].ip, 40002)}
    before = client.status().switch.drops["impostor"]
    hosts[0].link.send(encapsulation(len(payload), **ends) + payload)
    until(lambda: client.status().switch.drops["impostor"] == before + 1, "it is dropped")
    assert hosts[1].hear(0.2) is None


# -- evicted workers, and controllers that take over ---------------------------------------------------------


def test_evicted_worker_keeps_its_job_alive(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts, BSP())
    client.evict(0, 2)
    for worker in (0, 1):
        bye = hosts[worker].ask(partial(hosts[worker].leave, 0, worker), Op.BYE)
        assert bye.text == '{"job_over": false}'
    job = client.job(0)
    assert (job.state, states(client)) == ("running", ["left", "left", "evicted"])
    for seq in (1, 2, 3):
        epoch = client.job(0).epoch
        answer = hosts[2].ask(partial(hosts[2].push, 0, 2, [1], session=session, epoch=epoch, seq=seq), Op.ANSWER)
        assert (answer["sync_mask"], answer["members"]) == (0, 1)
    hosts[2].incarnation += 1
    assert hosts[2].ask(lambda: hosts[2].hello(0, 2, 5, session), Op.WELCOME)["epoch"] > job.epoch, "not refused"
    assert hosts[2].ask(lambda: hosts[2].leave(0, 2), Op.BYE).text == '{"job_over": true}'
    assert client.job(0).state == "finished"


def test_deletion_while_workers_join_mixes_no_jobs(client: ControllerClient, hosts: list[Host]) -> None:
    """A job with the same id is created and deleted again while the earlier one's workers ask: no worker joins two
    jobs."""
    sessions = []
    for turn in range(6):
        client.create_job(2, BSP())
        hosts[0].hello(0, 0, 5)
        client.delete_job(0)
        client.create_job(2, BSP(), scale=1000 + turn)
        sessions.append(join(hosts[:2], 0)[0]["session"])
        job = client.job(0)
        assert (job.session, job.scale) == (sessions[-1], 1000 + turn)
        client.delete_job(0)
        for host in hosts[:2]:
            host.incarnation += 1
            host.forget()
    assert sessions == sorted(set(sessions))
