"""The connections by which ranks notice that another rank has gone; the ranks are threads here."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import termios
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from serene.torch.ring import RankGone, Ring
from tests.controller.processes import until
from tests.support.descriptors import many_open

TIMEOUT = timedelta(seconds=60)
HOST = "127.0.0.1"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def begin(threads: ThreadPoolExecutor, store: HashStore, rank: int) -> Future[Ring]:
    return threads.submit(Ring, store, rank, 2, HOST, TIMEOUT)


def gone(ring: Ring, collective: int) -> str:
    """Returns the ring's report once it has one."""
    messages: list[str] = []

    def raises() -> bool:
        try:
            ring.check(collective)
        except RankGone as error:
            messages.append(str(error))
        return bool(messages)

    until(raises, "the ring knows")
    return messages[0]


def test_ring_remembers_a_rank_that_left(threads: ThreadPoolExecutor) -> None:
    """The rank took part in that collective; the next one cannot complete."""
    store = HashStore()
    rings = [begin(threads, store, rank) for rank in (0, 1)]
    first, second = (ring.result(120) for ring in rings)
    second.leave(1)
    left = "rank 1 of the group has left it, or its program has ended"
    assert gone(first, 2) == left
    first.check(1)
    assert gone(first, 2) == left
    first.close()


def test_strangers_do_not_disturb_the_ring(threads: ThreadPoolExecutor) -> None:
    """One resets its connection, one sends other bytes, and one stays silent."""
    store = HashStore()
    first = begin(threads, store, 0)
    until(lambda: store.check(["ring/0"]), "the listener is there")
    host, port, _ = json.loads(store.get("ring/0"))
    with ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection((host, port))) for _ in range(3)]
        strangers[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        strangers[0].close()
        strangers[1].sendall(b"GET / HTTP/1.1\r\nhost: there\r\n\r\n")
        second = begin(threads, store, 1)
        for ring in (first, second):
            ring.result(120).close()


def test_ring_passes_rank_death_on_to_non_neighbours() -> None:
    """The ranks that learn of it are not its neighbours."""
    store = HashStore()
    with ThreadPoolExecutor(4) as four:
        made = [four.submit(Ring, store, rank, 4, HOST, TIMEOUT) for rank in range(4)]
        rings = [ring.result(120) for ring in made]
    rings[2].close()
    why = gone(rings[1], 1)
    rings[1].fail(why)
    assert gone(rings[0], 1) == why == "rank 2 of the group has died"
    assert rings[0].died() == {2}
    for ring in rings:
        ring.close()


def test_ring_works_with_many_open_files(threads: ThreadPoolExecutor) -> None:
    store = HashStore()
    with many_open():
        first, second = (ring.result(120) for ring in [begin(threads, store, rank) for rank in (0, 1)])
        first.check(1)
        second.leave(0)
        assert gone(first, 1) == "rank 1 of the group has left it, or its program has ended"
        first.close()


@pytest.mark.parametrize(
    ("rest", "heard", "died"),
    [
        (b'"on rank 1: it is full", "died": [7]}', "on rank 1: it is full", {7}),
        (b"", "rank 1 of the group has died", {1}),
    ],
    ids=["whole", "killed"],
)
def test_ring_message_received_in_parts_is_reassembled(
    threads: ThreadPoolExecutor, rest: bytes, heard: str, died: set[int]
) -> None:
    """A long text arrives over a network in parts."""
    store = HashStore()
    with socket.create_server((HOST, 0)) as listener:
        store.set("ring/1", json.dumps([*listener.getsockname(), "password"]))
        starting = begin(threads, store, 0)
        until(lambda: store.check(["ring/0"]), "the listener is there")
        *address, token = json.loads(store.get("ring/0"))
        with socket.create_connection((address[0], address[1])) as neighbour:
            neighbour.sendall(token.encode())
            ring = starting.result(120)
            neighbour.sendall(b'{"failed": ')
            until(lambda: not unsent(neighbour), "the first part is there")
            ring.check(1)
            neighbour.sendall(rest)
            neighbour.shutdown(socket.SHUT_WR)
            assert gone(ring, 1) == gone(ring, 1) == heard
            assert ring.died() == died
            ring.close()


def unsent(connection: socket.socket) -> int:
    """Bytes that the other end has not confirmed."""
    (count,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
    return int(count)
