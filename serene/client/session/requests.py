"""A worker's requests (HELLO, REPORT and LEAVE) and their answers (WELCOME, REFUSED, WAIT and BYE)."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from serene.client.protocol.protocol import MOST_WORKERS, Membership
from serene.client.transport.transport import LARGEST_PAYLOAD, Transport
from serene.errors import SereneError
from serene.fixedpoint import LARGEST
from serene.racks import MAX_RACKS
from serene.wire import HEADER, MEMBERSHIP, Op, control_payload, in_header, membership

FROM_THE_CONTROLLER = (Op.REFUSED, Op.WAIT, Op.BYE)  # answers to requests; WELCOME comes from the switch


class NoAnswer(SereneError):
    """The switch has not answered within the time."""


class SessionLost(SereneError):
    """The job's session has ended: the switch lost its state, or the job was restarted.

    ``join`` and ``catch_up`` bring the worker into the new one.
    """


class BadWelcome(SereneError):
    """A WELCOME whose sizes do not fit together."""


class Refused(SereneError):
    """The controller does not admit this worker; the message is its reason. has_left: the job is over, and the
    controller had accepted this worker's LEAVE."""

    def __init__(self, reason: str, has_left: bool = False) -> None:
        super().__init__(reason)
        self.has_left = has_left


class Requests:
    """The requests of one worker of one job, and their answers.

    incarnation: 1 to 2^32 - 1, distinguishes this process from other processes of the same worker; random by default.
    rack: the worker's rack; in another rack the controller refuses it. None: not named. Raises SereneError for a number
    that its header field does not hold.
    """

    def __init__(
        self,
        transport: Transport,
        job: int,
        worker: int,
        vector_length: int,
        incarnation: int | None = None,
        rack: int | None = None,
    ) -> None:
        if not hasattr(transport, "receive"):
            raise SereneError(f"transport {transport!r}: expected a UdpTransport, FrameTransport or ShmTransport")
        self._transport = transport
        self.job = in_header("job", job, 0, 2**8 - 1)
        self.worker = in_header("worker", worker, 0, 2**8 - 1)
        self._rack = None if rack is None else in_header("rack", rack, 0, MAX_RACKS - 1)
        self._racks, self._first = 1, 0  # from the controller: the job's racks, and the workers in those before ours
        self.vector_length = in_header("vector_length", vector_length, 1, 2**32 - 1)
        self.incarnation = 0
        self.begin_incarnation(incarnation)
        self.session = 0  # the last one that the worker joined
        self.epoch = 0  # in it, from the last HELLO or WELCOME
        self.confirmations = 0  # WELCOMEs of that session since
        self.joining = False
        self.missing = ""  # the controller's last reason why this worker waits: others, or a switch
        self._proof = 0  # a number that a HELLO has to repeat, which proves that it is new

    def begin_incarnation(self, incarnation: int | None = None) -> None:
        """Takes the given incarnation, or draws one. Answers to earlier requests are ignored from now on."""
        self.incarnation = incarnation or 1 + secrets.randbelow(2**32 - 1)

    def hello(self, epoch: int) -> None:
        """Asks for a place, or, if the worker has one, whether it still has it. epoch: the worker's; 0 when it asks for
        a place."""
        body = membership(vector_length=self.vector_length)
        rack = 0 if self._rack is None else self._rack + 1
        self.epoch = epoch
        self.send(Op.HELLO, body, epoch=0 if self.joining else epoch, seq=self._proof, round=rack)

    def send(self, op: Op, body: bytes, *, epoch: int = 0, seq: int = 0, round: int = 0) -> None:
        """Sends one request with this body."""
        payload = control_payload(
            op, body, job=self.job, worker=self.worker, incarnation=self.incarnation,
            session=self.session, epoch=epoch, seq=seq, round=round,
        )  # fmt: skip
        self._transport.send(np.frombuffer(payload, np.uint8)[None, :])

    def answers(self, timeout_s: float) -> list[bytes]:
        """The answers to this worker's requests among the next packets, UDP payloads; [] if none arrives within the
        time."""
        payloads, lengths = self._transport.receive(timeout_s)
        whole = [payloads[row, : lengths[row]].tobytes() for row in np.flatnonzero(lengths >= HEADER.itemsize)]
        return [payload for payload in whole if self.is_answered_by(payload)]

    def is_answered_by(self, payload: bytes) -> bool:
        """Whether a payload answers a request of this incarnation. The controller's messages also have to be of this
        session, because an answer of an earlier one may come late. A WELCOME may be of a new session."""
        header = np.frombuffer(payload, HEADER, 1)[0]
        ours = (self.job, self.worker, self.incarnation)
        if (int(header["job"]), int(header["worker"]), int(header["incarnation"])) != ours:
            return False
        return header["op"] not in FROM_THE_CONTROLLER or int(header["session"]) == self.session

    def welcome(self, payload: bytes) -> Membership | None:
        """The membership, if this is a WELCOME, else None. Stores a WAIT's reason. Raises Refused if it is a refusal or
        the job's vectors have another length, and BadWelcome."""
        if payload[1] == Op.REFUSED:
            has_left = bool(np.frombuffer(payload, HEADER, 1)[0]["seq"])
            raise Refused(payload[HEADER.itemsize :].decode(errors="replace"), has_left)
        if payload[1] == Op.WAIT:
            self._wait(np.frombuffer(payload, HEADER, 1)[0], payload[HEADER.itemsize :])
        if payload[1] != Op.WELCOME or len(payload) < HEADER.itemsize + MEMBERSHIP.itemsize:
            return None
        welcome = parse_welcome(payload)
        if welcome.vector_length != self.vector_length:
            raise Refused(f"job {self.job} has vectors of {welcome.vector_length} values, not {self.vector_length}")
        self.confirmations += welcome.session == self.session
        return replace(welcome, racks=self._racks, first=self._first)

    def _wait(self, header: np.void, text: bytes) -> None:
        """The controller's answer to a HELLO or LEAVE: a number for the next HELLO, the missing workers, or the reason
        why the request must wait."""
        proof = int(header["seq"])
        if not proof:
            self.missing = text.decode(errors="replace")
            return
        self._racks, self._first = max(int(header["slot"]), 1), int(header["round"])
        if proof != self._proof:
            self._proof = proof
            self.hello(self.epoch)  # a worker asks for a place only while it joins; else this may answer an old HELLO


def parse_welcome(payload: bytes) -> Membership:
    """The membership in a complete WELCOME's UDP payload. Raises BadWelcome."""
    header = np.frombuffer(payload, HEADER, 1)[0]
    body = np.frombuffer(payload, MEMBERSHIP, 1, HEADER.itemsize)[0]
    for name in ("vector_length", "scale", "limit", "lanes"):
        if not body[name]:
            raise BadWelcome(f"the switch's WELCOME has {name} 0: expected at least 1")
    if body["limit"] > LARGEST:
        raise BadWelcome(f"the switch's WELCOME has limit {body['limit']}, which exceeds 32 bits: at most {LARGEST}")
    if HEADER.itemsize + 4 * int(body["lanes"]) > LARGEST_PAYLOAD:
        most = (LARGEST_PAYLOAD - HEADER.itemsize) // 4
        raise BadWelcome(f"the switch's WELCOME has lanes {body['lanes']}, more than a packet has: at most {most}")
    slots = -(-int(body["vector_length"]) // int(body["lanes"]))
    if body["slots"] != slots:
        raise BadWelcome(
            f"the switch's WELCOME gives {body['vector_length']} values {body['slots']} slots of {body['lanes']}: "
            f"expected {slots} slots"
        )
    if not (header["session"] and header["epoch"]):
        raise BadWelcome(f"the switch's WELCOME is of session {header['session']}, epoch {header['epoch']}: both count "
                         "from 1")  # fmt: skip
    return Membership(
        session=int(header["session"]),
        epoch=int(header["epoch"]),
        vector_length=int(body["vector_length"]),
        slots=int(body["slots"]),
        lanes=int(body["lanes"]),
        scale=int(body["scale"]),
        limit=int(body["limit"]),
        workers=int(body["workers"]) or MOST_WORKERS,
        lost_sessions=int(body["lost_sessions"]),
        members=int(header["members"]),
    )
