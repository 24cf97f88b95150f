"""The network of a run, with switch and controller: Mininet's, or UDP ports on loopback, which need no root."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from serene.errors import SereneError
from serene.experiments.run import forked
from serene.experiments.run.forked import ForkedProcess
from serene.experiments.run.settings import Settings
from serene.process.interrupts import allowed, held
from serene.process.spawn import module
from serene.settings import option
from serene.topologies.processes import Background, NotReady, controller, embedded_switch, free_ports, set_up_turn
from serene.workers.recipe import Recipe

SWITCH_UDP_PORT = 20000  # the switch's UDP ports on loopback are searched from here up
STOP_TIMEOUT_S = 20.0


class NetworkError(SereneError):
    """The network could not be set up, or a part of it died."""


class Failed(SereneError):
    """A process of the run ended before its time; the message has the end of its log."""


def worker_arguments(settings: Settings, worker: int, job: int, out: Path, **further: object) -> list[str]:
    """The command line of a worker's program (workers/train.py). out: for its results. further: more options, with _ in
    place of -. An option whose value is None is left out."""
    racks = ",".join(map(str, settings.by_rack.sizes)) if settings.racks > 1 else None
    given = {name: getattr(settings, name) for name in Recipe.model_fields}
    given |= {"job": job, "worker": worker, "racks": racks, "out": out, **further}
    return [part for name, value in given.items() if value is not None for part in (option(name), str(value))]


class WorkerProcess(ForkedProcess):
    """The process of a worker, or of a baseline's server, with its log. number: the worker's, or that of the server's
    host. before: steps that the same worker's earlier processes have done."""

    def __init__(self, pid: int, number: int, log: Path, before: int = 0) -> None:
        super().__init__(pid)
        self.number = number
        self.log = log
        self._lines = before - 1  # of the table of steps, whose first line has the columns' names
        self._read = 0  # bytes of it

    def steps(self) -> int:
        """Done by the worker so far, whatever became of sessions and processes meanwhile."""
        with contextlib.suppress(FileNotFoundError), self.log.with_suffix(".csv").open("rb") as table:
            table.seek(self._read)
            new = table.read()
            self._read += len(new)
            self._lines += new.count(b"\n")
        return max(self._lines, 0)

    def kill(self) -> None:
        """Kills it, so that it does not leave its job: the network ends, too, or another process takes its place."""
        super().kill()
        self.wait()

    def stop(self) -> None:
        """Has it leave its job, write its results and end; wakes it up if it is paused."""
        self.terminate()
        self.resume()

    def pause(self) -> None:
        self.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.send_signal(signal.SIGCONT)

    def error(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-15:])


def stop_workers(workers: Sequence[WorkerProcess]) -> list[int]:
    """Has all workers leave the job and write their results. Returns the numbers of those that had steps left to do.
    Raises KeyboardInterrupt after STOP_TIMEOUT_S, or when the user interrupts again."""
    running = [worker for worker in workers if worker.poll() is None]
    for worker in running:
        worker.stop()
    await_end(running)
    return [worker.number for worker in workers if worker.poll() != 0]


def await_end(processes: Sequence[WorkerProcess]) -> None:
    """Waits for processes that are about to end. Raises KeyboardInterrupt after STOP_TIMEOUT_S, or when the user
    interrupts again."""
    end = time.monotonic() + STOP_TIMEOUT_S
    while any(process.poll() is None for process in processes):
        if time.monotonic() > end:
            raise KeyboardInterrupt
        with allowed():
            time.sleep(0.05)


class Network(ABC):
    """The network of a run, from ``with`` to the end of the block, and where its workers run. work: the directory for
    logs and workers' files. Entering raises NetworkError."""

    def __init__(self, settings: Settings, work: Path) -> None:
        self.settings = settings
        self.work = work
        self._workers: list[WorkerProcess] = []
        self._net: Any = None  # Mininet's

    @abstractmethod
    def start(self) -> None:
        """Sets up links, switch and controller. Raises NetworkError or NotReady."""

    def stop(self) -> None:
        """Removes everything that ``start`` made, also if that failed half-way."""
        if self._net is not None:
            stop_mininet(self._net)
        self._net = None

    @property
    def url(self) -> str:
        """The controller's HTTP address; empty where there is none."""
        return ""

    @property
    def parts(self) -> dict[str, Background]:
        """The processes of the network by name: switches, controller, and shims if there are any."""
        return {}

    def start_again(self, part: str) -> None:
        """Starts a part that was killed, by the same command. Raises NetworkError."""
        raise NetworkError(f"there is no {part} that could start again")

    def dead(self) -> str | None:
        """Which part of the network has ended without being killed on purpose, with the end of its log; else None."""
        for name, process in self.parts.items():
            if not process.killed and process.poll() is not None:
                return f"the {name} ended with status {process.poll()}:\n{process.tail()}"
        return None

    def _worker_address(self, worker: int) -> list[str]:
        """Options by which a worker's program finds the switch, beyond its defaults."""
        return []

    def start_worker(self, worker: int, arguments: Sequence[str], before: int = 0, **environment: str) -> WorkerProcess:
        """Starts a worker's program in its host. arguments: of `worker_arguments`. before: steps that the worker has
        done already, in processes that were killed."""
        command = module("serene.workers.train", *arguments, *self._worker_address(worker))
        return self.start_process(f"worker-{worker}", worker, command, before, **environment)

    def start_process(
        self, name: str, host: int, command: Sequence[str], before: int = 0, **environment: str
    ) -> WorkerProcess:
        """Starts a command of `serene.process.spawn.module` in a host; it is killed when the network ends."""
        log = self.work / f"{name}.log"
        namespace = None if self._net is None else int(self._net[f"h{host + 1}"].pid)
        with log.open("ab") as output:  # a worker that starts again appends to the same log
            pid = forked.start(name, command, output, environment, namespace).pid
        self._workers.append(WorkerProcess(pid, host, log, before))
        return self._workers[-1]

    def __enter__(self) -> Self:
        try:
            with held(), set_up_turn():
                self.start()
        except NotReady as error:
            self.stop()
            raise NetworkError(str(error)) from None
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._workers:
            process.kill()
        self.stop()


class MininetNetwork(Network):
    """Mininet hosts, each with a network stack of its own, around one switch or in racks around a tree of switches."""

    def __init__(self, settings: Settings, work: Path) -> None:
        super().__init__(settings, work)
        self._switches: dict[str, Any] = {}  # by name: "switch", or "root", "leaf1" and so on
        self._controller: Any = None

    def start(self) -> None:
        settings, faults = self.settings, self._shim_file()

        def switch(given: str, level: str = "switch", **params: Any) -> Any:
            if level != "switch":
                params.update(level=level, links=links_at(settings.by_rack.sizes, level))
            log = self.work / f"{level}.log"
            self._switches[level] = switches[settings.target](given, log=log, faults=faults, **params)
            return self._switches[level]

        # Only the embedded switch cuts large buffers into packets; BMv2 and the shim forward them as they are.
        offload = settings.target == "embedded" and faults is None
        self._net = mininet(settings, switch, _free_switch_name(), offload)
        from serene.topologies.leaf_spine import links_at
        from serene.topologies.nodes import SereneController
        from serene.topologies.star import switches

        self._controller = SereneController(
            "c0",
            log=self.work / "controller.log",
            p4_program=self.settings.program.path,
            slots=self.settings.program.slots,
        )
        self._net.build()
        for each in self._switches.values():
            each.start([self._controller])

    def _shim_file(self) -> Path | None:
        """A fault file for the shim between links and switch, None if no faults of packets are asked for. It is a copy:
        the user's own may have changed since it was checked."""
        faults = self.settings.faults
        if not faults.packets:
            return None
        assert faults.text is not None, "faults of a run come from a file"
        path = self.work / "faults.toml"
        path.write_text(faults.text)
        return path

    def stop(self) -> None:
        if self._controller is not None:
            self._controller.stop()
        self._controller = None
        super().stop()

    @property
    def url(self) -> str:
        return str(self._controller.url)

    @property
    def unix_url(self) -> str:
        """The controller's address for processes in the hosts, which reach it through a Unix socket."""
        return str(self._controller.unix_url)

    @property
    def parts(self) -> dict[str, Background]:
        found = {name: switch.process for name, switch in self._switches.items()}
        found |= {f"shim of the {name}": switch.shim for name, switch in self._switches.items()}
        found["controller"] = self._controller.process
        return {name: process for name, process in found.items() if process is not None}

    def start_again(self, part: str) -> None:
        with _network_errors():
            if part in self._switches:
                self._switches[part].start_again()
            else:
                self._controller.start_again()

    def popen(self, worker: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a command in a worker's host; options as for subprocess.Popen."""
        return self._net[f"h{worker + 1}"].popen(list(command), **options)  # type: ignore[no-any-return]


class LocalNetwork(Network):
    """The embedded switch with a UDP port on loopback for each worker; needs neither root nor Mininet."""

    def __init__(self, settings: Settings, work: Path) -> None:
        super().__init__(settings, work)
        self._switch: Background | None = None
        self._controller: Background | None = None
        self._http = self._p4runtime = 0
        # The workers' ends, bound here and inherited by them: a port that is only looked up might be taken meanwhile.
        self._ends: list[socket.socket] = []
        self._switch_ports: list[int] = []

    def start(self) -> None:
        self._ends = [_bound() for _ in range(self.settings.workers)]
        self._start_switch()
        program = self.settings.program
        options = ["--program", program.path, "--slots", str(program.slots), "--wait", "60"]
        log = self.work / "controller.log"
        self._controller = controller(self._p4runtime, self._http, self.settings.workers, log, *options)

    def _start_switch(self) -> None:
        self._p4runtime, self._http = free_ports(9559, 8559)
        self._switch_ports = free_ports(*[SWITCH_UDP_PORT] * len(self._ends), kind=socket.SOCK_DGRAM)
        ends = zip(self._switch_ports, self._ends, strict=True)
        ports = {port: f"udp:{number}:{end.getsockname()[1]}" for port, (number, end) in enumerate(ends, 1)}
        self._switch = embedded_switch(ports, self._p4runtime, self.work / "switch.log")

    def stop(self) -> None:
        for part in (self._controller, self._switch):
            if part is not None:
                part.stop()
        for end in self._ends:
            end.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http}"

    @property
    def parts(self) -> dict[str, Background]:
        found = {"switch": self._switch, "controller": self._controller}
        return {name: process for name, process in found.items() if process is not None}

    def start_again(self, part: str) -> None:
        with _network_errors():
            self.parts[part].start_again()

    def _worker_address(self, worker: int) -> list[str]:
        return ["--frame-udp", f"fd{self._ends[worker].fileno()}:{self._switch_ports[worker]}"]


def mininet(settings: Settings, switch: Any, name: str, offload: bool, server: bool = False) -> Any:
    """A run's hosts around a switch, or in racks around a tree of them, not built yet. switch: makes one. name: the
    switch's, or the beginning of all switches' names. server: whether there is one more host. Raises NetworkError."""
    try:
        from mininet.log import setLogLevel
        from mininet.net import Mininet
    except ImportError:
        raise NetworkError("Mininet is not installed: run 'make setup', or 'make run-local' without it") from None
    from serene.topologies.leaf_spine import LeafSpine
    from serene.topologies.star import Star

    setLogLevel("error")
    links = {"link_mbit": settings.link_mbit, "mtu": settings.mtu, "offload": offload}
    if settings.racks == 1:
        topology = Star(settings.workers + server, switch=name, **links)
    else:
        uplink = settings.uplink_mbit
        topology = LeafSpine(settings.workers, settings.racks, uplink_mbit=uplink, prefix=name, server=server, **links)
    return Mininet(topo=topology, controller=None, build=False, switch=switch)


def stop_mininet(net: Any) -> None:
    """Mininet clears up by its nodes' shells, and would wait for good for one that was killed: `mn -c`, or an `mn` that
    fails, kills those of the whole machine."""
    for node in (*net.hosts, *net.switches):
        if node.shell is not None and node.shell.poll() is not None:
            node.shell = None
            node.startShell()
    net.stop()


@contextlib.contextmanager
def _network_errors() -> Iterator[None]:
    try:
        yield
    except NotReady as error:
        raise NetworkError(str(error)) from None


def _free_switch_name() -> str:
    """s1, s2 and so on: the first that no interface's name begins with, for other runs may be under way. In a tree it
    is the beginning of all switches' names."""
    taken = {found[0] for _, name in socket.if_nameindex() if (found := re.match(r"s\d+", name))}
    return next(f"s{number}" for number in range(1, 1000) if f"s{number}" not in taken)


def _bound() -> socket.socket:
    """A UDP socket on a port of loopback that was free."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("127.0.0.1", 0))
    return end
