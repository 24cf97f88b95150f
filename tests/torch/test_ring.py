"""The connections by which ranks learn that another has gone, with ranks that are threads."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from serene.torch.ring import RankGone, Ring
from tests.controller.processes import until

TIMEOUT = timedelta(seconds=60)
HOST = "127.0.0.1"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def begin(threads: ThreadPoolExecutor, store: HashStore, rank: int) -> Future[Ring]:
    return threads.submit(Ring, store, rank, 2, HOST, TIMEOUT)


def gone(ring: Ring, collective: int) -> str:
    """What the ring says of it, in the end."""
    said: list[str] = []

    def raises() -> bool:
        try:
            ring.check(collective)
        except RankGone as error:
            said.append(str(error))
        return bool(said)

    until(raises, "the ring knows")
    return said[0]


def test_who_has_left_is_remembered(threads: ThreadPoolExecutor) -> None:
    """It has said so when it still took part; the collective after that cannot end."""
    store = HashStore()
    rings = [begin(threads, store, rank) for rank in (0, 1)]
    first, second = (ring.result(60) for ring in rings)
    second.leave(1)
    left = "rank 1 of the group has left it, or its program has ended"
    assert gone(first, 2) == left
    first.check(1)
    assert gone(first, 2) == left
    first.close()


def test_strangers_do_not_end_the_start(threads: ThreadPoolExecutor) -> None:
    """One that resets its connection, one that says something else, and one that says nothing."""
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
            ring.result(60).close()
