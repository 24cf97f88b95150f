"""Data planes for tests, one for each module and target: the embedded switch in process, and BMv2 behind gRPC."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from finsy.proto import p4r

from serene import entries
from serene.client.transport.shm import SharedMemory
from serene.embedded import Switch
from serene.entries import CPU_PORT, Entry, Group, number
from serene.sim.hosts import Host, running_job
from serene.sim.switch import ProgramSwitch
from serene.strategy import Strategy
from serene.wire import SWITCH_IP, SWITCH_MAC, mac_bytes
from tests.controller.processes import SwitchProcess, missing, own_network, until
from tests.frames import Said, said
from tests.programs import V1MODEL

WORKERS = 3
ON_SHM = ("test_forwarding", "test_protocol", "test_admission")
MARKER = bytes.fromhex("ffffffffffff0200000000ee88b5") + b"marker" * 8


def arp(operation: int, sender: tuple[str, str], target: tuple[str, str], to: str) -> bytes:
    """An ARP frame; ends are (mac, ip)."""
    head = mac_bytes(to) + mac_bytes(sender[0]) + bytes.fromhex("08060001080006040000")[:9] + bytes([operation])
    ends = [mac_bytes(end[0]) + number(end[1]).to_bytes(4, "big") for end in (sender, target)]
    return head + ends[0] + ends[1]


ASKER, SWITCH = ("02:00:00:00:00:ee", "10.0.0.99"), (SWITCH_MAC, SWITCH_IP)
QUESTION = arp(1, ASKER, ("00:00:00:00:00:00", SWITCH_IP), "ff:ff:ff:ff:ff:ff")
REPLY = arp(2, SWITCH, ASKER, ASKER[0])


DROPS = (
    "malformed", "bad_checksum", "stranger", "no_policy", "wrong_session", "wrong_slot", "wrong_round", "old_session",
    "impostor", "tagged",
)  # fmt: skip


class DataPlane(ABC):
    """The operations of tests on a switch, on any target. The switch has ports 1 to WORKERS; worker w is at port w +
    1."""

    program = V1MODEL
    lanes = V1MODEL.lanes

    @abstractmethod
    def clear(self) -> None:
        """Resets everything: entries, registers and counters are as after loading the program."""

    @abstractmethod
    def insert(self, entry: Entry) -> None: ...

    @abstractmethod
    def modify(self, entry: Entry) -> None: ...

    @abstractmethod
    def delete(self, entry: Entry) -> None: ...

    @abstractmethod
    def group(self, group: Group) -> None: ...

    @abstractmethod
    def counter(self, name: str, index: int = 0) -> int: ...

    @abstractmethod
    def send(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Sends a frame into a port; all frames that come out because of it, with their ports."""

    @abstractmethod
    def punted(self) -> tuple[int, bytes] | None:
        """The next packet for the controller, with its ingress port; None if there is none."""

    @abstractmethod
    def learned(self) -> list[tuple[int, int]]:
        """Returns the sources that digests have reported since the last call: MAC address and port."""

    @abstractmethod
    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]: ...

    def ask(self, port: int, frame: bytes) -> list[Said]:
        """As ``send``, for Serene's packets."""
        return [said(number, data) for number, data in self.send(port, frame)]

    def begin(self) -> None:
        """Writes the entries that the controller writes before any job exists."""
        self.group(entries.flood_group(range(1, WORKERS + 1)))
        for entry in entries.own_addresses():
            self.insert(entry)

    def admit(self, worker: int, job: int = 0, host: Host | None = None) -> None:
        host = host or Host.of(worker)
        self.insert(entries.member(job, worker, host))
        self.insert(entries.address(job, worker, host))

    def readmit(self, worker: int, host: Host, job: int = 0) -> None:
        """Admits a process that was restarted at the same addresses, in the old one's place."""
        self.delete(entries.member(job, worker, host))
        self.insert(entries.member(job, worker, host.restarted()))

    def start_job(
        self,
        strategy: Strategy,
        *,
        job: int = 0,
        slots: int = 4,
        first_slot: int = 0,
        session: int = 7,
        workers: int = WORKERS,
    ) -> None:
        """Starts a job with all its members, in epoch 1."""
        hosts = {worker: Host.of(worker) for worker in range(workers)}
        self.group(entries.job_group(job, hosts))
        fields = strategy.compile(range(workers))
        for entry in running_job(
            job, hosts, fields, slots=slots, vector_length=320 * slots, first_slot=first_slot, session=session
        ):
            self.insert(entry)

    def swap(self, strategy: Strategy, epoch: int, *, job: int = 0, session: int = 7, workers: int = WORKERS) -> None:
        self.modify(entries.policy(job, session, epoch, strategy.compile(range(workers))))

    def drops(self) -> dict[str, int]:
        """How many packets were dropped, by reason; reasons without any are left out."""
        counts = {name: self.counter(f"dropped_{name}") for name in DROPS}
        return {name: count for name, count in counts.items() if count}


class LiveDataPlane(DataPlane):
    """A switch that forwards in its own time. After each frame a marker is sent to every port: queues keep the order,
    so that whatever a frame causes comes before the marker."""

    @abstractmethod
    def put(self, port: int, frame: bytes) -> None: ...

    @abstractmethod
    def taken(self, port: int) -> list[bytes]:
        """The next frames that leave by a port, within 10 s; empty if there are none."""

    @abstractmethod
    def put_packet_out(self, port: int, frame: bytes) -> None: ...

    def send(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        self.put(port, frame)
        return self._collect(port)

    def _collect(self, sender: int) -> list[tuple[int, bytes]]:
        # Sent after the frame into the same port: a broadcast, which marks the other ports, and an ARP request, whose
        # reply marks the sender's.
        self.put(sender, MARKER)
        self.put(sender, QUESTION)
        received = []
        for port in range(1, WORKERS + 1):
            found: list[bytes] = []
            last = REPLY if port == sender else MARKER
            while last not in found:
                more = self.taken(port)
                assert more, f"no marker on port {port}"
                found += more
            assert found[-1] == last
            received += [(port, data) for data in found[:-1]]
        return sorted(received)

    def learned(self) -> list[tuple[int, int]]:
        pytest.skip("digests come late, and of the markers, too: tests/controller/test_controller_end_to_end.py waits")

    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        self.put_packet_out(port, frame)
        # It takes another way than the marker, which may overtake it.
        return until(lambda: self._collect(1), "the packet-out arrives")


class EmbeddedDataPlane(DataPlane):
    def __init__(self) -> None:
        self._plane: ProgramSwitch | None = None
        self.clear()

    def clear(self) -> None:
        if self._plane is not None:
            self._plane.close()
        self._plane = ProgramSwitch(self.program)
        self._punted: list[tuple[int, bytes]] = []
        self.group(entries.flood_group(range(1, WORKERS + 1)))

    @property
    def plane(self) -> ProgramSwitch:
        assert self._plane is not None
        return self._plane

    @property
    def switch(self) -> Switch:
        return self.plane.switch

    def insert(self, entry: Entry) -> None:
        self.plane.insert(entry)

    def modify(self, entry: Entry) -> None:
        self.plane.modify(entry)

    def delete(self, entry: Entry) -> None:
        self.plane.delete(entry)

    def group(self, group: Group) -> None:
        self.plane.set_group(group)

    def counter(self, name: str, index: int = 0) -> int:
        return self.plane.count(name, index)

    def send(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        outputs = self.switch.process(port, frame)
        # A packet-in begins with its header: nine bits of port, seven of padding.
        self._punted += [(int.from_bytes(data[:2], "big") >> 7, data[2:]) for out, data in outputs if out == CPU_PORT]
        return sorted((out, data) for out, data in outputs if out != CPU_PORT)

    def punted(self) -> tuple[int, bytes] | None:
        return self._punted.pop(0) if self._punted else None

    def learned(self) -> list[tuple[int, int]]:
        return [(digest.values[0], digest.values[1]) for digest in self.switch.poll_digests()]

    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return self.send(CPU_PORT, (port << 7).to_bytes(2, "big") + frame)


class ShmDataPlane(LiveDataPlane, EmbeddedDataPlane):
    """The embedded switch with its forwarding thread and a shared-memory port for each worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ends: dict[int, SharedMemory] = {}
        super().__init__()

    def clear(self) -> None:
        self.close()
        super().clear()
        for port in range(1, WORKERS + 1):
            self.switch.add_shm(port, self._folder / f"port{port}")
        self.switch.start()
        self._ends = {port: SharedMemory(self._folder / f"port{port}") for port in range(1, WORKERS + 1)}

    def close(self) -> None:
        for end in self._ends.values():
            end.close()

    def put(self, port: int, frame: bytes) -> None:
        self._ends[port].send_rows(np.frombuffer(frame, np.uint8)[None, :])

    def taken(self, port: int) -> list[bytes]:
        rows, lengths = self._ends[port].receive_rows(10)
        return [row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)]

    def punted(self) -> tuple[int, bytes] | None:
        events = self.switch.wait_events(0 if self._punted else 0.3)
        self._punted += [(int.from_bytes(data[:2], "big") >> 7, data[2:]) for data in events.cpu_packets]
        return super().punted()

    def put_packet_out(self, port: int, frame: bytes) -> None:
        self.switch.packet_out((port << 7).to_bytes(2, "big") + frame)


class Bmv2DataPlane(LiveDataPlane):
    """simple_switch_grpc."""

    def __init__(self, process: SwitchProcess) -> None:
        from tests.p4rt import Controller

        self._process = process
        self._groups: list[int] = []
        for port in range(1, WORKERS + 1):
            process.link(port)  # opened now, before there are frames that it could miss
        self._controller = Controller(process.grpc, self.program.config_path, self.program.p4info_path)
        self.clear()

    def close(self) -> None:
        self._controller.close()

    def clear_groups(self) -> None:
        """BMv2 keeps multicast groups when a program is pushed, and would then send everything twice."""
        for group in self._groups:
            self._controller.delete_group(group)
        self._groups.clear()

    def clear(self) -> None:
        self.clear_groups()
        self._controller.push()
        self._controller.messages.forget()
        self.begin()

    def insert(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.INSERT, entry)

    def modify(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.MODIFY, entry)

    def delete(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.DELETE, entry)

    def group(self, group: Group) -> None:
        self._controller.group(group.number, group.replicas)
        self._groups.append(group.number)

    def counter(self, name: str, index: int = 0) -> int:
        return self._controller.count(name, index)

    def put(self, port: int, frame: bytes) -> None:
        self._process.link(port).send(frame)

    def taken(self, port: int) -> list[bytes]:
        data = self._process.link(port).receive(10)
        return [] if data is None else [data]

    def punted(self) -> tuple[int, bytes] | None:
        try:
            return self._controller.packet_in(0.3)
        except queue.Empty:
            return None

    def put_packet_out(self, port: int, frame: bytes) -> None:
        self._controller.packet_out(port, frame)


@pytest.fixture(scope="module", params=["embedded", "shm", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    if request.param == "shm":
        if request.module.__name__.rpartition(".")[2] not in ON_SHM:
            pytest.skip("the same program as in process: live ports are tested where packets are few")
        yield (live := ShmDataPlane(tmp_path_factory.mktemp("ports")))
        live.close()
        live.switch.close()
        return
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"target {request.param} needs {lacking}")
    if request.param == "embedded":
        yield EmbeddedDataPlane()
        return
    with ExitStack() as stack:
        stack.enter_context(own_network())
        process = SwitchProcess("bmv2", tmp_path_factory.mktemp("switch") / "switch.log", unix=True)
        stack.callback(process.stop)
        plane = Bmv2DataPlane(process)
        stack.callback(plane.close)
        yield plane


@pytest.fixture
def plane(target: DataPlane) -> DataPlane:
    """The data plane, reset."""
    target.clear()
    return target
