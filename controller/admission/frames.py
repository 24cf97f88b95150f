"""Frames between workers and the controller: requests that the switch punts, answers that the controller sends."""

from __future__ import annotations

import ipaddress
import json
import struct
from dataclasses import dataclass

import numpy as np

from serene.entries import Endpoint
from serene.errors import SereneError
from serene.racks import Racks
from serene.report import Fact, Facts
from serene.wire import HEADER, MEMBERSHIP, SERENE_UDP_PORT, Op, control_payload, encapsulation

_ETHERNET = struct.Struct("!6s6sH")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_UDP = struct.Struct("!HHHH")
_IPV4_AT = _ETHERNET.size
_UDP_AT = _IPV4_AT + _IPV4.size
_SERENE_AT = _UDP_AT + _UDP.size
_TEXT_AT = _SERENE_AT + HEADER.itemsize

LONGEST_TEXT = 100  # characters
LARGEST_NUMBER = 2**53  # up to which every JSON parser reads integers exactly


class NotARequest(SereneError):
    """A frame is no worker's request, or lacks a field that its kind of request needs."""


@dataclass(frozen=True)
class Request:
    """A HELLO, REPORT or LEAVE, and its sender."""

    op: Op
    job: int
    worker: int  # its number in its rack
    sender: Endpoint
    session: int  # the worker's session, or its last one; 0: none yet. Answers carry the same
    epoch: int  # of a HELLO: the worker's epoch; 0: it wants to join
    payload: bytes  # after the header serene_t
    says_rack: int | None = None  # of a HELLO: the rack that the worker names; None: none
    proof: int = 0  # of a HELLO: the last number that it got (controller/admission/proof.py); 0: none yet

    @property
    def vector_length(self) -> int:
        """Of a HELLO: the length of the worker's vector, in values."""
        return int(np.frombuffer(self.payload[: MEMBERSHIP.itemsize], MEMBERSHIP)[0]["vector_length"])

    def facts(self) -> Facts:
        """Of a REPORT or LEAVE: its JSON object, with None for values that are neither short texts nor numbers up to
        2^53. Raises NotARequest.

        Terminals show it, and it is forwarded as JSON. So it has no control characters, lone surrogates or nested
        values.
        """
        return {key: _plain(value) for key, value in self._object().items() if _is_text(key)}

    def died(self) -> list[int]:
        """Of a LEAVE: the workers whose processes have died, as the sender reports. Raises NotARequest."""
        reported = self._object().get("died")
        return [worker for worker in reported if type(worker) is int] if isinstance(reported, list) else []

    def _object(self) -> dict[str, object]:
        try:
            facts = json.loads(self.payload)
        except (ValueError, RecursionError) as error:
            raise NotARequest(f"{self.op.name} of worker {self.worker} of job {self.job}: {error}") from None
        if not isinstance(facts, dict):
            raise NotARequest(f"{self.op.name} of worker {self.worker} of job {self.job}: expected a JSON object")
        return facts


def parse(port: int, frame: bytes, rack: int = 0) -> Request:
    """The request in a frame that came in at ``port`` of the rack's switch. Raises NotARequest."""
    if len(frame) < _TEXT_AT:
        raise NotARequest(f"a frame of {len(frame)} bytes: expected at least {_TEXT_AT}")
    _, source_mac, _ = _ETHERNET.unpack_from(frame)
    source_ip = _IPV4.unpack_from(frame, _IPV4_AT)[8]
    udp_port, _, udp_length, _ = _UDP.unpack_from(frame, _UDP_AT)
    header = np.frombuffer(frame, HEADER, count=1, offset=_SERENE_AT)[0]
    try:
        op = Op(int(header["op"]))
    except ValueError:
        raise NotARequest(f"op {int(header['op']):#04x} is not known") from None
    payload = frame[_TEXT_AT : _UDP_AT + udp_length]  # a short Ethernet frame is padded
    if op is Op.HELLO and len(payload) < MEMBERSHIP.itemsize:
        raise NotARequest(f"a HELLO with {len(payload)} bytes: expected {MEMBERSHIP.itemsize}")
    sender = Endpoint(
        port,
        ":".join(f"{octet:02x}" for octet in source_mac),
        str(ipaddress.IPv4Address(source_ip)),
        udp_port,
        int(header["incarnation"]),
        rack,
    )
    job, worker, session, epoch, proof = (int(header[name]) for name in ("job", "worker", "session", "epoch", "seq"))
    says_rack = int(header["round"]) - 1 if op is Op.HELLO and header["round"] else None
    return Request(op, job, worker, sender, session, epoch, payload, says_rack, proof)


def _plain(value: object) -> Fact:
    if isinstance(value, str):
        return value if _is_text(value) else None
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) <= LARGEST_NUMBER:  # false for NaN
        return value
    return None


def _is_text(value: str) -> bool:
    return len(value) <= LONGEST_TEXT and value.isprintable()


@dataclass(frozen=True)
class Answerer:
    """Builds the frames that the controller sends to workers, with the switch's addresses.

    Each carries the receiver's incarnation, so that a later process at the same place ignores it. It also carries the
    session of the request, so that a process in a later session ignores it. Two frames answer no request and carry the
    job's session: the REFUSED of a deleted job, and the WAIT that asks the workers of a lost session for a HELLO.
    """

    switch_ip: str
    switch_mac: str

    def refused(
        self, to: Endpoint, job: int, worker: int, session: int, reason: str, *, has_left: bool = False
    ) -> bytes:
        """A REFUSED with the reason, to a process that asked for a place or has one. has_left: as of `Refusal`."""
        return self._frame(to, job, worker, session, Op.REFUSED, reason.encode(), seq=int(has_left))

    def wait(self, to: Endpoint, job: int, worker: int, session: int, reason: str) -> bytes:
        """A WAIT with the reason, to a worker that waits for others, or that cannot leave now."""
        return self._frame(to, job, worker, session, Op.WAIT, reason.encode())

    def prove(self, to: Endpoint, job: int, worker: int, session: int, number: int, racks: Racks) -> bytes:
        """A WAIT that asks for a HELLO with this number. With several racks, it also has the number of racks, and the
        number of workers in the racks before the receiver's."""
        several = len(racks.sizes) > 1
        where = {"round": racks.first(to.rack), "slot": len(racks.sizes)} if several else {}
        return self._frame(to, job, worker, session, Op.WAIT, b"", seq=number, **where)

    def bye(self, request: Request, *, job_over: bool) -> bytes:
        """A BYE to the sender of a LEAVE."""
        body = json.dumps({"job_over": job_over}).encode()
        return self._answer(request, Op.BYE, body)

    def _answer(self, request: Request, op: Op, text: bytes, **fields: int) -> bytes:
        return self._frame(request.sender, request.job, request.worker, request.session, op, text, **fields)

    def _frame(self, to: Endpoint, job: int, worker: int, session: int, op: Op, text: bytes, **fields: int) -> bytes:
        payload = control_payload(
            op, text, job=job, worker=worker, session=session, incarnation=to.incarnation, **fields
        )
        source = (self.switch_mac, self.switch_ip, SERENE_UDP_PORT)
        return encapsulation(len(payload), source=source, destination=(to.mac, to.ip, to.udp_port)) + payload
