"""Detects at once that another rank has died, failed or left, by a TCP connection to each of a rank's two neighbours.

A rank that leaves sends the number of its collectives: no rank needs to wait for it in a later one. A rank that fails
sends the reason, and its neighbours fail with the same text and pass it on. The network may deliver a message in parts;
it ends with its connection. A connection that ends without a complete message belonged to a killed process.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
from contextlib import suppress
from datetime import timedelta

from torch.distributed import Store  # type: ignore[attr-defined]

from serene.errors import SereneError

READ_BYTES = 1 << 16
LONGEST = 1 << 12  # characters of a rank's reason
TOKEN_TIMEOUT_S = 5.0  # for a process that has connected to send the token, which a rank does at once


class RankGone(SereneError):
    """A collective cannot end, because a rank no longer takes part; the message names it."""


class Ring:
    """One rank's two connections. All ranks of the group make theirs at the same time.

    host: this machine's IP address for the other ranks. timeout: for the neighbours to connect. Raises OSError,
    TimeoutError, or the store's RuntimeError.
    """

    def __init__(self, store: Store, rank: int, size: int, host: str, timeout: timedelta) -> None:
        self._rank = rank
        before, after = (rank - 1) % size, (rank + 1) % size
        with socket.create_server((host, 0)) as listener:
            token = secrets.token_hex(16)
            store.set(f"ring/{rank}", json.dumps([*listener.getsockname()[:2], token]))
            store.wait([f"ring/{after}"], timeout)
            *address, password = json.loads(store.get(f"ring/{after}"))
            forward = socket.create_connection((address[0], address[1]), timeout.total_seconds())
            forward.sendall(password.encode())
            backward = _accept(listener, token.encode(), timeout)
        self._peers = {forward: after, backward: before}
        self._received = dict.fromkeys(self._peers, b"")  # so far
        self._left: dict[int, int] = {}  # by rank: in how many collectives it took part
        self._died: set[int] = set()  # ranks that are known to have died
        for peer in self._peers:
            peer.setblocking(False)

    def check(self, collective: int) -> None:
        """Raises RankGone if the collective of this number, from 1, cannot end any more. Does not wait."""
        self._hear()
        for rank, after in self._left.items():
            if after < collective:
                raise RankGone(f"rank {rank} of the group has left it, or its program has ended")

    def died(self) -> set[int]:
        """The ranks that are known to have died."""
        with suppress(RankGone):
            self._hear()
        return self._died

    def _hear(self) -> None:
        gone: list[str] = []
        for peer, rank in list(self._peers.items()):
            try:
                while part := peer.recv(READ_BYTES):
                    self._received[peer] += part
            except BlockingIOError:
                continue
            except OSError:
                pass  # the process was killed before it had read everything
            try:
                message = json.loads(self._received[peer])
            except ValueError:
                self._died.add(rank)
                gone.append(f"rank {rank} of the group has died")
                continue
            if "failed" in message:
                self._died.update(message.get("died", ()))
                gone.append(message["failed"])
                continue
            self._left[rank] = message["left after"]
            del self._peers[peer]
            peer.close()
        if gone:
            raise RankGone(gone[0])

    def fail(self, why: str) -> None:
        """Sends the neighbours, and through them all others, the reason of a failed collective; closes the
        connections."""
        self._end({"failed": why[:LONGEST], "died": sorted(self._died)})

    def leave(self, collectives: int) -> None:
        """Sends the neighbours the number of this rank's collectives; closes the connections."""
        self._end({"left after": collectives})

    def _end(self, message: dict[str, object]) -> None:
        for peer in self._peers:
            with suppress(OSError):
                peer.send(json.dumps(message).encode())
        self.close()

    def close(self) -> None:
        """Closes the connections without a message."""
        for peer in self._peers:
            peer.close()
        self._peers = {}


def _accept(listener: socket.socket, token: bytes, timeout: timedelta) -> socket.socket:
    """The connection of the process with the token, since others may find the port, too. Raises TimeoutError."""
    until = time.monotonic() + timeout.total_seconds()
    while (left_s := until - time.monotonic()) > 0:
        listener.settimeout(left_s)
        peer, _ = listener.accept()
        with suppress(OSError):
            peer.settimeout(min(TOKEN_TIMEOUT_S, left_s))
            if peer.recv(len(token), socket.MSG_WAITALL) == token:
                return peer
        peer.close()
    raise TimeoutError("timed out")
