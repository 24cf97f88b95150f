"""Data planes for tests, one for each module and target: the embedded switch in process, and BMv2 behind gRPC."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator

import pytest
from finsy.proto import p4r

from serene import entries
from serene.entries import CPU_PORT, Entry, Group, number
from serene.program import Program
from serene.sim.hosts import Host, running_job
from serene.sim.switch import ProgramSwitch
from serene.strategy import Strategy
from serene.wire import mac_bytes
from tests.embedded.bmv2 import Bmv2, running_bmv2, why_not
from tests.frames import Packet, dissect
from tests.programs import V1MODEL

WORKERS = 3


def arp(operation: int, sender: tuple[str, str], target: tuple[str, str], to: str) -> bytes:
    """An ARP frame; ends are (mac, ip)."""
    head = mac_bytes(to) + mac_bytes(sender[0]) + bytes.fromhex("08060001080006040000")[:9] + bytes([operation])
    ends = [mac_bytes(end[0]) + number(end[1]).to_bytes(4, "big") for end in (sender, target)]
    return head + ends[0] + ends[1]


class DataPlane(ABC):
    """The operations of tests on a switch, on any target. The switch has ports 1 to WORKERS; worker w is at port w +
    1."""

    cpu_port = CPU_PORT
    port_at = 7  # bits behind the port in the two bytes before a packet to or from the controller

    def __init__(self, program: Program) -> None:
        self.program, self.lanes = program, program.lanes
        self._reasons = re.findall(r'alias: "dropped_(\w+)"', program.p4info_path.read_text())
        self._punted: list[tuple[int, bytes]] = []

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def clear(self) -> None:
        """Resets everything: entries, registers and counters are as after loading the program."""

    @abstractmethod
    def insert(self, entry: Entry) -> None: ...

    @abstractmethod
    def modify(self, entry: Entry) -> None: ...

    @abstractmethod
    def put(self, entry: Entry) -> None:
        """Inserts an entry, or replaces the one with the same match."""

    @abstractmethod
    def delete(self, entry: Entry) -> None: ...

    @abstractmethod
    def group(self, group: Group) -> None: ...

    @abstractmethod
    def counter(self, name: str, index: int = 0) -> int: ...

    @abstractmethod
    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Sends a frame into a port; all frames that come out because of it, with their ports."""

    @abstractmethod
    def learned(self) -> list[tuple[int, int]]:
        """Returns the sources that digests have reported since the last call: MAC address and port."""

    def send(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """As ``process``, without the packets for the controller."""
        outputs = self.process(port, frame)
        self._punted += [
            (int.from_bytes(data[:2], "big") >> self.port_at, data[2:]) for out, data in outputs if out == self.cpu_port
        ]
        return sorted((out, data) for out, data in outputs if out != self.cpu_port)

    def punted(self) -> tuple[int, bytes] | None:
        """The next packet for the controller, with its ingress port; None if there is none."""
        return self._punted.pop(0) if self._punted else None

    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return self.send(self.cpu_port, (port << self.port_at).to_bytes(2, "big") + frame)

    def ask(self, port: int, frame: bytes) -> list[Packet]:
        """As ``send``, for Serene's packets."""
        return [dissect(number, data) for number, data in self.send(port, frame)]

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
        counts = {reason: self.counter(f"dropped_{reason}") for reason in self._reasons}
        return {reason: count for reason, count in counts.items() if count}


class EmbeddedDataPlane(DataPlane):
    def __init__(self, program: Program = V1MODEL) -> None:
        super().__init__(program)
        self._load()

    def _load(self) -> None:
        self.plane = ProgramSwitch(self.program)
        self.switch = self.plane.switch
        self.group(entries.flood_group(range(1, WORKERS + 1)))

    def close(self) -> None:
        self.plane.close()

    def clear(self) -> None:
        self.close()
        self._punted.clear()
        self._load()

    def insert(self, entry: Entry) -> None:
        self.plane.insert(entry)

    def modify(self, entry: Entry) -> None:
        self.plane.modify(entry)

    def put(self, entry: Entry) -> None:
        self.plane.put(entry)

    def delete(self, entry: Entry) -> None:
        self.plane.delete(entry)

    def group(self, group: Group) -> None:
        self.plane.set_group(group)

    def counter(self, name: str, index: int = 0) -> int:
        return self.plane.count(name, index)

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return self.switch.process(port, frame)

    def registers(self, name: str, first: int, count: int) -> list[int]:
        return self.switch.register_read_all(f"SereneIngress.{name}", first, count)

    def learned(self) -> list[tuple[int, int]]:
        return [(digest.values[0], digest.values[1]) for digest in self.switch.poll_digests()]


class Bmv2DataPlane(DataPlane):
    """A simple_switch_grpc that has the program."""

    def __init__(self, bmv2: Bmv2, program: Program = V1MODEL) -> None:
        super().__init__(program)
        self._bmv2, self._controller = bmv2, bmv2.controller
        self._groups: list[int] = []
        self._there: set[tuple[str, tuple[int, ...]]] = set()
        self.clear()

    def close(self) -> None:
        """BMv2 keeps multicast groups when a program is pushed, and would then send everything twice."""
        for group in self._groups:
            self._controller.delete_group(group)
        self._groups.clear()

    def clear(self) -> None:
        self.close()
        self._punted.clear()
        self._there.clear()
        self._controller.push()
        self.begin()

    def insert(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.INSERT, entry)
        self._there.add(entry.key)

    def modify(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.MODIFY, entry)

    def put(self, entry: Entry) -> None:
        (self.modify if entry.key in self._there else self.insert)(entry)

    def delete(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.DELETE, entry)
        self._there.remove(entry.key)

    def group(self, group: Group) -> None:
        self._controller.group(group.number, group.replicas)
        self._groups.append(group.number)

    def counter(self, name: str, index: int = 0) -> int:
        return self._controller.count(name, index)

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return self._bmv2.process([(port, frame)])

    def learned(self) -> list[tuple[int, int]]:
        pytest.skip("digests come late: tests/controller/test_controller_end_to_end.py waits")


@pytest.fixture(scope="module", params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def target(request: pytest.FixtureRequest) -> Iterator[DataPlane]:
    if request.param == "embedded":
        yield EmbeddedDataPlane()
        return
    if lacking := why_not():
        pytest.skip(lacking)
    with running_bmv2(V1MODEL.config_path, V1MODEL.p4info_path) as bmv2:
        yield Bmv2DataPlane(bmv2)


@pytest.fixture
def plane(target: DataPlane) -> DataPlane:
    """The data plane, reset."""
    target.clear()
    return target
