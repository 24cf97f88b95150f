"""`serenectl up --local`: an embedded switch with the controller, which programs on this machine find and use."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from serene.client import Pool
from serene.controller import daemon
from serene.controller.commands import background, cli
from serene.controller.commands import local as local_commands
from serene.controller.commands.background import NoFolder
from serene.controller.http.client import ControllerClient, NoController, Rejected
from serene.controller.settings import ShmPort, UdpPort
from serene.process.interrupts import allowed, ended
from serene.strategy import BSP
from serene.torch.opening import Controller, NotOpened, transport_to
from tests.controller.processes import listens, missing, until
from tests.disks import disk, fill
from tests.ports import some_port, some_ports
from tests.torch.local import Local, there

SERENECTL = (sys.executable, "-m", "serene.controller")


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")


@contextmanager
def addresses(folder: Path) -> Iterator[Local]:
    """For a local switch and its controller, which are stopped afterwards if they run."""
    made = there(folder)
    yield made
    made.serenectl("down", "--force")
    made.client.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    """Which a test starts."""
    with addresses(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with addresses(tmp_path_factory.mktemp("shared")) as made:
        made.up("--ports", "1-3")
        yield made


@pytest.fixture
def running(shared: Local, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    """One that runs, with three ports, for tests that leave it as it is; programs of this process use it."""
    monkeypatch.setenv("SERENE_CONTROLLER", shared.client.url)
    yield shared
    for job in shared.client.jobs():
        try:
            shared.client.delete_job(job.job)
        except Rejected as gone:  # the controller removes a job whose processes have ended
            assert f"there is no job {job.job}" in str(gone)


def record(local: Local) -> Path:
    return local.folder / f"switch-{local.switch.rpartition(':')[2]}.json"


def kill_switch(local: Local) -> None:
    os.kill(json.loads(record(local).read_text())[0], signal.SIGKILL)


def answers(local: Local) -> bool:
    """Whether the controller does."""
    try:
        return bool(local.client.status())
    except NoController:
        return False


@pytest.fixture
def here(local: Local, monkeypatch: pytest.MonkeyPatch) -> Local:
    """This process starts and stops the local switch, as serenectl does."""
    local.folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(local.folder.parent))
    return local


def test_programs_lease_and_use_shared_memory_ports(running: Local) -> None:
    """They sum through their ports."""
    switch = running.client.status().switch
    assert [port.port for port in switch.shm_ports] == [1, 2, 3] and not switch.udp_ports
    access = Controller().create(2)
    ways = [transport_to(access, 0) for _ in range(3)]
    with pytest.raises(NotOpened, match=r"all 3 local ports .* are taken .*another process has it"):
        transport_to(access, 1)
    ways.pop().close()
    gone = replace(access, shm_ports=[(1, str(running.folder / "nobody"))])
    with pytest.raises(NotOpened, match=r"nobody: no such path; check the switch with 'serenectl status'"):
        transport_to(gone, 0)

    def work(worker: int) -> np.ndarray:
        values = np.full(100_000, worker + 1, np.float32)
        with Pool(ways[worker], access.job, worker, slots=access.slots, lanes=access.lanes) as pool:
            pool.join()
            pool.all_reduce(values)
            pool.leave()
        return values

    with ThreadPoolExecutor(2) as threads:
        assert all((values == 3).all() for values in threads.map(work, range(2)))


def job_of_two() -> list[Pool]:
    """Both workers have joined."""
    access = Controller().create(2)
    pools = [
        Pool(transport_to(access, worker), access.job, worker, slots=access.slots, lanes=access.lanes)
        for worker in range(2)
    ]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(Pool.join, pools))
    return pools


@pytest.fixture
def at_ipv6(tmp_path: Path) -> Iterator[Local]:
    """Which a test starts: at an IPv6 address where there is IPv6, and in a folder with commas."""
    with addresses(tmp_path / "a,1b") as made:
        there = Path("/proc/net/if_inet6").exists()
        yield replace(made, switch=made.switch.replace("127.0.0.1", "[::1]")) if there else made


@pytest.mark.parametrize(("where", "options"), [("at_ipv6", []), ("local", ["--udp"])], ids=["shm", "udp"])
def test_local_switch_works_from_up_to_down(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, where: str, options: list[str]
) -> None:
    """A job of dead processes counts as running for 30 s more, but its ports are free again."""
    local: Local = request.getfixturevalue(where)
    local.up("--ports", "1-3", *options)
    assert {Path(port.path).parent for port in local.client.status().switch.shm_ports} <= {local.folder}
    monkeypatch.setenv("SERENE_CONTROLLER", local.client.url)
    for port in local.client.status().switch.udp_ports:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours, pytest.raises(OSError, match="in use"):
            ours.bind(("127.0.0.1", port.switch))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
            ours.bind(("127.0.0.1", port.host))
    pools = job_of_two()
    pools[0].close()
    refused = local.serenectl("down")
    assert refused.returncode == 1 and "job 0 is running" in refused.stderr and "--force" in refused.stderr
    for name, value in local.environment.items():
        monkeypatch.setenv(name, value)
    switch = local.client.status().switch
    ports: list[UdpPort | ShmPort] = [*switch.udp_ports, *switch.shm_ports]

    def free() -> list[bool]:
        return [local_commands.is_deserted(switch.address, ports, {port}) for port in (1, 2, 3)]

    until(lambda: free() == [True, False, True], "one process has let go of its port")
    pools[1].close()
    done = local.serenectl("down")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"controller at {local.client.url} stopped; the switch stopped, too\n"
    assert not listens(local.switch) and not list(local.folder.glob("*-port*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace takes root")
def test_down_in_another_network_namespace_stops_no_running_job(running: Local) -> None:
    """In that namespace the numbers of the switch's ports are free, although they are in use here."""
    pools = job_of_two()
    environment = {**running.environment, "SERENE_CONTROLLER": f"unix:{running.client.status().listening.socket}"}
    command = ["unshare", "--net", *SERENECTL, "down"]
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "job 0 is running" in refused.stderr, refused
    for pool in pools:
        pool.close()


def test_up_on_a_taken_local_switch_suggests_a_second_one(running: Local) -> None:
    http, *others = (f"127.0.0.1:{port}" for port in some_ports(2))
    refused = running.serenectl("up", "--local", "--switch", running.switch, "--http", http)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: another controller (election id 1) is primary for the switch"), refused
    assert refused.stderr.endswith(
        f". A local switch already runs at {running.switch}; --switch 127.0.0.1:PORT starts another one\n"
    )
    assert listens(running.switch)
    second = running.serenectl("up", "--local", "--switch", *others, "--http", http, "--ports", "1-2")
    assert second.returncode == 0, second
    assert not set(running.client.status().switch.shm_ports) & set(
        ControllerClient(f"http://{http}").status().switch.shm_ports
    )
    down = running.serenectl("down", "--controller", f"http://{http}")
    assert down.returncode == 0 and down.stdout.endswith("the switch stopped, too\n")
    assert running.client.status().switch.connected


def test_trace_asks_the_switch_of_the_named_controller(running: Local) -> None:
    refused = running.serenectl("trace", "--match", "x.y == 1")
    assert refused.returncode == 1 and refused.stderr.startswith(f"error: {running.switch}: no header 'x'"), refused


def test_precision_command_explains_that_there_is_no_job(running: Local) -> None:
    refused = running.serenectl("precision", "8")
    assert (refused.returncode, refused.stderr) == (
        1, "error: there is no job; create one with a program's init_process_group(\"serene\")\n",
    )  # fmt: skip
    running.client.create_job(2, BSP())
    same = running.serenectl("precision", "32")
    assert (same.returncode, same.stdout) == (0, "job 0: already 32 bits, no change\n")


def test_second_of_two_concurrent_ups_is_refused(local: Local) -> None:
    """The first one's files stay its own."""
    with ThreadPoolExecutor(2) as threads:
        done = sorted(threads.map(lambda _: local.serenectl(*local.starts), range(2)), key=lambda one: one.returncode)
    assert [one.returncode for one in done] == [0, 1], done
    assert done[1].stderr.count("\n") == 1 and "'serenectl" in done[1].stderr, done[1].stderr
    pid = int(next(local.folder.glob("controller-*.pid")).read_text())
    assert f"pid {pid}," in done[0].stdout
    assert b"--foreground" in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert listens(local.switch)


@pytest.mark.parametrize("signals", [[signal.SIGHUP], [signal.SIGTERM, signal.SIGINT, signal.SIGINT]])
def test_interrupted_up_leaves_no_switch(local: Local, signals: list[signal.Signals]) -> None:
    with subprocess.Popen([*SERENECTL, *local.starts], env=dict(local.environment), stderr=subprocess.PIPE) as starting:
        until(lambda: record(local).exists() and pid_of(record(local)) > 0, "the switch is being started")
        pid = pid_of(record(local))
        for number in signals:
            starting.send_signal(number)
        starting.communicate(timeout=60)
    assert starting.returncode == 130
    until(lambda: not Path(f"/proc/{pid}").exists(), "the switch has ended")


def pid_of(file: Path) -> int:
    """Of the switch that a record is about; 0: of none."""
    text = file.read_text()
    return int(json.loads(text)[0]) if text.endswith("]]") else 0


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IO[str]]:
    """The record of a switch at ADDRESS, which this process has the lock of."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with local_commands._record(ADDRESS).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


ADDRESS = "127.0.0.1:9"


def test_stop_ends_only_the_process_that_holds_the_record(held: IO[str]) -> None:
    ports = [UdpPort(1, 24200, 24201)]
    with subprocess.Popen(["sleep", "60"]) as other:
        held.write(json.dumps([other.pid, [[1, 24200, 24201]]]))
        held.flush()
        assert not local_commands.stop(ADDRESS, ports)
        assert other.poll() is None
        other.kill()


def test_switch_that_another_process_is_starting_is_reported(held: IO[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_commands, "RECORD_TIMEOUT_S", 0.1)
    with pytest.raises(local_commands.NoLocalSwitch, match="another process is starting or stopping the switch"):
        local_commands.start(ADDRESS, [1])


def test_switch_and_controller_outlive_each_other(
    local: Local, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise a group's ranks would wait for the switch until their timeout, half an hour by default. Nobody reads
    what the command prints, as after `serenectl up --local | head -1`: the controller runs and needs its switch."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as unread:
        command = [*SERENECTL, *local.starts, "--ports", "1-2"]
        subprocess.run(command, env=dict(local.environment), stdout=unread, check=False)
    ports = local.client.status().switch.shm_ports
    local.client.create_job(2, BSP())
    os.kill(int(next(local.folder.glob("controller-*.pid")).read_text()), signal.SIGKILL)

    until(lambda: not answers(local), "the controller is gone")
    switch = record(local).read_text()
    local.up()
    assert local.client.status().switch.shm_ports == ports
    assert record(local).read_text() == switch

    kill_switch(local)
    until(lambda: not local.client.status().switch.connected, "the controller has lost the switch")
    monkeypatch.setenv("SERENE_CONTROLLER", local.client.url)
    Controller().create(2)
    assert f"waits for its switch: no connection to a switch at {local.switch}" in caplog.text

    again = local.serenectl(*local.starts)
    message = f"the switch at {local.switch} had ended and runs again; the controller at {local.client.url} continues\n"
    assert (again.stdout, again.stderr) == (message, "")
    until(lambda: local.client.status().switch.connected, "the controller commands the new switch")
    assert local.client.status().switch.shm_ports == ports and len(local.client.jobs()) == 1
    again = local.serenectl(*local.starts)
    assert again.stderr.startswith(f"error: a controller runs at {local.client.url} already")

    kill_switch(local)
    until(lambda: not local.client.status().switch.connected, "the controller has lost the switch")
    stopped = local.serenectl("down", "--force").stdout
    assert stopped == f"controller at {local.client.url} stopped; its switch was not connected\n"


def test_restarted_local_switch_keeps_its_udp_ports_unless_they_are_taken(local: Local) -> None:
    """Programs that train through it learn at once from the new switch that their sums are lost. The controller, its
    jobs' workers and a switch with other ports would not find each other."""
    local.up("--udp", "--ports", "1-2")
    before = local.client.status().switch.udp_ports
    kill_switch(local)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
        program.bind(("127.0.0.1", before[0].host))
        until(lambda: not listens(local.switch), "the switch is gone")
        assert local.serenectl("down").returncode == 0
        local.up("--udp", "--ports", "1-2")
        assert local.client.status().switch.udp_ports == before
    until(lambda: pid_of(record(local)) > 0, "there is another switch")
    kill_switch(local)
    until(lambda: not local.client.status().switch.connected, "the controller has lost the switch")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.bind(("127.0.0.1", before[1].switch))
        again = local.serenectl(*local.starts)
        assert (again.returncode, again.stdout) == (1, "")
        assert again.stderr == (
            "error: the switch has ended, and another program has taken its ports: 'serenectl down --force', then "
            "start again\n"
        )
        assert not listens(local.switch)
        until(lambda: not Path(f"/proc/{pid_of(record(local))}").exists(), "the switch with other ports has ended")
        assert local.serenectl("down", "--force").returncode == 0
        local.up("--udp", "--ports", "1-2")
    status = local.client.status().switch
    assert status.connected and before[1] not in status.udp_ports


def test_foreground_up_ends_its_switch_with_the_controller(local: Local) -> None:
    command = [*SERENECTL, *local.starts, "--foreground"]
    process = subprocess.Popen(command, env=dict(local.environment), stderr=subprocess.PIPE)
    until(lambda: answers(local) or process.poll() is not None, "the controller answers")
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0
    assert not listens(local.switch)


def test_relative_runtime_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be a different folder for each current directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert background.place() == tmp_path / ".local/state/serene"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    assert background.place() == tmp_path / "run/serene"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("HOME", "relative")
    assert background.place().is_absolute(), "else a switch refuses its ports' paths"


def test_up_on_a_full_disk_reports_it_and_leaves_nothing(local: Local) -> None:
    local.folder.mkdir(parents=True)
    pid = local.folder / f"controller-{local.client.url.rpartition(':')[2]}.pid"
    pid.symlink_to("/dev/full")
    up = local.serenectl(*local.starts)
    assert up.returncode == 1
    assert up.stderr == (
        f"error: cannot write logs and pid files to {local.folder}: No space left on device; "
        "choose another folder with XDG_RUNTIME_DIR=/PATH\n"
    )
    assert not listens(local.switch)
    until(lambda: not listens(local.http), "the controller is gone")


def test_local_switch_on_a_full_disk_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with disk(tmp_path / "small", "1m") as small:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(small))
        background.folder()
        fill(small)
        with pytest.raises(NoFolder, match=f"{small}/serene: No space left on device"):
            local_commands.start(f"127.0.0.1:{some_port()}", [1])


def test_switch_without_a_writable_record_is_stopped(here: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    dumps = json.dumps

    def no_room_when_started(record: tuple[int, object]) -> str:
        if record[0] != local_commands.STARTING:
            started.append(record[0])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return dumps(record)

    with monkeypatch.context() as full:
        full.setattr("serene.controller.commands.local.json.dumps", no_room_when_started)
        with pytest.raises(NoFolder, match="No space left"):
            local_commands.start(here.switch, [1, 2])
    (pid,) = started
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_second_ctrl_c_during_up_leaves_no_switch(here: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    wait, started = subprocess.Popen.wait, []

    def first(process: subprocess.Popen[bytes], log: Path) -> None:
        started.append(process.pid)
        with allowed():
            signal.raise_signal(signal.SIGINT)

    def second(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        signal.raise_signal(signal.SIGINT)
        return wait(process, timeout)

    def up() -> None:
        local_commands.start(here.switch, [1, 2])

    with monkeypatch.context() as at_the_terminal:
        at_the_terminal.setattr(local_commands, "_wait", first)
        at_the_terminal.setattr(subprocess.Popen, "wait", second)
        assert ended(up) == 128 + signal.SIGINT
    with pytest.raises(ProcessLookupError):
        os.kill(started[-1], 0)


def test_switch_has_ended_when_another_process_gets_its_record(here: Local) -> None:
    """Another `serenectl up --local` was waiting for it."""
    ports, _ = local_commands.start(here.switch, [1, 2])
    lock = f":{record(here).stat().st_ino} 0 EOF"
    with record(here).open("a+") as file, ThreadPoolExecutor(1) as other:
        taken = other.submit(fcntl.flock, file, fcntl.LOCK_EX)
        until(lambda: lock in Path("/proc/locks").read_text().partition("->")[2], "it waits")
        assert local_commands.stop(here.switch, ports)
        taken.result(120)


def test_full_disk_elsewhere_is_not_blamed_on_the_runtime_folder(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(daemon, "run", full)
    with pytest.raises(OSError, match="No space left") as raised:
        cli.app(["up", "--foreground", "--switch", local.switch, "--http", local.http], standalone_mode=False)
    assert not isinstance(raised.value, NoFolder)


def test_another_server_at_the_switch_address_is_reported(local: Local) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        done = local.serenectl("up", "--local", "--http", local.http, "--switch", taken)
    assert done.returncode == 1 and done.stderr.startswith(f"error: {taken} is in use. ")
