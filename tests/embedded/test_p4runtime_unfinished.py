"""Clients that begin calls and never finish them: they keep no controller out. The clients write their own HTTP/2, so
that nothing of gRPC's makes them behave."""

from __future__ import annotations

import contextlib
import itertools
import logging
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from finsy.proto import p4r

from serene.embedded.p4runtime import service
from serene.embedded.p4runtime.service import MAX_CALLS, MAX_CALLS_OF_ONE
from serene.embedded.p4runtime.waiting import MAX_REQUESTS
from serene.embedded.p4runtime.watching import PATH as WATCH
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import PATIENCE_S, Code, until
from tests.embedded.p4rt_probe import Probing
from tests.embedded.running import DEVICE_ID

# RFC 9113: frames' types and flags, and the number of a setting
DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0, 1, 3, 4, 6
END_STREAM = ACK = 1
END_HEADERS = 4
INITIAL_WINDOW_SIZE = 4
P4RUNTIME = "/p4.v1.P4Runtime/"
ONE_REQUEST = [*(f"{P4RUNTIME}{name}" for name in (
    "Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities"
)), WATCH]  # fmt: skip


class Hostile:
    """A connection whose calls are never finished. It reads no answer: not a byte of one may be sent. It keeps the
    connection alive."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.settimeout(PATIENCE_S)
        self._next = 1
        self._read = threading.Event()
        self.ended = threading.Semaphore(0)  # calls that the switch has ended
        no_room = INITIAL_WINDOW_SIZE.to_bytes(2, "big") + bytes(4)
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, no_room))
        self._socket.sendall(frame(SETTINGS, ACK))
        self._reader = threading.Thread(target=self._answer_pings, daemon=True)
        self._reader.start()

    def _answer_pings(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as received:
            while head := received.read(9):
                payload = received.read(int.from_bytes(head[:3], "big"))
                if head[3] == PING and head[4] & ACK:
                    self._read.set()
                elif head[3] == RST_STREAM or (head[3] == HEADERS and head[4] & END_STREAM):
                    self.ended.release()
                elif head[3] == PING:
                    self._socket.sendall(frame(PING, ACK, payload))

    def call(self, path: str, *messages: bytes, end: bool = False) -> None:
        """Begins a call. messages: what it sends; end: that it sends no more."""
        fields = {
            ":method": "POST", ":scheme": "http", ":path": path, ":authority": "switch", "te": "trailers",
            "content-type": "application/grpc",
        }  # fmt: skip
        # RFC 7541, 6.2.2: literal fields that are not indexed
        block = b"".join(b"\0" + text(name) + text(value) for name, value in fields.items())
        sent = frame(HEADERS, END_HEADERS, block, self._next)
        data = b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)
        if data or end:
            sent += frame(DATA, END_STREAM * end, data, self._next)
        self._socket.sendall(sent)
        self._next += 2

    def read_by_the_switch(self) -> None:
        """Waits until the switch has read everything so far."""
        self._read.clear()
        self._socket.sendall(frame(PING, 0, b"are here"))
        assert self._read.wait(PATIENCE_S)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the switch has closed it
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()


def frame(kind: int, flags: int, payload: bytes = b"", stream: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


Make = Callable[[], Probing]
Connect = Callable[[], Hostile]


@pytest.fixture
def hostile(fresh: Target) -> Iterator[Connect]:
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(contextlib.closing(Hostile(fresh.address)))


def check_served(controller: Probing) -> None:
    """The primary sets the program, writes and reads."""
    controller.push()
    controller.insert(controller.scoped(1, 1))
    assert len(controller.read(controller.key("by_scoped"))) == 1
    assert controller.get_pipeline("COOKIE_ONLY") is not None


def check_takes_over(new: Make) -> None:
    """A controller becomes primary. While hundreds of streams begin at once, it may be refused before its election id
    is read; then it connects again, as ours does."""

    def primary() -> Probing | None:
        controller = new()
        controller.messages = controller.stream()
        controller.messages.introduce(controller.election_id)
        first = controller.messages.take(PATIENCE_S)
        if first is None:
            assert controller.messages.end_code() is Code.RESOURCE_EXHAUSTED
            return None
        assert first.arbitration.status.code == Code.OK.value[0]
        return controller

    check_served(until(primary, "a controller becomes primary"))


@pytest.mark.parametrize("path", ONE_REQUEST)
def test_calls_whose_request_never_arrives_keep_no_controller_out(
    new: Make, hostile: Connect, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "serene.switch")
    before = new()
    before.become_primary()
    for peer in [hostile() for _ in range(3 * MAX_REQUESTS // MAX_CALLS_OF_ONE)]:
        for _ in range(MAX_CALLS_OF_ONE):
            peer.call(path)
        peer.read_by_the_switch()
    check_served(before)
    check_takes_over(new)
    begins = f"more than {MAX_REQUESTS} calls wait for their request: cancelled one of ipv4:127.0.0.1:"
    until(lambda: [text for text in caplog.messages if text.startswith(begins)], "it is logged")
    messages = [text for text in caplog.messages if text.startswith(begins)]
    assert len(messages) <= 3, "as many as the number of cancelled calls has digits"


def test_answers_that_are_not_read_keep_no_controller_out(new: Make, hostile: Connect) -> None:
    """Nor streams whose end is not read, or that are refused and do not read it."""
    before = new().primary()
    before.insert(before.scoped(1, 1))
    read = p4r.ReadRequest(device_id=DEVICE_ID, entities=[p4r.Entity(table_entry=p4r.TableEntry())])
    introduction = p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(device_id=DEVICE_ID))
    bad = p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(device_id=DEVICE_ID + 1))
    for _ in range(9):
        peer = hostile()
        for _ in range(MAX_CALLS_OF_ONE // 3):
            peer.call(f"{P4RUNTIME}Read", read.SerializeToString(), end=True)
            peer.call(f"{P4RUNTIME}StreamChannel", introduction.SerializeToString(), end=True)
            peer.call(f"{P4RUNTIME}StreamChannel", introduction.SerializeToString(), bad.SerializeToString())
        peer.read_by_the_switch()
    check_served(before)
    check_takes_over(new)


def test_controllers_are_served_while_ended_calls_begin_again(new: Make, hostile: Connect) -> None:
    """Each new call takes the place of an older one of the same attackers."""
    stop, peers = threading.Event(), [hostile() for _ in range(4)]
    begun = [0] * len(peers)

    def attack(number: int) -> None:
        paths = itertools.cycle([*ONE_REQUEST, f"{P4RUNTIME}StreamChannel"])
        for _ in range(MAX_CALLS_OF_ONE):
            peers[number].ended.release()
        while not stop.is_set():
            if peers[number].ended.acquire(timeout=0.1):
                peers[number].call(next(paths))
                begun[number] += 1

    attackers = [threading.Thread(target=attack, args=(number,)) for number in range(len(peers))]
    for attacker in attackers:
        attacker.start()
    try:
        until(lambda: sum(begun) > 2 * MAX_CALLS, "more calls than there are threads")
        for _ in range(5):
            check_takes_over(new)
    finally:
        stop.set()
        for attacker in attackers:
            attacker.join()


def test_connections_without_calls_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes one of the process's files. A controller's stays, because its stream is a call."""
    monkeypatch.setattr(service, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(service, "IDLE_MS", 1000)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(service.P4RuntimeServer([], address="127.0.0.1:0", device_id=DEVICE_ID))
        before = stack.enter_context(Probing(f"127.0.0.1:{server.port}", DEVICE_ID))
        before.become_primary()
        peers = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(10)]
        for peer in peers:
            peer.settimeout(PATIENCE_S)
        for peer in peers[::2]:
            with contextlib.suppress(OSError):  # the switch has closed it
                peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0))
        for peer in peers:
            with contextlib.suppress(ConnectionResetError):
                while peer.recv(1000):
                    pass
        before.push()
        stack.enter_context(Probing(f"127.0.0.1:{server.port}", DEVICE_ID)).primary()


def test_more_connections_than_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(service, "IDLE_MS", 1_000_000)  # none is closed for being idle
    with service.P4RuntimeServer([], address="127.0.0.1:0") as server, contextlib.ExitStack() as stack:
        for _ in range(3):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        peer.settimeout(PATIENCE_S)
        with contextlib.suppress(ConnectionResetError):
            assert not peer.recv(1), "it is closed"


def test_slow_request_is_served_when_it_arrives(new: Make) -> None:
    released = threading.Event()
    controller = new().primary()
    call = controller._channel.stream_unary(
        f"{P4RUNTIME}Capabilities", p4r.CapabilitiesRequest.SerializeToString, p4r.CapabilitiesResponse.FromString
    )

    def late() -> Iterator[p4r.CapabilitiesRequest]:
        assert released.wait(PATIENCE_S)
        yield p4r.CapabilitiesRequest()

    slow = call.future(late())
    check_served(controller)
    assert not slow.done()
    released.set()
    assert slow.result(PATIENCE_S).p4runtime_api_version
    assert slow.code() is Code.OK
