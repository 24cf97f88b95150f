"""Connections to the controller that read or send too slowly are closed. The server runs in the test's own loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest
import uvicorn
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.server import ServerState

from serene.controller.http import connections
from serene.controller.http.connections import Connection
from tests.controller.processes import PATIENCE_S

ANSWER = b"a" * (8 << 20)  # more than a kernel's buffers take
REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nhost: local"


async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(ANSWER))]})
    await send({"type": "http.response.body", "body": ANSWER, "more_body": False})


async def serving(state: ServerState) -> asyncio.Server:
    config = uvicorn.Config(answer, http=Connection, log_config=None, lifespan="off", timeout_keep_alive=1)
    config.load()
    return await asyncio.get_running_loop().create_server(
        lambda: Connection(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )


@pytest.mark.parametrize("request_bytes", [REQUEST * 3, REQUEST.replace(b"1.1", b"1.0")], ids=["again", "closing"])
def test_connection_that_reads_no_answers_is_closed(monkeypatch: pytest.MonkeyPatch, request_bytes: bytes) -> None:
    """Also after its last answer: closing a connection waits for unread bytes."""
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.2)

    async def check() -> None:
        state = ServerState()
        server = await serving(state)
        with socket.create_connection(server.sockets[0].getsockname()) as lazy:
            lazy.sendall(request_bytes)
            while not state.connections:
                await asyncio.sleep(0.01)
            while state.connections:
                await asyncio.sleep(0.01)
        server.close()

    asyncio.run(asyncio.wait_for(check(), PATIENCE_S))


def test_slow_reader_gets_its_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 1.0)

    async def check() -> int:
        server = await serving(ServerState())
        slow = socket.socket()
        # Else the kernel's buffers take all of it at once, and nobody waits for the reader.
        server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        slow.connect(server.sockets[0].getsockname())
        reader, writer = await asyncio.open_connection(sock=slow)
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        read = 0
        while read < len(ANSWER):
            part = await reader.read(1 << 16)
            if not part:
                break
            read += len(part)
            await asyncio.sleep(0.02)
        writer.close()
        server.close()
        assert head.startswith(b"HTTP/1.1 200")
        return read

    assert asyncio.run(asyncio.wait_for(check(), PATIENCE_S)) == len(ANSWER)


@pytest.mark.parametrize("first", [b"", HALF, REQUEST + HALF], ids=["nothing", "a part", "a part after a whole"])
def test_incomplete_request_head_times_out(monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.2)

    async def check() -> bytes:
        server = await serving(ServerState())
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(first)
        received = await reader.read()
        writer.close()
        server.close()
        return received

    received = asyncio.run(asyncio.wait_for(check(), PATIENCE_S))
    assert received.startswith(b"HTTP/1.1 200") if REQUEST in first else b"200" not in received


def test_request_head_sent_byte_by_byte_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.3)

    async def check() -> None:
        server = await serving(ServerState())
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(HALF)
        ended = asyncio.create_task(reader.read())
        while not ended.done():
            with suppress(ConnectionError):
                writer.write(b"a")
                await writer.drain()
            await asyncio.sleep(0.05)
        await asyncio.gather(ended, return_exceptions=True)
        writer.close()
        server.close()

    asyncio.run(asyncio.wait_for(check(), PATIENCE_S))
