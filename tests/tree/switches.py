"""The tree's P4 programs for tests: one leaf or root with a job, which takes and returns the model's packets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serene import entries
from serene.entries import number
from serene.racks import LeafPolicy
from serene.sim.hosts import Host, frame_head, job_of
from serene.strategy import PolicyFields
from serene.wire import (
    ENCAPSULATION_BYTES,
    HEADER,
    ROOT,
    SERENE_UDP_PORT,
    SWITCH_IP,
    Op,
    control_payload,
    encapsulation,
)
from tests.dataplane.conftest import DataPlane
from tests.model import Answer
from tests.tree.model import Down, Grant, Up

JOB, FIRST_SLOT = 1, 3  # not 0, which is the content of memory that was never written
UPLINK = 3  # the leaf's port to the root, after those of two workers


def leaf_port(rack: int) -> int:
    """The root's port to which a rack is connected."""
    return rack + 1


def header(frame: bytes) -> np.void:
    found: np.void = np.frombuffer(frame, HEADER, 1, ENCAPSULATION_BYTES)[0]
    return found


def values(frame: bytes) -> np.ndarray:
    """The values in a frame, as uint32[lanes]."""
    return np.frombuffer(frame, ">u4", offset=ENCAPSULATION_BYTES + HEADER.itemsize).astype(np.uint32)


def _payload(op: Op, lanes: np.ndarray, place: int, **fields: int) -> bytes:
    return control_payload(op, lanes.astype(">u4").tobytes(), job=JOB, slot=place, **fields)


def _echoed(fields: np.void) -> tuple[int, int] | None:
    return (int(fields["members"]), int(fields["seq"])) if fields["seq"] else None


class LeafSwitch:
    """A leaf switch with one job. workers: the job's in this rack, at the ports that `Host.of` gives them."""

    def __init__(self, plane: DataPlane, rack: int, workers: Sequence[int], slots: int, of_job: int) -> None:
        self.plane = plane
        self.rack, self.lanes = rack, plane.lanes
        self.hosts = {worker: Host.of(worker) for worker in workers}
        place = job_of(JOB, slots=slots, vector_length=self.lanes * slots, workers=of_job, first_slot=FIRST_SLOT)
        for entry in (place, entries.uplink(JOB, rack, 0, UPLINK)):
            self.plane.put(entry)
        for worker, host in self.hosts.items():
            self._admit(worker, host)
        self.plane.group(entries.leaf_group(JOB, self.hosts, UPLINK))
        self._session = 0

    def _admit(self, worker: int, host: Host) -> None:
        self.plane.put(entries.address(JOB, worker, host))
        self.plane.put(entries.member(JOB, worker, host))

    def prepare(self, session: int, epoch: int, policy: LeafPolicy) -> None:
        self.plane.put(entries.prepared(JOB, session, epoch, policy))

    def forget(self, session: int, epoch: int) -> None:
        self.plane.delete(entries.not_prepared(JOB, session, epoch))

    def tell(self, session: int, epoch: int, policy: LeafPolicy) -> None:
        """Writes the session, epoch and policy in force, as the controller does."""
        if session != self._session:
            if self._session:
                self.plane.delete(entries.member(JOB, ROOT, entries.root_at(UPLINK, self._session)))
            self.plane.put(entries.member(JOB, ROOT, entries.root_at(UPLINK, session)))
            self._session = session
        self.plane.put(entries.policy(JOB, session, epoch, policy.fields))

    def readmit(self, worker: int) -> None:
        """Admits a worker again, as after a restart of its process."""
        self.plane.delete(entries.member(JOB, worker, self.hosts[worker]))
        self.hosts[worker] = self.hosts[worker].restarted()
        self._admit(worker, self.hosts[worker])

    def send(self, worker: int, payload: bytes) -> list[Answer | Up]:
        """Sends a worker's UDP payload, and returns the packets that come out."""
        host = self.hosts[worker]
        return self._parsed(self.plane.process(host.port, host.frame_head(len(payload)) + payload))

    def hear(self, place: int, packet: Down | Grant, port: int = 0) -> list[Answer | Up]:
        """Sends a packet from the root, and returns what comes out. port: the port of the worker that it echoes."""
        frame = self.frame(place, packet, port)
        return self._parsed(self.plane.process(UPLINK, frame))

    def frame(self, place: int, packet: Down | Grant, port: int = 0) -> bytes:
        worker, seq = (packet.echo if isinstance(packet, Down) else None) or (0, 0)
        down = isinstance(packet, Down)
        payload = _payload(
            Op.DOWN if down else Op.GRANT,
            packet.values if isinstance(packet, Down) else np.zeros(self.lanes, np.uint32),
            place,
            worker=ROOT,
            session=packet.session,
            epoch=packet.epoch,
            round=packet.base,
            seq=seq,
            total=packet.total if isinstance(packet, Down) else 0,
            seen=packet.session,
            sync_mask=port,
            members=worker,
        )
        own = entries.leaf_at(self.rack, 0, 0)
        ends = entries.root_at(UPLINK, 0)
        return encapsulation(
            len(payload), source=(ends.mac, ends.ip, SERENE_UDP_PORT), destination=(own.mac, own.ip, SERENE_UDP_PORT)
        ) + payload  # fmt: skip

    def _parsed(self, frames: Sequence[tuple[int, bytes]]) -> list[Answer | Up]:
        return [self._answer(port, frame) if port != UPLINK else self._up(frame) for port, frame in frames]

    def _answer(self, port: int, frame: bytes) -> Answer:
        fields = header(frame)
        op, worker = Op(int(fields["op"])), int(fields["worker"])
        assert port == self.hosts[worker].port
        assert (fields["session"], fields["slot"] < 2**16, fields["job"]) == (self._session, True, JOB)
        lanes = values(frame).view(np.int32) if op is Op.ANSWER else np.zeros(0)
        epoch, base, seq, total = (int(fields[name]) for name in ("epoch", "round", "seq", "total"))
        return Answer(worker, op, epoch, base, seq, total, tuple(lanes.tolist()))

    def _up(self, frame: bytes) -> Up:
        fields = header(frame)
        assert (fields["op"], fields["worker"], fields["seen"]) == (Op.UP, self.rack, self._session)
        assert frame[30:34] == number(SWITCH_IP).to_bytes(4, "big")
        echo = _echoed(fields)
        assert int(fields["sync_mask"]) == (self.hosts[echo[0]].port if echo else 0)
        session, epoch, base, arrivals, total = (
            int(fields[name]) for name in ("session", "epoch", "round", "quorum", "total")
        )
        return Up(session, epoch, base, arrivals, total, values(frame), bool(fields["staleness"]), echo)


class RootSwitch:
    """The root switch with one job. leaves: the number of racks."""

    def __init__(self, plane: DataPlane, leaves: int, slots: int) -> None:
        self.plane = plane
        self.lanes, self.leaves = plane.lanes, leaves
        place = job_of(JOB, slots=slots, vector_length=self.lanes * slots, workers=leaves, first_slot=FIRST_SLOT)
        self.plane.put(place)
        self.plane.group(entries.root_group(JOB, ((rack, leaf_port(rack)) for rack in range(leaves))))
        self._session = 0

    def set_policy(self, session: int, epoch: int, policy: PolicyFields) -> None:
        for rack in range(self.leaves) if session != self._session else ():
            host = entries.leaf_at(rack, 0, session)
            if self._session:
                last = entries.leaf_at(rack, 0, self._session)
                self.plane.delete(entries.member(JOB, rack, last))
            self.plane.put(entries.address(JOB, rack, host))
            self.plane.put(entries.member(JOB, rack, host))
        self._session = session
        self.plane.put(entries.policy(JOB, session, epoch, policy))

    def frame(self, rack: int, place: int, packet: Up, port: int = 0) -> bytes:
        worker, seq = packet.echo or (0, 0)
        payload = _payload(
            Op.UP, packet.values, place, worker=rack, session=packet.session, epoch=packet.epoch, round=packet.base,
            seq=seq, total=packet.total, seen=packet.session, sync_mask=port, staleness=int(packet.ask),
            quorum=packet.arrivals, members=worker,
        )  # fmt: skip
        return frame_head(entries.leaf_at(rack, 0, packet.session), len(payload)) + payload

    def send(self, rack: int, place: int, packet: Up, port: int = 0) -> list[Down | Grant]:
        frames = self.plane.process(leaf_port(rack), self.frame(rack, place, packet, port))
        return [self._parsed(out, frame, port) for out, frame in frames]

    def _parsed(self, out: int, frame: bytes, port: int) -> Down | Grant:
        fields = header(frame)
        rack = out - 1
        assert (fields["worker"], fields["seen"]) == (ROOT, self._session)
        assert frame[0:6] == bytes.fromhex(entries.leaf_at(rack, 0, 0).mac.replace(":", ""))
        session, epoch, base, total = (int(fields[name]) for name in ("session", "epoch", "round", "total"))
        if fields["op"] == Op.GRANT:
            assert (fields["seq"], fields["members"], total) == (0, 0, 0)
            return Grant(rack, session, epoch, base)
        assert fields["op"] == Op.DOWN
        echo = _echoed(fields)
        assert fields["sync_mask"] == (port if echo else 0)
        return Down(rack, session, epoch, base, total, values(frame), echo)
