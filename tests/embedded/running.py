"""serene-switch as a process, hosts at its ports, and watchers of its packets."""

from __future__ import annotations

import queue
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import grpc
from typing_extensions import Self

from serene.embedded.p4runtime import UdpPort
from serene.embedded.p4runtime.watching import NoTraces, watch
from serene.embedded.trace.steps import Step, step_from_json
from tests.controller.processes import Process
from tests.embedded.p4rt_controller import PATIENCE_S, until
from tests.embedded.p4rt_probe import CPU_PORT, Probe, Probing
from tests.ports import some_ports

DEVICE_ID = 7


class Running(Process):
    """A ``serene-switch`` that has reported that it is ready. further: its options after the ``--``."""

    def __init__(self, folder: Path, *arguments: str, further: tuple[str, ...] = ()) -> None:
        command = ["-m", "serene.switch_command", "--device-id", str(DEVICE_ID), *arguments, "--"]
        command += ["--grpc-server-addr", "127.0.0.1:0", "--cpu-port", str(CPU_PORT), *further]
        super().__init__(command, folder / "switch.log", warm=True)
        self.await_(lambda: self.ready_line, "the switch is ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def lines(self) -> list[str]:
        """The lines that it has printed and logged."""
        return self.log.read_text().splitlines()

    @property
    def ready_line(self) -> str:
        return next((line for line in self.lines if line.startswith("serene-switch: ")), "")

    @property
    def address(self) -> str:
        return self.ready_line.split()[3].rstrip(",")

    def controller(self) -> Probing:
        return Probing(self.address, DEVICE_ID)

    def ended(self, number: int = signal.SIGTERM) -> list[str]:
        """Ends it by a signal, and returns all lines except the ready line."""
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE_S) == 0
        return [line for line in self.lines if line != self.ready_line]


class Hosts:
    """Two hosts at UDP ports 1 and 2 of a switch."""

    def __init__(self) -> None:
        self.sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for end in self.sockets:
            end.bind(("127.0.0.1", 0))
            end.settimeout(PATIENCE_S)
        self.local = some_ports(2, socket.SOCK_DGRAM)
        peers = [end.getsockname()[1] for end in self.sockets]
        self.ports = [UdpPort(number + 1, self.local[number], peers[number]) for number in range(2)]
        self.arguments = [f"-i{port}" for port in self.ports]

    def emit(self, frame: bytes, number: int = 1) -> None:
        self.sockets[number - 1].sendto(frame, ("127.0.0.1", self.local[number - 1]))

    def send(self, number: int = 1, **fields: int) -> bytes:
        """From one to the other; what arrives."""
        self.emit(Probe(port=3 - number, **fields).frame(), number)
        return self.sockets[2 - number].recv(2048)

    def close(self) -> None:
        for end in self.sockets:
            end.close()


class Watch:
    """A client of the switch's traces, in a thread; packets are traced from its making on."""

    def __init__(self, port: int, **wanted: Any) -> None:
        self.packets: queue.Queue[Step] = queue.Queue()
        self.ended = threading.Event()
        self.error = ""
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        ready = threading.Event()
        threading.Thread(target=self._run, args=(wanted, ready), daemon=True).start()
        until(lambda: ready.is_set() or self.ended.is_set(), "packets are traced")

    def _run(self, wanted: dict[str, Any], ready: threading.Event) -> None:
        try:
            for answer in watch(self._channel, wanted, ready.set):
                assert "lost" not in answer
                self.packets.put(step_from_json(answer))
        except NoTraces as error:
            self.error = str(error)
        finally:
            self.ended.set()

    def next(self) -> Step:
        return self.packets.get(timeout=PATIENCE_S)

    def close(self) -> None:
        self._channel.close()
        assert self.ended.wait(PATIENCE_S)


class Tracing(Process):
    """``serenectl trace`` of the switch at a port of loopback; packets are traced from its making on."""

    def __init__(self, folder: Path, port: int, *arguments: str) -> None:
        command = ["-m", "serene.controller", "trace", "--switch", f"127.0.0.1:{port}", *arguments]
        super().__init__(command, folder / "trace.log", warm=True)
        self.await_(lambda: self.lines[:1] == [f"tracing packets of 127.0.0.1:{port}"], "packets are traced")

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def printed(self) -> list[str]:
        """Waits for its end, and returns what it has printed."""
        assert self.process.wait(PATIENCE_S) == 0
        return self.lines[1:]
