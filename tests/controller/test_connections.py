"""Connections to the controller that read or send too slowly are closed. The server runs in the test's own loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest
import uvicorn
from starlette.types import Message, Receive, Send
from starlette.types import Scope as AnyScope
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.server import ServerState

from serene.controller.http import connections, guard
from serene.controller.http.connections import Connection
from tests.controller.coordinating import played, until

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
@played
async def test_connection_that_reads_no_answers_is_closed(
    monkeypatch: pytest.MonkeyPatch, request_bytes: bytes
) -> None:
    """Also after its last answer: closing a connection waits for unread bytes."""
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.2)
    state = ServerState()
    server = await serving(state)
    with socket.create_connection(server.sockets[0].getsockname()) as lazy:
        lazy.sendall(request_bytes)
        await until(lambda: state.connections, "it is accepted")
        await until(lambda: not state.connections, "it is closed")
    server.close()


@played
async def test_slow_reader_gets_its_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test itself says when READ_TIMEOUT_S is over: each time after it has read a little."""
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 3600.0)
    state = ServerState()
    server = await serving(state)
    slow = socket.socket()
    # Else the kernel's buffers take all of it at once, and nobody waits for the reader.
    server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    slow.connect(server.sockets[0].getsockname())
    reader, writer = await asyncio.open_connection(sock=slow)
    writer.write(REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    (connection,) = state.connections
    assert isinstance(connection, Connection)
    read = 0
    for _ in range(3):
        unread = connection.transport.get_write_buffer_size()
        while connection.transport.get_write_buffer_size() >= unread:
            read += len(await reader.read(1 << 16))
        connection._check_reader(unread)
        assert not connection.transport.is_closing()
    while read < len(ANSWER) and (part := await reader.read(1 << 16)):
        read += len(part)
    writer.close()
    server.close()
    assert head.startswith(b"HTTP/1.1 200") and read == len(ANSWER)


@pytest.mark.parametrize("first", [b"", HALF, REQUEST + HALF], ids=["nothing", "a part", "a part after a whole one"])
@played
async def test_incomplete_request_head_times_out(monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.2)
    server = await serving(ServerState())
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(first)
    answered = await reader.read()
    writer.close()
    server.close()
    assert answered.startswith(b"HTTP/1.1 200") if REQUEST in first else b"200" not in answered


@played
async def test_request_head_sent_byte_by_byte_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.3)
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


@played
async def test_request_body_that_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_TIMEOUT_S", 0.1)
    begun: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}]
    sent: list[Message] = []

    async def behind(scope: AnyScope, receive: Receive, send: Send) -> None:
        raise AssertionError("it got a request without a body")

    async def receive() -> Message:
        if not begun:
            await asyncio.Event().wait()
        return begun.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-length", b"5")]
    scope = {"type": "http", "method": "POST", "path": "/v1/jobs", "headers": headers}
    await guard.Guard(behind, None, True)(scope, receive, send)
    assert sent[0]["status"] == 408 and (b"connection", b"close") in sent[0]["headers"]
    assert b"the body did not arrive within 0.1 s" in sent[1]["body"]
