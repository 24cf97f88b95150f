"""Decides which controller may write: in each role, the one with the highest election id ever seen (P4Runtime, section
5).

Roles have no config here, so each role has access to everything. Several primaries have to divide the tables among
themselves.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from finsy.proto import p4r, rpc_status

from serene.embedded.p4runtime.status import Code, Failure, invalid, not_found, number
from serene.errors import choices

ElectionId = tuple[int, int]  # high, low 64 bits

MAX_STREAMS = 32  # in addition to the default role's primary
MAX_UNIDENTIFIED = 8  # more streams that have not sent an election id yet
WAITING_MESSAGES = 4096  # queued messages for one controller; a slower one loses packet-ins and digests
WAITING_BYTES = 16 << 20
MAX_ROLES = 64  # roles that have controllers, or for which an election id is stored
ROLE_CHARACTERS = 256
WAITING_NOTICES = 16  # queued notices about the primary; beyond these only the latest is kept


class IdInUse(Failure):
    """Another stream has this election id."""


class Session:
    """One controller's stream: its identity, and the queued messages for it. on_close: called when it is closed, by
    any thread, perhaps repeatedly."""

    def __init__(self, on_close: Callable[[], None] = lambda: None) -> None:
        self._on_close = on_close
        self.introduced = False
        self.left = False
        self.role = ""  # the default role
        self.election_id: ElectionId | None = None  # None: it does not want to be primary
        self.failure: Failure | None = None  # the error with which the stream ends
        self.lost = 0  # messages that were lost because the queue was full
        self._waiting: deque[p4r.StreamMessageResponse] = deque()
        self._waiting_bytes = 0
        self._waiting_notices: deque[p4r.StreamMessageResponse] = deque()  # the notices among them
        self._changed = threading.Condition()
        self._closed = False

    def notify(self, message: p4r.StreamMessageResponse) -> None:
        """Sends a notice about the primary. It is never lost, but a later notice may replace it before it is read."""
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

    def offer(self, message: p4r.StreamMessageResponse) -> bool:
        """Sends a message that may be lost (a packet-in, a digest list, an error). Returns whether there was room."""
        with self._changed:
            if len(self._waiting) >= WAITING_MESSAGES or self._waiting_bytes + message.ByteSize() > WAITING_BYTES:
                self.lost += 1
                return False
            self._add(message)
            return True

    def close(self) -> None:
        """Ends the stream after the queued messages. It never blocks, because gRPC calls it from its own thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._on_close()

    def end(self, failure: Failure) -> None:
        """Ends the stream with this error, after the queued messages."""
        self.failure = self.failure or failure
        self.close()

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


@dataclass
class _Role:
    given: p4r.Role | None  # from the role's first controller; None: the default role
    primary: Session | None = None
    highest: ElectionId | None = None
    sessions: list[Session] = field(default_factory=list)


class Arbitration:
    """The sessions of one device, by role. Protected by the service's lock."""

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self._roles = {"": _Role(None)}
        self._streams: list[Session] = []  # in the order in which they began
        self._primaries: tuple[Session, ...] = ()  # replaced, never modified, because it is read without the lock

    def enter(self, session: Session) -> None:
        """Adds a stream that begins."""
        self._streams.append(session)
        self._end_surplus_streams()

    def _end_surplus_streams(self) -> None:
        """Ends the streams for which there is no room. A stream that has not sent its election id may be the primary's.
        So it stays until MAX_UNIDENTIFIED later streams have begun."""
        beyond = [session for session in self._streams[MAX_STREAMS:] if session is not self._roles[""].primary]
        silent = [session for session in beyond if not session.introduced]
        for session in [*silent[:-MAX_UNIDENTIFIED], *(session for session in beyond if session.introduced)]:
            self._streams.remove(session)
            session.end(
                Failure(
                    Code.RESOURCE_EXHAUSTED,
                    f"{MAX_STREAMS} controllers are connected, the maximum: only a new primary may still connect",
                )
            )

    def update(self, session: Session, request: p4r.MasterArbitrationUpdate) -> None:
        """Sets a controller's identity, or changes its election id. If it raises Failure, the stream ends."""
        if session.left or session.failure:
            return  # the stream ended before this message was read
        name = self._check_identity(session, request)
        role = self._roles.get(name) or _Role(request.role)
        election_id = _election_id(request)
        if election_id and any(other is not session and other.election_id == election_id for other in role.sessions):
            raise IdInUse(
                Code.INVALID_ARGUMENT,
                f"election id {_text(election_id)} is already used by another controller; choose another one",
            )
        if not session.introduced:
            session.introduced, session.role = True, name
            self._roles[name] = role
            role.sessions.append(session)
        session.election_id = election_id
        self._elect(session, role, election_id)
        self._primaries = self._all_primaries()
        self._end_surplus_streams()

    def _elect(self, session: Session, role: _Role, election_id: ElectionId | None) -> None:
        if election_id and (role.highest is None or election_id >= role.highest):
            role.highest = election_id
            role.primary = session
            self._notify_all(role)
        elif role.primary is session:
            role.primary = None
            self._notify_all(role)
        else:
            self._notify(role, session)

    def _check_identity(self, session: Session, request: p4r.MasterArbitrationUpdate) -> str:
        """Checks role and device id; returns the role's name."""
        name = role_name(request.role.name, request.role.id)
        if session.introduced and request.device_id != self.device_id:
            raise Failure(
                Code.FAILED_PRECONDITION,
                f"this stream is for device {self.device_id}: open another one for device {request.device_id}",
            )
        if request.device_id != self.device_id:
            raise not_found(f"there is no device {request.device_id}; this switch is device {self.device_id}")
        if session.introduced and name != session.role:
            raise Failure(
                Code.FAILED_PRECONDITION, f"a stream keeps its role ({session.role!r}): open another one for {name!r}"
            )
        if request.role.HasField("config"):
            raise invalid(f"role {name!r}: role configs are not supported on this switch; leave the config out")
        if len(name) > ROLE_CHARACTERS:
            raise invalid(f"a role's name of {len(name)} characters; at most {ROLE_CHARACTERS}")
        if name not in self._roles and len(self._roles) > MAX_ROLES:
            raise Failure(Code.RESOURCE_EXHAUSTED, f"{MAX_ROLES} roles have been named already: no room for {name!r}")
        return name

    def leave(self, session: Session) -> None:
        if session.left:
            return
        session.left = True
        if session in self._streams:
            self._streams.remove(session)
        role = self._roles[session.role]
        if session in role.sessions:
            role.sessions.remove(session)
        if role.primary is session:
            role.primary = None
            self._notify_all(role)
        if session.role and not role.sessions and role.highest is None:
            del self._roles[session.role]  # the role has no election id
        self._primaries = self._all_primaries()

    @property
    def primaries(self) -> tuple[Session, ...]:
        """The primaries, at most one a role. The only method here that needs no lock."""
        return self._primaries

    def _all_primaries(self) -> tuple[Session, ...]:
        return tuple(role.primary for role in self._roles.values() if role.primary is not None)

    def check_role(self, name: str) -> None:
        if name not in self._roles:
            named = choices(repr(known) for known in self._roles if known) or "none but the default one"
            raise not_found(f"there is no role {name!r}; controllers have named {named}")

    def why_not_primary(self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest) -> str | None:
        """None if the request is from its role's primary, else the reason for refusing it. The role must exist."""
        name = role_name(request.role, request.role_id)
        primary, of_role = self._roles[name].primary, f" of role {name!r}" if name else ""
        if primary is None:
            return f"there is no primary controller{of_role}: open a stream and send a MasterArbitrationUpdate first"
        given = _election_id(request)
        if primary.election_id != given:
            held = _text(primary.election_id)
            return f"election id {_text(given)} is not the primary's{of_role} ({held}): only the primary may write"
        return None

    def _notify_all(self, role: _Role) -> None:
        for session in sorted(role.sessions, key=lambda one: one is role.primary):  # the primary last
            self._notify(role, session)

    def _notify(self, role: _Role, session: Session) -> None:
        if session is role.primary:
            status = rpc_status.Status(code=number(Code.OK), message="you are the primary controller")
        elif role.primary is not None:
            held = _text(role.primary.election_id)
            status = rpc_status.Status(
                code=number(Code.ALREADY_EXISTS), message=f"another controller is primary, with election id {held}"
            )
        else:
            status = rpc_status.Status(code=number(Code.NOT_FOUND), message="there is no primary controller")
        answer = p4r.StreamMessageResponse()
        answer.arbitration.device_id = self.device_id
        answer.arbitration.status.CopyFrom(status)
        if role.given is not None:
            answer.arbitration.role.CopyFrom(role.given)
        if role.highest is not None:
            answer.arbitration.election_id.high, answer.arbitration.election_id.low = role.highest
        session.notify(answer)


def role_name(name: str, id_: int) -> str:
    """A role's name, or the number that older controllers send instead. "" is the default role."""
    return name or (str(id_) if id_ else "")


def _election_id(
    request: p4r.MasterArbitrationUpdate | p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest,
) -> ElectionId | None:
    return (request.election_id.high, request.election_id.low) if request.HasField("election_id") else None


def _text(election_id: ElectionId | None) -> str:
    if election_id is None:
        return "(none)"
    high, low = election_id
    return str(high << 64 | low)
