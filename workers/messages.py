"""The messages between a worker and a parameter server, over TCP, in the machine's byte order."""

from __future__ import annotations

import socket
import struct

HELLO = struct.Struct("=IIQ")  # worker, workers, values
PUSH = struct.Struct("=Q")  # round, or END; the contribution follows, int32[values]
READ = struct.Struct("=qd")  # contributions in the sum, seconds that the worker waited; the sum follows, int32[values]
END = 2**64 - 1  # instead of a PUSH's round: the worker has done its steps; no values follow
REFUSED = -1  # instead of a READ's count: the server serves another job, or this worker has joined already


def receive_exactly(connection: socket.socket, size: int, into: memoryview | None = None) -> memoryview:
    """Reads exactly ``size`` bytes, into ``into`` if it is given. Raises ConnectionResetError if the connection ends
    before that."""
    view = memoryview(bytearray(size)) if into is None else into
    at = 0
    while at < size:
        got = connection.recv_into(view[at:], size - at)
        if not got:
            raise ConnectionResetError("the other side has closed the connection")
        at += got
    return view
