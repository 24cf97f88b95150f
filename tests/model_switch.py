"""The model (tests/model.py) as a switch, with frames and table entries like the P4 program's."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from serene.controller.switch.counters import WORKER_COUNTERS
from serene.entries import CPU_PORT, FLOOD_GROUP, Cell, Entry, Group, number
from serene.program import Program
from serene.strategy import PolicyFields
from serene.wire import (
    ENCAPSULATION_BYTES,
    HEADER,
    MEMBERSHIP,
    PROTOCOL_VERSION,
    SERENE_UDP_PORT,
    SWITCH_IP,
    SWITCH_MAC,
    Op,
    ReadMode,
    encapsulation,
    mac_bytes,
    membership,
    precision_in,
)
from tests.model import Answer, Model, Policy, Slot

LANES, SLOTS = 96, 4  # few, so that runs are fast; more than contributions (checks.py), and room to vote
PROGRAM = Program(
    "model", Path(), Path(), lanes=LANES, slots=SLOTS, max_jobs=8, max_workers=32, counted_workers=32
)  # fmt: skip

_HEADER = struct.Struct(">BBBBIIIIIIIIBBBB")
_IP, _MAC = number(SWITCH_IP).to_bytes(4, "big"), mac_bytes(SWITCH_MAC)
_VLAN, _ARP, _IPV4 = b"\x81\x00", b"\x08\x06", b"\x08\x00"


class ModelSwitch:
    """A switch for jobs that begin at slot 0. Jobs that follow one another have the same slots."""

    program, lanes, slots = PROGRAM, LANES, SLOTS
    counters: Sequence[str] = (*WORKER_COUNTERS, "staleness")

    def __init__(self) -> None:
        self._table: dict[tuple[str, tuple[int, ...]], Entry] = {}
        self._ports: Sequence[int] = ()
        self._slots = [Slot(LANES) for _ in range(SLOTS)]
        self._models: dict[int, Model] = {}
        self._zero: dict[Cell, int] = {}  # what cells had counted when they were set to zero
        self._unread = 0  # before it restarted

    def restart(self) -> None:
        self._unread = self.unread
        self._table, self._models, self._zero, self._ports = {}, {}, {}, ()
        self._slots = [Slot(LANES) for _ in range(SLOTS)]

    @property
    def switches(self) -> Sequence[ModelSwitch]:
        return [self]

    # -- entries ---------------------------------------------------------------------------------------------

    def put(self, entry: Entry) -> None:
        self._table[entry.key] = entry
        if entry.table == "job":
            self._model(entry.match["job"]).workers = entry.params["workers"]
        elif entry.table == "policy":
            session, epoch, member_mask, sync_mask, staleness, quorum, read_mode, members = entry.params.values()
            precision = precision_in(members) or 32
            fields = PolicyFields(member_mask, sync_mask, staleness, quorum, ReadMode(read_mode), precision)
            self._model(entry.match["job"]).policy = Policy(session, epoch, fields)

    def delete(self, entry: Entry) -> None:
        del self._table[entry.key]

    def has(self, entry: Entry) -> bool:
        return entry.key in self._table

    def entries(self) -> list[Entry]:
        return list(self._table.values())

    def set_group(self, group: Group) -> None:
        """Only the ports of ordinary traffic: the model sends each copy of a release to the port of its receiver."""
        if group.number == FLOOD_GROUP:
            self._ports = [port for port, _ in group.replicas]

    def packets(self, cell: Cell) -> int:
        """Of the counters, the model has that of contributions."""
        job, worker = divmod(cell.index, PROGRAM.counted_workers)
        now = self.contributions(job).get(worker, 0) if cell.counter == "contributions" else 0
        return now - self._zero.get(cell, 0)

    def zero(self, cell: Cell) -> None:
        self._zero[cell] = self.packets(cell) + self._zero.get(cell, 0)

    def learned(self) -> list[tuple[str, int]]:
        """None: the model floods all ordinary frames."""
        return []

    def contributions(self, job: int) -> Mapping[int, int]:
        """How many contributions were accepted from each worker since the beginning."""
        return self._model(job).contributions

    @property
    def unread(self) -> int:
        """How many contributions broke rule 8 of docs/protocol.md since the beginning."""
        return self._unread + sum(model.unread for model in self._models.values())

    def _model(self, job: int) -> Model:
        if job not in self._models:
            self._models[job] = Model(0, LANES, workers=1)
            self._models[job].slots = self._slots
        return self._models[job]

    def _admitted(self, place: tuple[int, ...], incarnation: int) -> dict[int, int]:
        """The worker and incarnation that are admitted with these (port, mac, ip, udp_port, job, worker), if any."""
        there = [match[6] for table, match in self._table if table == "member" and match[:6] == place]
        return {place[5]: incarnation if incarnation in there else there[0]} if there else {}

    # -- packets ---------------------------------------------------------------------------------------------

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        return [caused for port, frame in packets for caused in self._one(port, frame)]

    def _one(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        if port == CPU_PORT:
            return [(int.from_bytes(frame[:2], "big") >> 7, frame[2:])]
        if frame[12:14] == _VLAN:
            return []
        if frame[12:14] != _IPV4 or int.from_bytes(frame[36:38], "big") != SERENE_UDP_PORT:
            return self._ordinary(port, frame)
        header = np.frombuffer(frame, HEADER, 1, ENCAPSULATION_BYTES)[0]
        op, job, worker, incarnation = (int(header[name]) for name in ("op", "job", "worker", "incarnation"))
        mac, ip, udp_port = (int.from_bytes(part, "big") for part in (frame[6:12], frame[26:30], frame[34:36]))
        model = self._model(job)
        model.admitted = self._admitted((port, mac, ip, udp_port, job, worker), incarnation)
        if op in (Op.HELLO, Op.LEAVE, Op.REPORT):
            return self._control(port, frame, op, job, worker, incarnation)
        where = self._table.get(("job", (job,)))
        if where is None or model.policy is None or int(header["slot"]) >= where.params["slots"]:
            return []
        return self._exchange(port, frame, header, model)

    def _ordinary(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Floods it, unless it claims to come from the switch."""
        claimed = frame[28:32] if frame[12:14] == _ARP else frame[26:30]
        if self._impostor(frame[6:12], claimed):
            return []
        return [(other, frame) for other in self._ports if other != port]

    def _impostor(self, mac: bytes, ip: bytes) -> bool:
        return mac == _MAC or ip == _IP

    def _control(
        self, port: int, frame: bytes, op: int, job: int, worker: int, incarnation: int
    ) -> list[tuple[int, bytes]]:
        model = self._model(job)
        to_controller = [(CPU_PORT, (port << 7).to_bytes(2, "big") + frame)]
        if op in (Op.LEAVE, Op.REPORT):
            return to_controller if model.leave(worker, incarnation) else []
        if not model.hello(worker, incarnation):
            return to_controller
        place = self._table.get(("job", (job,)))
        if place is None or model.policy is None:
            return []
        _, slots, vector_length, scale, limit, workers, lost_sessions, _ = place.params.values()
        body = membership(
            vector_length=vector_length, slots=slots, scale=scale, limit=limit, lanes=LANES, workers=workers & 0xFF,
            lost_sessions=lost_sessions,
        )  # fmt: skip
        assert len(body) == MEMBERSHIP.itemsize
        answer = Answer(worker, Op.WELCOME, model.policy.epoch, 0, 0, 0, ())
        return self._frames(job, [answer], 0, incarnation, body)

    def _exchange(self, port: int, frame: bytes, header: np.void, model: Model) -> list[tuple[int, bytes]]:
        names = ("job", "worker", "slot", "seq", "session", "epoch", "round", "total", "incarnation")
        job, worker, slot, seq, session, epoch, round_, total, incarnation = (int(header[name]) for name in names)
        if header["op"] == Op.PUSH:
            values = np.frombuffer(frame, ">i4", LANES, ENCAPSULATION_BYTES + HEADER.itemsize).astype(np.int32)
            answers = model.push(worker, slot, seq, session, epoch, round_, values, total, incarnation)
        else:
            answers = model.pull(worker, slot, seq, session, incarnation)
        return self._frames(job, answers, slot, model.slots[slot].seen.get(worker, 0), b"")

    def _frames(self, job: int, answers: list[Answer], slot: int, seen: int, body: bytes) -> list[tuple[int, bytes]]:
        """The frames of answers, to where their receivers are. seen: value of that field in all of them."""
        policy = self._model(job).policy
        assert policy is not None
        fields = policy.fields
        frames = []
        for answer in answers:
            if ("address", (job, answer.worker)) not in self._table:
                continue
            mac, ip, udp_port, *_ = self._table["address", (job, answer.worker)].params.values()
            head = _HEADER.pack(
                PROTOCOL_VERSION, answer.op, job, answer.worker, policy.session, answer.epoch, answer.base, answer.seq,
                slot, answer.total, seen, fields.sync_mask, fields.staleness, fields.quorum, int(fields.read_mode),
                fields.members_field,
            )  # fmt: skip
            payload = head + (np.array(answer.values, ">i4").tobytes() if answer.op is Op.ANSWER else body)
            to = (_text(mac, 6), ".".join(str(part) for part in ip.to_bytes(4, "big")), udp_port)
            outer = encapsulation(len(payload), source=(SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT), destination=to)
            frames.append((self._port_of(mac), outer + payload))
        return frames

    def _port_of(self, mac: int) -> int:
        """A host's port by its address."""
        return mac & 0xFF


def _text(mac: int, count: int) -> str:
    return ":".join(f"{octet:02x}" for octet in mac.to_bytes(count, "big"))
