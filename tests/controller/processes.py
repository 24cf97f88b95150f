"""Switches and controllers as real processes, for tests."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import grpc
import httpx
import pytest

from serene.client import FrameTransport
from serene.controller.http.client import ControllerClient, NoController
from serene.controller.status.model import AutomaticStatus
from serene.report import Facts
from serene.strategy import Strategy
from serene.topologies.processes import bmv2
from serene.wire import Op
from tests.controller.hosts import FrameLink, Host, Link, join, packet_end, udp_end
from tests.ports import some_port, some_ports
from tests.support.warm_process import WarmProcess, run

PORTS = 3
PATIENCE_S = 120.0

T = TypeVar("T")
ROOT = Path(__file__).parents[2]


def until(condition: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S) -> T:
    """Polls until ``condition`` is true, and returns its value. what: for the AssertionError if that takes too long.
    Polls less often after the first seconds: many conditions ask a controller, which takes milliseconds."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > patience_s:
            raise AssertionError(f"not within {patience_s} s: {what}")
        time.sleep(min(0.02 + waited / 100, 0.05))


def pause(process: subprocess.Popen[bytes] | WarmProcess) -> None:
    """Stops a process, and returns when none of its threads runs any more."""
    process.send_signal(signal.SIGSTOP)
    threads = Path(f"/proc/{process.pid}/task")
    until(lambda: all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads.glob("*/stat")),
          "it stops")  # fmt: skip


class Process:
    """A process with its output in a file. command: of a program, or, if ``warm``, the arguments of a warm Python."""

    def __init__(self, command: list[str], log: Path, *, warm: bool = False) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | WarmProcess
        with log.open("w") as out:
            if warm:
                self.process = WarmProcess(command, out.fileno(), out.fileno(), ROOT)
            else:
                self.process = subprocess.Popen(command, stdout=out, stderr=out, cwd=ROOT)

    def await_(self, ready: Callable[[], object], what: str) -> None:
        """Waits until it is ready. Kills it if it does not become so: its caller does not have it yet, to stop it."""
        try:
            until(lambda: self.process.poll() is not None or ready(), what)
            if self.process.poll() is not None:
                raise AssertionError(f"{self.process.args!r} ended: {self.log.read_text()}")
        except BaseException:
            self.kill()
            raise

    def stop(self) -> int:
        """Ends it by SIGTERM, and returns the exit status."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.process.args!r} did not end: {self.log.read_text()}") from None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        pause(self.process)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


class Switch:
    """A switch without a program, at the address ``grpc`` of its P4Runtime server. command: as for `Process`. options:
    further ones of the server."""

    def __init__(self, command: list[str], grpc: str, log: Path, *options: str, warm: bool) -> None:
        self._command = [*command, "--", "--grpc-server-addr", grpc, "--cpu-port", "255", *options]
        self.grpc, self.log, self._warm = grpc, log, warm
        self.start()

    def start(self) -> None:
        self._process = Process(self._command, self.log, warm=self._warm)
        self._process.await_(lambda: listens(self.grpc), "the switch listens")

    def kill(self) -> None:
        self._process.kill()

    def pause(self) -> None:
        self._process.pause()

    def go_on(self) -> None:
        self._process.go_on()

    def restart(self) -> None:
        self.kill()
        self.start()


def embedded(ports: dict[int, int], peers: dict[int, int]) -> list[str]:
    """The command of a serene-switch whose ports are UDP sockets on loopback. ports, peers: UDP ports of the switch's
    end and of the other end, by the switch's port."""
    ends = [f"-i{port}@udp:{at}:{peers[port]}" for port, at in ports.items()]
    return ["-m", "serene.switch_command", "--no-p4", "--device-id", "0", *ends]


class SwitchProcess(Switch):
    """A switch whose ports 1 to ``ports`` lead to UDP ports of loopback, or, with BMv2, to veth pairs: those after the
    ``others`` that other switches have. unix: whether it serves P4Runtime at a Unix socket, for tests that are its
    clients: gRPC's threads are in another network namespace (`own_network`)."""

    def __init__(self, target: str, log: Path, others: int = 0, *, unix: bool = False, ports: int = PORTS) -> None:
        self.target, self._others = target, others
        udp = some_ports(2 * ports, socket.SOCK_DGRAM)
        self.udp_ports = dict(enumerate(udp[:ports], 1))
        self.peer_udp_ports = dict(enumerate(udp[ports:], 1))
        self._links: dict[int, Link] = {}
        command = embedded(self.udp_ports, self.peer_udp_ports)
        if target == "bmv2":
            command = bmv2(some_port()) + [f"-i{port}@s{others + port}" for port in self.udp_ports]
        grpc = f"unix:{log.with_suffix('.sock')}" if unix else f"127.0.0.1:{some_port()}"
        super().__init__(command, grpc, log, warm=target == "embedded")

    def link(self, port: int) -> Link:
        """The other end of a port, opened when it is first asked for."""
        if port not in self._links:
            self._links[port] = FrameLink(self.end(port))
        return self._links[port]

    def end(self, port: int) -> socket.socket:
        """A new socket at the other end of a port, which is the caller's."""
        if self.target == "embedded":
            return udp_end(self.peer_udp_ports[port], self.udp_ports[port])
        return packet_end(f"h{self._others + port}")

    def transport(self, worker: int) -> FrameTransport:
        """A worker's transport at port worker + 1."""
        return FrameTransport(worker, local=self.end(worker + 1).detach())

    def stop(self) -> None:
        for link in self._links.values():
            link.close()
        self.kill()


class ControllerProcess(Process):
    """``serenectl up --foreground``, which answers HTTP at ``http``, by default a port of loopback."""

    def __init__(
        self, switch: SwitchProcess, log: Path, *options: str, http: str | None = None, warm: bool = True
    ) -> None:
        self._begin(switch.grpc, log, http, warm, "--ports", f"1-{len(switch.udp_ports)}", *options)

    @classmethod
    def of(cls, switch: str, log: Path, *options: str, warm: bool = True) -> ControllerProcess:
        """A controller of the switches that ``--switch`` names."""
        made = cls.__new__(cls)
        made._begin(switch, log, None, warm, *options)
        return made

    def _begin(self, switch: str, log: Path, http: str | None, warm: bool, *options: str) -> None:
        http = http or f"127.0.0.1:{some_port()}"
        self.url = f"http://{http}"
        # On a busy machine, a switch may need longer to answer than the seconds that a user would wait.
        command = ["-m", "serene.controller", "up", "--foreground", "--wait", f"{PATIENCE_S:g}"]
        command += ["--switch", switch, "--http", http, *options]
        Process.__init__(self, command if warm else [sys.executable, *command], log, warm=warm)
        self.client = ControllerClient(self.url)
        self.await_(self._answers, "the controller answers")

    def _answers(self) -> bool:
        try:
            return bool(self.client.status())
        except NoController:
            return False


Start = Callable[..., ControllerProcess]  # with further options of ``serenectl up``


def serenectl(*arguments: str, controller: str | None = None, warm: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a command of serenectl, and returns output and exit status. warm: not for tests of what it imports, and
    when."""
    environment = {name: value for name, value in os.environ.items() if name != "SERENE_CONTROLLER"}
    if controller is not None:
        environment["SERENE_CONTROLLER"] = controller
    command = ["-m", "serene.controller", *arguments]
    if warm:
        return run(command, ROOT, environment, PATIENCE_S)
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT, env=environment,
        timeout=PATIENCE_S,
    )  # fmt: skip


def embedded_switch(log: Path) -> Iterator[SwitchProcess]:
    """For a fixture of tests on the embedded switch alone: it is stopped afterwards. Skips where there can be none."""
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")
    process = SwitchProcess("embedded", log)
    yield process
    process.stop()


def missing(target: str) -> str | None:
    """What this machine lacks to run a target; None if it lacks nothing."""
    if target == "embedded":
        return None if any(map(shutil.which, ("cc", "gcc", "clang"))) else "a C compiler"
    if shutil.which("simple_switch_grpc") is None:
        return "simple_switch_grpc"
    return None if os.geteuid() == 0 else "root, for veth pairs"


@functools.cache
def _grpc_starts() -> grpc.Channel:
    """Starts gRPC's threads, and keeps them. A thread stays in the network namespace of the thread that started it. So
    if the first channel of this process were made in another namespace, later ones would connect there, too."""
    return grpc.insecure_channel("unix:/never-asked")


@contextlib.contextmanager
def own_network(switches: int = 1) -> Iterator[None]:
    """Puts this thread, and the processes that it starts, into a network namespace with veth pairs s1-h1, s2-h2 and so
    on, PORTS for each switch, until the end of the block. gRPC's clients in this process reach only Unix sockets there.
    Needs root."""
    _grpc_starts()
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newnet = 0x40000000
    with open("/proc/thread-self/ns/net") as before:
        if libc.unshare(clone_newnet):
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            _ip("link", "set", "lo", "up")
            for port in range(1, switches * PORTS + 1):
                _ip("link", "add", f"s{port}", "type", "veth", "peer", "name", f"h{port}")
                for interface in (f"s{port}", f"h{port}"):
                    Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
                    _ip("link", "set", interface, "up")
            yield
        finally:
            if libc.setns(before.fileno(), clone_newnet):
                raise OSError(ctypes.get_errno(), "setns")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def listens(address: str) -> bool:
    """Whether somebody accepts connections at HOST:PORT or unix:PATH."""
    host, _, port = address.rpartition(":")
    if host == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(port) == 0
    with socket.socket(socket.AF_INET6 if host == "[::1]" else socket.AF_INET) as probe:
        return probe.connect_ex((host.strip("[]"), int(port))) == 0


def started(client: ControllerClient, hosts: list[Host], strategy: Strategy, **options: Any) -> int:
    """Makes a job, which is job 0, has all hosts join it, and returns its session. options: of `create_job`. The switch
    answers a HELLO before the controller reports that the job runs."""
    client.create_job(len(hosts), strategy, **options)
    session = join(hosts, 0)[0]["session"]
    until(lambda: client.job(0).state == "running", "the controller reports that the job runs")
    return session


def leave_until_over(host: Host, worker: int = 0) -> None:
    """A worker of job 0 leaves again and again until it hears that the job is over. Earlier answers may come late."""
    said = '{"job_over": true}'
    until(lambda: host.ask(lambda: host.leave(0, worker), Op.BYE).text == said, "the job is over")


def metrics(client: ControllerClient) -> httpx.Response:
    return httpx.get(f"{client.url}/metrics", trust_env=False, timeout=PATIENCE_S)


def report(client: ControllerClient, worker: int = 0) -> Facts:
    """The latest report of a worker of job 0; empty before the first."""
    return client.job(0).workers[worker].report or {}


def automatic(client: ControllerClient) -> AutomaticStatus:
    """The automatic strategy of job 0, which has to have one."""
    found = client.job(0).automatic
    assert found is not None
    return found


def states(client: ControllerClient, job: int = 0) -> list[str]:
    return [worker.state for worker in client.job(job).workers]


def resident_mb(controller: ControllerProcess) -> float:
    pages = Path(f"/proc/{controller.process.pid}/statm").read_text().split()[1]
    return int(pages) * 4096 / 1e6
