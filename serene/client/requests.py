"""A worker's requests, HELLO, REPORT and LEAVE, and what answers them: WELCOME, REFUSED, WAIT and BYE."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from serene.client.protocol import Membership, parse_welcome
from serene.client.transport import Transport
from serene.errors import SereneError
from serene.racks import MAX_RACKS
from serene.wire import HEADER, MEMBERSHIP, Op, control_payload, in_header, membership

FROM_THE_CONTROLLER = (Op.REFUSED, Op.WAIT, Op.BYE)  # of what answers requests


class NoAnswer(SereneError):
    """No answer from the switch for too long."""


class SessionLost(SereneError):
    """The job's session has ended: the switch lost its state, or the job was started again.

    ``join`` and ``catch_up`` bring the worker into the new one.
    """


class Refused(SereneError):
    """The controller does not admit this worker; the message is its reason."""


class Requests:
    """Of one worker of one job. incarnation: tells it from those that were, or will be, the same worker, 1 to 2^32 - 1;
    drawn at random unless given. rack: where the worker believes to be; in another the controller refuses it."""

    def __init__(
        self,
        transport: Transport,
        job: int,
        worker: int,
        vector_length: int,
        incarnation: int | None = None,
        rack: int | None = None,
    ) -> None:
        self._transport = transport
        self.job = in_header("job", job, 0, 2**8 - 1)
        self.worker = in_header("worker", worker, 0, 2**8 - 1)
        self._rack = None if rack is None else in_header("rack", rack, 0, MAX_RACKS - 1)
        self._racks, self._first = 1, 0  # of the job, and workers in those before this one, as the controller says
        self.vector_length = in_header("vector_length", vector_length, 1, 2**32 - 1)
        self.incarnation = 0
        self.begin_incarnation(incarnation)
        self.session = 0  # that the worker has joined last
        self.confirmations = 0  # WELCOMEs of that session since
        self.joining = False
        self.missing = ""  # what the controller said last that this worker waits for: others, or a switch
        self._proof = 0  # the number that it wants to hear, to know that this HELLO is not an old one

    def begin_incarnation(self, incarnation: int | None = None) -> None:
        """From now on, what answers earlier requests is for somebody else."""
        self.incarnation = incarnation or 1 + secrets.randbelow(2**32 - 1)

    def hello(self, epoch: int) -> None:
        """Asks for a place, or, where the worker has one, whether that still holds: then it says in which epoch it is.
        epoch: 0 when it asks for a place."""
        body = membership(vector_length=self.vector_length)
        says = 0 if self._rack is None else self._rack + 1
        self.say(Op.HELLO, body, epoch=0 if self.joining else epoch, seq=self._proof, round=says)

    def say(self, op: Op, body: bytes, *, epoch: int = 0, seq: int = 0, round: int = 0) -> None:
        payload = control_payload(
            op, body, job=self.job, worker=self.worker, incarnation=self.incarnation,
            session=self.session, epoch=epoch, seq=seq, round=round,
        )  # fmt: skip
        self._transport.send(np.frombuffer(payload, np.uint8)[None, :])

    def answers(self, timeout_s: float) -> list[bytes]:
        """What arrives within the time for this worker's requests, up to the first packets."""
        payloads, lengths = self._transport.receive(timeout_s)
        whole = [payloads[row, : lengths[row]].tobytes() for row in np.flatnonzero(lengths >= HEADER.itemsize)]
        return [payload for payload in whole if self.is_answered_by(payload)]

    def is_answered_by(self, payload: bytes) -> bool:
        """Whether what answers a request answers one of this incarnation; and, unless it is a WELCOME, which tells of
        another session, one of this session: what was said to the same process in an earlier one may be late."""
        header = np.frombuffer(payload, HEADER, 1)[0]
        ours = (self.job, self.worker, self.incarnation)
        if (int(header["job"]), int(header["worker"]), int(header["incarnation"])) != ours:
            return False
        return header["op"] not in FROM_THE_CONTROLLER or int(header["session"]) == self.session

    def welcome(self, payload: bytes) -> Membership | None:
        """The membership, if this is a WELCOME. Raises Refused if it is a refusal, and BadWelcome."""
        if payload[1] == Op.REFUSED:
            raise Refused(payload[HEADER.itemsize :].decode(errors="replace"))
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
        """The controller's answer to a HELLO: say it again with this number, or others are missing. Or it cannot do now
        what a HELLO or LEAVE asks for."""
        proof = int(header["seq"])
        if not proof:
            self.missing = text.decode(errors="replace")
            return
        self._racks, self._first = max(int(header["slot"]), 1), int(header["round"])
        if proof != self._proof:
            self._proof = proof
            if self.joining:  # else it may answer a HELLO of long ago
                self.hello(0)
