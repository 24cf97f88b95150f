"""Bounds on the cost of a connection, before its first request is read and its token is checked.

uvicorn limits neither the time until a request's head is complete, nor the number of open connections, nor the time for
which an answer stays unread.
"""

from __future__ import annotations

import asyncio
import json

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_TIMEOUT_S = 10.0  # for the whole head of a request, from the connection's start or the request's first byte
READ_TIMEOUT_S = 20.0  # for the client to read more of an answer
MOST_CONNECTIONS = 256  # to the TCP port, and as many to the Unix socket, which only the controller's user can fill


class Connection(H11Protocol):
    """An HTTP connection. It is closed if the client does not send heads of requests or read answers in time, or has
    too many connections."""

    _deadline: asyncio.TimerHandle | None = None  # for a request's head
    _unread: asyncio.TimerHandle | None = None  # for an answer to be read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Writing pauses as soon as the kernel's buffer is full. So READ_TIMEOUT_S applies to all sent data, also while
        # the connection is being closed.
        transport.set_write_buffer_limits(0)
        alike = [other for other in self.connections if isinstance(other, Connection) and other._port == self._port]
        if len(alike) > MOST_CONNECTIONS:
            transport.write(_TOO_MANY)
            transport.close()
        else:
            self._await_head()

    @property
    def _port(self) -> int | None:
        """The TCP port; None for the Unix socket."""
        return self.server[1] if self.server else None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()
        else:
            self._forget_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        self._forget_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        self._forget_unread()
        super().resume_writing()

    def _await_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(READ_TIMEOUT_S, self._check_reader, left)

    def _check_reader(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._await_reader()
        else:
            self.transport.abort()

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


_TEXT = json.dumps({"error": f"too many connections ({MOST_CONNECTIONS} at most): close one"}).encode()
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_TEXT), _TEXT)
)
