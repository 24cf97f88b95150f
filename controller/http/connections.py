"""What a connection may cost before its first request is known, and so before anything asks for a token.

uvicorn bounds neither how long a request's head may take to come nor how many connections are open.
"""

from __future__ import annotations

import asyncio
import json

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_TIMEOUT_S = 10.0  # for the whole head of a request, from the connection's start or the request's first byte
MOST_CONNECTIONS = 256  # to the TCP port, and as many to the Unix socket, which only the controller's user can fill


class Connection(H11Protocol):
    """One that sends the heads of its requests in time, and is not one too many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        alike = [other for other in self.connections if isinstance(other, Connection) and other._port == self._port]
        if len(alike) > MOST_CONNECTIONS:
            transport.write(_TOO_MANY)
            transport.close()
        else:
            self._await_head()

    @property
    def _port(self) -> int | None:
        """None: the Unix socket."""
        return self.server[1] if self.server else None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()
        else:
            self._forget_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


_TEXT = json.dumps({"error": f"{MOST_CONNECTIONS} connections are open already: end one"}).encode()
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_TEXT), _TEXT)
)
