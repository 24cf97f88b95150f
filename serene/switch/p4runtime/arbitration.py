"""Who may write: the controller with the highest election id ever seen (P4Runtime specification, section 5)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from finsy.proto import p4r, rpc_status

from serene.switch.p4runtime.status import Code, Failure, invalid, not_found, number, unimplemented

ElectionId = tuple[int, int]  # high, low 64 bits

WAITING_MESSAGES = 4096  # for one controller; a slower one loses packet-ins and digests
WAITING_BYTES = 16 << 20
WAITING_NOTICES = 16  # of who is primary; of further ones the latest counts


class Session:
    """One controller's stream: who it says it is, and the messages that wait for it."""

    def __init__(self) -> None:
        self.introduced = False
        self.election_id: ElectionId | None = None  # None: it never wants to be primary
        self.lost = 0  # messages that found too many others waiting
        self._waiting: deque[p4r.StreamMessageResponse] = deque()
        self._waiting_bytes = 0
        self._waiting_notices: deque[p4r.StreamMessageResponse] = deque()  # those among them
        self._changed = threading.Condition()
        self._closed = False

    def notify(self, message: p4r.StreamMessageResponse) -> None:
        """Says who is primary. It never gets lost, but one that was not read yet may give way to a later one."""
        with self._changed:
            if len(self._waiting_notices) >= WAITING_NOTICES:
                self._waiting_notices[-1].CopyFrom(message)
                return
            self._waiting_notices.append(message)
            self._add(message)

    def _add(self, message: p4r.StreamMessageResponse) -> None:
        self._waiting.append(message)
        self._waiting_bytes += message.ByteSize()
        self._changed.notify()

    def offer(self, message: p4r.StreamMessageResponse) -> None:
        """Sends a message that may get lost: a packet-in, a digest list, an error."""
        with self._changed:
            if len(self._waiting) >= WAITING_MESSAGES or self._waiting_bytes + message.ByteSize() > WAITING_BYTES:
                self.lost += 1
                return
            self._add(message)

    def close(self) -> None:
        """Ends the stream when what waits has been sent. Never blocks: gRPC calls it from its own thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def messages(self) -> Iterator[p4r.StreamMessageResponse]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                message = self._waiting.popleft()
                if self._waiting_notices and message is self._waiting_notices[0]:
                    self._waiting_notices.popleft()
                self._waiting_bytes = max(self._waiting_bytes - message.ByteSize(), 0) if self._waiting else 0
            yield message


class Arbitration:
    """The sessions of one device (and its default role). The service's lock guards it."""

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self.primary: Session | None = None
        self._sessions: list[Session] = []
        self._highest: ElectionId | None = None

    def update(self, session: Session, request: p4r.MasterArbitrationUpdate) -> None:
        """A controller introduces itself, or changes its election id. Raises Failure: the stream then ends."""
        self._check_identity(session, request)
        election_id = _election_id(request)
        if election_id and any(other is not session and other.election_id == election_id for other in self._sessions):
            raise invalid(f"election id {_text(election_id)} is already used by another controller; choose another one")
        if not session.introduced:
            session.introduced = True
            self._sessions.append(session)
        session.election_id = election_id

        if election_id and (self._highest is None or election_id >= self._highest):
            self._highest = election_id
            self.primary = session
            self._notify_all()
        elif self.primary is session:
            self.primary = None
            self._notify_all()
        else:
            self._notify(session)

    def _check_identity(self, session: Session, request: p4r.MasterArbitrationUpdate) -> None:
        role = request.role
        if session.introduced and request.device_id != self.device_id:
            raise Failure(
                Code.FAILED_PRECONDITION,
                f"this stream is about device {self.device_id}: open another one for device {request.device_id}",
            )
        if request.device_id != self.device_id:
            raise not_found(f"there is no device {request.device_id}; this switch is device {self.device_id}")
        if session.introduced and (role.name or role.id):
            raise Failure(Code.FAILED_PRECONDITION, "a stream keeps its role: open another one to change it")
        if role.name or role.id:
            raise unimplemented("roles are not supported: leave the role out")
        if role.HasField("config"):
            raise invalid("the default role has no config: leave the role out")

    def leave(self, session: Session) -> None:
        if session in self._sessions:
            self._sessions.remove(session)
        if self.primary is session:
            self.primary = None
            self._notify_all()

    def why_not_primary(self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest) -> str | None:
        """None if a request comes from the primary, else why not."""
        if self.primary is None:
            return "there is no primary controller: open a stream and send a MasterArbitrationUpdate first"
        given = _election_id(request)
        if self.primary.election_id != given:
            held = _text(self.primary.election_id)
            return f"election id {_text(given)} is not the primary's ({held}): only the primary may write"
        return None

    def _notify_all(self) -> None:
        for session in sorted(self._sessions, key=lambda one: one is self.primary):  # the primary last
            self._notify(session)

    def _notify(self, session: Session) -> None:
        if session is self.primary:
            status = rpc_status.Status(code=number(Code.OK), message="you are the primary controller")
        elif self.primary is not None:
            held = _text(self.primary.election_id)
            status = rpc_status.Status(
                code=number(Code.ALREADY_EXISTS), message=f"another controller is primary, with election id {held}"
            )
        else:
            status = rpc_status.Status(code=number(Code.NOT_FOUND), message="there is no primary controller")
        answer = p4r.StreamMessageResponse()
        answer.arbitration.device_id = self.device_id
        answer.arbitration.status.CopyFrom(status)
        if self._highest is not None:
            answer.arbitration.election_id.high, answer.arbitration.election_id.low = self._highest
        session.notify(answer)


def _election_id(
    request: p4r.MasterArbitrationUpdate | p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest,
) -> ElectionId | None:
    return (request.election_id.high, request.election_id.low) if request.HasField("election_id") else None


def _text(election_id: ElectionId | None) -> str:
    if election_id is None:
        return "(none)"
    high, low = election_id
    return str(high << 64 | low)
