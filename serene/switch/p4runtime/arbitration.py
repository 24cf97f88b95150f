"""Who may write: the controller with the highest election id ever seen (P4Runtime specification, section 5)."""

from __future__ import annotations

import queue
from dataclasses import dataclass, field

from finsy.proto import p4r, rpc_status

from serene.switch.p4runtime.status import Code, invalid, not_found, number, unimplemented

ElectionId = tuple[int, int]  # high, low 64 bits

STREAM_QUEUE = 4096  # messages waiting for one controller; a slower one loses packet-ins


@dataclass(eq=False)
class Session:
    """One controller's stream. ``None`` in the queue ends it."""

    outbox: queue.Queue[p4r.StreamMessageResponse | None] = field(default_factory=lambda: queue.Queue(STREAM_QUEUE))
    election_id: ElectionId | None = None  # None until it has introduced itself
    lost: int = 0

    def send(self, message: p4r.StreamMessageResponse) -> None:
        try:
            self.outbox.put_nowait(message)
        except queue.Full:
            self.lost += 1


class Arbitration:
    """The sessions of one device (and its default role). The service's lock guards it."""

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self.primary: Session | None = None
        self._sessions: list[Session] = []
        self._highest: ElectionId | None = None

    def update(self, session: Session, request: p4r.MasterArbitrationUpdate) -> None:
        """A controller introduces itself, or changes its election id. Raises Failure: the stream then ends."""
        if request.device_id != self.device_id:
            raise not_found(f"there is no device {request.device_id}; this switch is device {self.device_id}")
        if request.role.name or request.role.id or request.role.HasField("config"):
            raise unimplemented("roles are not supported: leave the role out")
        election_id = (request.election_id.high, request.election_id.low)
        if any(other is not session and other.election_id == election_id for other in self._sessions):
            raise invalid(f"election id {_text(election_id)} is already used by another controller; choose another one")
        if session.election_id is None:
            self._sessions.append(session)
        session.election_id = election_id

        was_primary = self.primary is session
        if election_id != (0, 0) and (self._highest is None or election_id >= self._highest):
            self._highest = election_id
            self.primary = session
            self._notify_all()
        elif was_primary:
            self.primary = None
            self._notify_all()
        else:
            self._notify(session)

    def leave(self, session: Session) -> None:
        if session in self._sessions:
            self._sessions.remove(session)
        if self.primary is session:
            self.primary = None
            self._notify_all()

    def check_writer(self, device_id: int, role: str, election_id: p4r.Uint128) -> str | None:
        """Why this controller may not write, or None."""
        if role:
            return "roles are not supported: leave the role out"
        given = (election_id.high, election_id.low)
        if self.primary is None:
            return "there is no primary controller: open a stream and send a MasterArbitrationUpdate first"
        if self.primary.election_id != given:
            held = _text(self.primary.election_id)
            return f"election id {_text(given)} is not the primary's ({held}): only the primary may write"
        return None

    def _notify_all(self) -> None:
        for session in self._sessions:
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
        session.send(answer)


def _text(election_id: ElectionId | None) -> str:
    high, low = election_id or (0, 0)
    return str(high << 64 | low)
