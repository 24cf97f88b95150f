"""Programs that run in the hosts of attachments.py: ``worker NUMBER`` and ``tcp ADDRESS OTHER``. Imports no more than
they need."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import sys

import numpy as np

from serene.client import Client, Session, UdpTransport
from serene.wire import SWITCH_IP

VALUES, STEPS = 50_000, 10
TCP_BYTES, TCP_PORT = 4 << 20, 4000
PATIENCE_S = 120.0
HOSTS = 2


def worker(number: int) -> None:
    """Contributes number + 1 to each value, STEPS times. Raises AssertionError where the sum is not that of both."""
    total = np.zeros(VALUES, np.float32)

    def apply(delta: np.ndarray) -> None:
        total[:] += delta

    client = Client(UdpTransport(SWITCH_IP), job=0, worker=number, vector_length=VALUES)
    with Session(client, apply) as session:
        session.join()
        for _ in range(STEPS):
            session.exchange(np.full(VALUES, number + 1, np.float32))
        session.finish(timeout_s=PATIENCE_S / 2)
    expected = STEPS * HOSTS * (HOSTS + 1) / 2
    assert (total == expected).all(), f"a sum of {total[total != expected][0]}, expected {expected}"


def tcp(here: str, there: str) -> None:
    """Sends the other host some megabytes and gets as many. Raises AssertionError where they differ."""
    data = np.random.default_rng(0).bytes(TCP_BYTES)
    with socket.create_server((here, TCP_PORT)) as listening:
        listening.settimeout(PATIENCE_S / 2)
        first = here < there
        other = None if first else _connected(there)
        if first:
            other, _ = listening.accept()
        assert other is not None
        with other:
            other.settimeout(PATIENCE_S / 2)
            for sends in (first, not first):
                if sends:
                    other.sendall(data)
                    continue
                got = b""
                while len(got) < len(data) and (more := other.recv(1 << 20)):
                    got += more
                assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest(), "TCP's bytes were changed"


def _connected(there: str) -> socket.socket:
    while True:  # the other host may not listen yet; the caller has a deadline
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection((there, TCP_PORT), PATIENCE_S / 2)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker(int(sys.argv[2]))
    else:
        tcp(*sys.argv[2:])
