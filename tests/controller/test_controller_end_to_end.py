"""The controller on a real switch, with hosts that speak in whole frames.

What these tests cannot see: the client library, and training.
"""

from __future__ import annotations

import time

from serene.controller.admission.admission import ANSWER_INTERVAL_S
from serene.controller.http.client import ControllerClient
from serene.controller.status.metrics import CONTENT_TYPE
from serene.controller.status.model import Event, Explanation, Snapshot
from serene.strategy import ASP, BSP, SSP, Quorum
from serene.wire import Op, ReadMode
from tests.controller.hosts import Host, ethernet, join, reaches_only
from tests.controller.processes import leave_until_over, metrics, report, serenectl, started, states, until


def test_job_starts_when_all_workers_have_joined(client: ControllerClient, hosts: list[Host]) -> None:
    """The event stream begins with a snapshot, and reports the job."""
    events = ControllerClient(client.url).events()
    first = next(events)
    assert isinstance(first, Snapshot) and first.status.jobs == []
    switch = first.status.switch
    assert (switch.connected, switch.trouble, switch.program) == (True, None, "serene")
    assert (switch.lanes, switch.slots) == (320, 8192)
    job = client.create_job(3, BSP())
    assert (job.job, job.state, job.epoch) == (0, "waiting", 0)
    created = next(event for event in events if isinstance(event, Event))
    assert (created.event, created.job) == ("job_created", 0)
    wait = hosts[0].ask(lambda: hosts[0].hello(0, 0, 700), Op.WAIT)
    assert (wait.text, wait["incarnation"]) == ("job 0 waits for workers 1, 2", hosts[0].incarnation)
    job = client.job(0)
    assert (job.state, job.workers[0].state, job.workers[0].port) == ("waiting", "joined", 1)
    done = serenectl("explain", "--controller", client.url)
    assert "job 0 waits for workers 1 and 2 to join before it starts under BSP" in done.stdout

    welcomes = join(hosts, 0, 700)
    until(lambda: client.job(0).state == "running", "the controller, too, knows that it runs")
    job = client.job(0)
    assert job.slots == 3
    for worker, welcome in enumerate(welcomes):
        assert (welcome["worker"], welcome["epoch"], welcome["session"]) == (worker, 1, job.session)
        assert (welcome["sync_mask"], welcome["staleness"], welcome["quorum"]) == (0b111, 0, 3)
        assert welcome["read_mode"] == ReadMode.SNAPSHOT
    assert [change.reason for change in job.history] == ["started"]


def test_running_job_is_counted_explained_and_swapped(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:2], BSP())
    hosts[0].push(0, 0, [1, 2], session=session, epoch=1, seq=1)

    def blocked() -> Explanation | None:
        hosts[0].report(0, 0, state="waiting", at_epoch=1, at_round=0)
        hosts[1].report(0, 1, state="computing", at_epoch=1, at_round=0)
        explanation = client.explain(0, 0).workers[0]
        return explanation if explanation.waits_for else None

    explanation = until(blocked, "worker 0 is shown as waiting")
    assert (explanation.waits_for, explanation.round, explanation.epoch) == ([1], 0, 1)
    assert "worker 0 waits in round 0 of epoch 1 for worker 1 to contribute to its round (1 is comp" in explanation.text
    done = serenectl("explain", "--worker", "0", "--controller", client.url)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "job 0 runs under BSP, epoch 1")
    answer = hosts[1].ask(lambda: hosts[1].push(0, 1, [10, 20], session=session, epoch=1, seq=1), Op.ANSWER)
    assert (answer["total"], answer["seq"]) == (2, 1)
    assert answer.body[:8] == (11).to_bytes(4, "big") + (22).to_bytes(4, "big")
    hosts[1].ask(lambda: hosts[1].push(0, 1, [10, 20], session=session, epoch=1, seq=1), Op.ANSWER)

    def counted() -> bool:
        """BMv2 counts an answer to one host after it has sent another its own."""
        first, second = client.job(0).workers
        assert (first.contributions, first.blocked, second.contributions) == (1, 1, 1) and second.repeats >= 1
        return (first.releases, first.iteration, second.answers) == (1, 1, second.repeats + 1)

    until(counted, "all that has been sent is counted")
    assert client.status().switch.totals.contributions == 2
    answered = metrics(client)
    assert answered.headers["content-type"] == CONTENT_TYPE
    assert 'serene_worker_contributions_packets_total{job="0",worker="1"} 1.0' in answered.text

    hosts[0].push(0, 0, [1], session=session, epoch=1, seq=2, round=1)
    until(lambda: client.job(0).workers[0].blocked == 2, "worker 0 waits again")
    before = client.job(0).workers[0].answers
    staleness = int(str(explanation.advice).split("--staleness ")[1].split("'")[0])
    change = client.set_strategy(0, SSP(staleness))  # what the explanation advises
    assert (change.epoch, change.strategy, change.before) == (2, SSP(1), BSP())
    hosts[0].push(0, 0, [1], session=session, epoch=2, seq=2)
    until(lambda: client.job(0).workers[0].answers == before + 1, "it continues")
    hosts[0].forget()
    answer = hosts[0].ask(lambda: hosts[0].push(0, 0, [1], session=session, epoch=2, seq=2), Op.ANSWER)
    assert (answer["epoch"], answer["sync_mask"], answer["staleness"]) == (2, 0b11, 1)
    client.set_strategy(0, ASP())
    answer = hosts[0].ask(lambda: hosts[0].push(0, 0, [1], session=session, epoch=2, seq=3), Op.ANSWER)
    assert (answer["epoch"], answer["sync_mask"], answer["read_mode"]) == (3, 0, ReadMode.LATEST)
    client.set_strategy(0, BSP())
    assert (client.evict(0, 0).epoch, states(client)) == (5, ["evicted", "running"])
    hosts[1].forget()
    answer = hosts[1].ask(lambda: hosts[1].push(0, 1, [10], session=session, epoch=5, seq=2), Op.ANSWER)
    assert (answer["epoch"], answer["sync_mask"]) == (5, 0b10), "nobody waits for an evicted worker"
    assert (client.readmit(0, 0).epoch, states(client)) == (6, ["running", "running"])
    history = client.job(0).history
    assert [past.strategy.name for past in history] == ["bsp", "ssp", "asp", "bsp", "bsp", "bsp"]
    assert sorted(past.t for past in history) == [past.t for past in history]


def test_reports_reach_the_status_and_bad_json_is_ignored(client: ControllerClient, hosts: list[Host]) -> None:
    started(client, hosts[:1], BSP())
    hosts[0].report(0, 0, iteration=3, loss=0.5, state="computing")
    latest = until(lambda: client.job(0).workers[0].report, "the report arrives")
    assert latest == {"iteration": 3, "loss": 0.5, "state": "computing"}
    hosts[0].send(Op.REPORT, 0, 0, b"{no json")
    hosts[0].send(Op.REPORT, 0, 0, b'{"iteration": 4, "loss": NaN, "accuracy": 1e999}')
    until(lambda: report(client)["iteration"] == 4, "a bad report does no harm")
    assert report(client) == {"iteration": 4, "loss": None, "accuracy": None}


def test_repeated_refusals_are_rate_limited(client: ControllerClient, hosts: list[Host]) -> None:
    host, began = hosts[0], time.monotonic()
    host.udp_port = 50000  # a source that has not been refused yet
    for vector_length in range(1, 21):  # the same request again would be one
        host.say_hello(7, 0, vector_length)
    refused: list[int] = []
    while not refused or refused[-1] != 1:  # a port's requests are served in their order
        refused.append(host.ask(lambda: host.say_hello(7, 1, 5), Op.REFUSED)["worker"])
    first = refused.count(0)
    assert 1 <= first <= 1 + (time.monotonic() - began) / ANSWER_INTERVAL_S


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
    leave_until_over(hosts[2], 2)


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


def test_restarted_worker_gets_new_epoch_and_incarnation(client: ControllerClient, hosts: list[Host]) -> None:
    session = started(client, hosts[:2], Quorum(1))
    worker = hosts[1]
    answer = worker.ask(lambda: worker.push(0, 1, [3], session=session, epoch=1, seq=5), Op.ANSWER)
    assert answer["seen"] == 5
    before, worker.incarnation = worker.incarnation, 77
    welcome = worker.ask(lambda: worker.hello(0, 1, 5, session), Op.WELCOME)
    assert (welcome["epoch"], welcome["incarnation"]) == (2, 77)
    until(lambda: client.job(0).workers[1].incarnation == 77, "the controller has the new process on record")
    assert client.job(0).history[-1].reason == "worker 1 restarted"

    strangers = client.status().switch.drops["stranger"]
    worker.push(0, 1, [3], session=session, epoch=2, seq=6, incarnation=before)
    until(lambda: client.status().switch.drops["stranger"] == strangers + 1, "the earlier process is a stranger")
    worker.ask(lambda: worker.push(0, 1, [3], session=session, epoch=2, seq=6), Op.ANSWER)


def test_controller_replies_carry_sessions_and_deleted_jobs_are_gone(
    client: ControllerClient, hosts: list[Host]
) -> None:
    """A process that is in a later session by the time of a reply can ignore it. The job has all slots of the switch,
    which are free for the next one."""
    client.create_job(2, BSP())
    assert hosts[0].ask(lambda: hosts[0].hello(0, 0, 320 * 8192), Op.WAIT)["session"] == 0
    session = join(hosts[:2], 0, 320 * 8192)[0]["session"]
    refused = hosts[2].ask(lambda: hosts[2].hello(0, 0, 5, session=session - 1), Op.REFUSED)
    assert refused["session"] == session - 1
    bye = hosts[0].ask(lambda: hosts[0].send(Op.LEAVE, 0, 0, b"{}", session=session), Op.BYE)
    assert bye["session"] == session
    hosts[1].forget()
    strangers = client.status().switch.drops["stranger"]
    client.delete_job(0)
    assert hosts[1].ask(lambda: None, Op.REFUSED)["session"] == session  # beside a WELCOME that comes late
    hosts[1].push(0, 1, [1], session=session, epoch=1, seq=1)
    until(lambda: client.status().switch.drops["stranger"] > strangers, "the push is a stranger's")
    client.create_job(2, BSP())
    assert join(hosts[:2], 0, 320 * 8192)[0]["session"] > session
