"""Controllers that start, compete, die and are replaced; switches that go away. All processes are real."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import pytest

from serene.controller.http.client import Rejected
from serene.program import Program
from serene.strategy import ASP, BSP, SSP, Mixed
from serene.wire import Op
from tests.controller.hosts import Host, ethernet, join
from tests.controller.processes import PATIENCE_S, Start, SwitchProcess, metrics, serenectl, started, until
from tests.ports import some_port


def up(switch: SwitchProcess, *options: str) -> subprocess.CompletedProcess[str]:
    return serenectl("up", "--foreground", "--switch", switch.grpc, "--http", f"127.0.0.1:{some_port()}", *options)


@pytest.mark.targets("embedded")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_controller_cleanly_with_a_listener(start: Start, stop: signal.Signals) -> None:
    """Other tests end their controllers with SIGTERM."""
    controller = start()
    events = controller.client.events()
    next(events)
    controller.process.send_signal(stop)
    controller.process.send_signal(stop)
    assert controller.process.wait(60) == 0
    for _ in events:  # the stream ends, and is not cut off
        pass
    assert "Traceback" not in controller.log.read_text()


def test_controller_with_the_higher_election_id_has_the_switch(
    switch: SwitchProcess, start: Start, hosts: list[Host]
) -> None:
    first = start("--election-id", "5")
    session = started(first.client, hosts[:2], BSP())
    refused = up(switch, "--election-id", "3")
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        1,
        f"error: another controller (election id 5) is primary for the switch at {switch.grpc}; "
        "take over with --election-id N > 5",
    )
    second = start("--election-id", "6")
    trouble = until(lambda: first.client.status().switch.trouble, "the first one notices")
    assert "another controller (election id 6) is primary for the switch" in str(trouble)
    with pytest.raises(Rejected, match="unreachable") as rejected:
        first.client.set_strategy(0, ASP())
    assert rejected.value.status == 503
    assert second.client.set_strategy(0, SSP(2)).epoch == 2
    answer = hosts[0].ask(lambda: hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1), Op.ANSWER)
    assert answer["epoch"] == 2
    second.kill()
    until(lambda: first.client.status().switch.connected, "the first one has the switch back")
    assert first.client.set_strategy(0, ASP()).epoch == 3, "epochs grow, whoever gives them out"
    assert [past.reason for past in first.client.job(0).history] == ["started", "taken over", "requested"]


def test_jobs_of_a_killed_controller_are_taken_over(start: Start, hosts: list[Host]) -> None:
    """Job 0 runs. The first process of job 1 was paused when another took its place: its packets would pass for repeats
    of the other's, nothing would be added, and nobody would be notified."""
    first = start()
    session = started(first.client, hosts[:2], BSP())
    first.client.set_strategy(0, Mixed((1,)))
    hosts[1].ask(lambda: hosts[1].push(0, 1, [4], session=session, epoch=2, seq=1), Op.ANSWER)
    first.client.create_job(1, ASP())
    worker = hosts[2]
    other = worker.ask(lambda: worker.hello(1, 0, 5), Op.WELCOME)["session"]
    paused, worker.incarnation = worker.incarnation, 77
    worker.ask(lambda: worker.hello(1, 0, 5), Op.WELCOME)
    worker.ask(lambda: worker.push(1, 0, [1], session=other, epoch=2, seq=1), Op.ANSWER)
    first.kill()

    second = start()
    assert "was running already" in second.log.read_text()
    job = second.client.job(0)
    assert (job.state, job.session, job.epoch) == ("running", session, 2)
    assert job.strategy == Mixed((1,))
    assert [worker.port for worker in job.workers] == [1, 2]
    assert job.workers[1].contributions == 1
    answer = hosts[1].ask(lambda: hosts[1].push(0, 1, [4], session=session, epoch=2, round=1, seq=2), Op.ANSWER)
    assert answer["total"] == 2, "the sums are as they were"
    worker.incarnation = paused
    refused = worker.ask(lambda: worker.hello(1, 0, 5, other, epoch=1), Op.REFUSED, Op.WELCOME)
    assert refused.text == "another process has taken the place of worker 0 of job 1"
    assert second.client.job(1).workers[0].incarnation == 77
    second.client.delete_job(0)
    second.client.create_job(1, BSP(), job=0)
    assert join(hosts[:1], 0)[0]["session"] > session


@pytest.mark.targets("embedded")
def test_status_reports_a_disconnected_switch(switch: SwitchProcess, start: Start) -> None:
    controller = start()
    controller.client.create_job(1, BSP())
    switch.kill()
    until(lambda: not controller.client.status().switch.connected, "the loss is noticed")
    assert switch.grpc in str(controller.client.status().switch.trouble)
    assert "\nserene_switch_up 0.0\n" in metrics(controller.client).text
    assert controller.client.create_job(1, BSP()).job == 1
    switch.start()
    until(lambda: controller.client.status().switch.connected, "the controller finds it again")


def test_another_program_is_replaced_and_leaves_no_multicast(
    switch: SwitchProcess, start: Start, hosts: list[Host]
) -> None:
    """BMv2 keeps multicast members across programs, unless they are deleted first."""
    for program in ("serene_jumbo", "serene"):
        controller = start("--program", program)
        assert f"program {program} pushed" in controller.log.read_text()
        assert controller.client.status().switch.lanes == Program.load(program).lanes
        assert controller.stop() == 0
    for host in hosts:
        host.forget()
    frame = ethernet("ff:ff:ff:ff:ff:ff", "02:00:00:00:00:aa")
    hosts[0].link.send(frame)
    assert hosts[1].link.receive(PATIENCE_S) == frame
    assert hosts[1].link.receive(0.3) is None


def test_p4info_of_another_program_is_refused(switch: SwitchProcess, start: Start, tmp_path: Path) -> None:
    """The switch's own message is shown, and nothing remains that would prevent the right program."""
    right = Program.load("serene")
    (tmp_path / "odd.json").write_bytes(right.config_path.read_bytes())
    text = right.p4info_path.read_text().replace("SereneIngress.admission.policy", "SereneIngress.admission.police")
    (tmp_path / "odd.p4info.txtpb").write_text(text)
    refused = up(switch, "--program", str(tmp_path / "odd.json"))
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(f"error: the switch at {switch.grpc} refused: ")
    assert start().client.status().switch.connected


@pytest.mark.targets("embedded")
def test_up_in_the_background_prints_addresses_and_can_be_ended(
    switch: SwitchProcess, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A second ``up`` and the end are reported clearly, too."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    port = some_port()
    http = f"127.0.0.1:{port}"
    url = f"http://{http}"
    arguments = ["up", "--switch", switch.grpc, "--http", http, "--ports", "1-2"]
    started = serenectl(*arguments)
    try:
        assert started.returncode == 0, started.stderr
        pid_file = tmp_path / "serene" / f"controller-{port}.pid"
        pid = pid_file.read_text().strip()
        log = tmp_path / "serene" / f"controller-{port}.log"
        assert started.stdout == (
            f"switch {switch.grpc} (device 0), program serene: 8192 slots of 320 values; connected\n"
            "room for 2,621,440 values, 9.7 bytes of memory each (25 MB)\n"
            f"controller at {url}, pid {pid}, log {log}\nlive page: {url}/\n"
            f"from network namespaces of this machine: SERENE_CONTROLLER=unix:{log.with_suffix('.sock')}\n"
        )
        again = serenectl(*arguments)
        message = f"error: a controller runs at {url} already ('serenectl down' stops it)\n"
        assert (again.returncode, again.stderr) == (1, message)
        other = ["up", "--http", f"127.0.0.2:{port}", "--switch", f"127.0.0.1:{some_port()}", "--wait", "0.1"]
        assert serenectl(*other).returncode == 1
        assert "error" not in log.read_text(), "the log is of the controller at this address alone"
    finally:
        stopped = serenectl("down", controller=url)
    assert stopped.stdout == f"controller at {url} stopped; the switch keeps running\n"
    assert {path.name for path in pid_file.parent.iterdir()} == {log.name, f"controller-127.0.0.2-{port}.log"}
    assert serenectl("status", controller=url).returncode == 1


@pytest.mark.parametrize("background", [True, False])
def test_switch_that_never_answers_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    """Also by the command whose controller runs in the background. A server accepts the connection and sends
    nothing."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        asked = ["--switch", address, "--http", f"127.0.0.1:{some_port()}", "--wait", "0.2"]
        failed = serenectl("up", *asked, *([] if background else ["--foreground"]))
    reason = f"no P4Runtime switch answered at {address} within 0.2 s: check that it runs, and --switch HOST:PORT\n"
    assert failed.returncode == 1
    assert failed.stderr == f"error: {reason}" if background else failed.stderr.endswith(reason)
