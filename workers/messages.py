"""What a worker and a parameter server say over TCP, in the machine's byte order."""

from __future__ import annotations

import socket
import struct

HELLO = struct.Struct("=IIQ")  # worker, workers, values
PUSH = struct.Struct("=Q")  # round, or END; the values follow
READ = struct.Struct("=qd")  # contributions that the sum holds, seconds that the answer was held back; the sums follow
END = 2**64 - 1  # instead of a round: the worker has done its steps
REFUSED = -1  # instead of a count: another job, or a worker that is there already


def receive_exactly(connection: socket.socket, size: int, into: memoryview | None = None) -> memoryview:
    """So many bytes. Raises ConnectionResetError when the connection ends before."""
    view = memoryview(bytearray(size)) if into is None else into
    at = 0
    while at < size:
        got = connection.recv_into(view[at:], size - at)
        if not got:
            raise ConnectionResetError("the other side has closed the connection")
        at += got
    return view
