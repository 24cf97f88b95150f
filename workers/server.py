"""A parameter server over TCP. This baseline aggregates on a host instead of in the network.

    python -m serene.workers.server --workers 4 --strategy ssp:3 --values 79510 --listen 10.0.0.5:7000 --out server.json

It adds up the workers' contributions and answers each worker when the strategy lets it continue. Rules and number
format (32-bit fixed point) are the switch's, so only the packets' path differs. A vector may be spread over several
servers, each with a range of its values. If a worker disconnects before the end, the server and the job end. The server
cannot know whether that worker returns, and the others would wait for ever.

On a connection the worker sends a `HELLO`. The server answers with a `READ` without values when all workers have
joined. Then, for each iteration, the worker sends a `PUSH` and its contribution, and the server a `READ` and the sum
(workers/messages.py).
"""

from __future__ import annotations

from serene.process.interrupts import allowed, end_quietly, ended, held

if __name__ == "__main__":
    end_quietly()

import argparse
import json
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from serene.arguments import Parser, command, usage, whole
from serene.errors import SereneError
from serene.racks import MAX_RACKS, RACK_WORKERS
from serene.strategy import parse
from serene.workers import rpc
from serene.workers.barrier import Barrier, WorkerGone
from serene.workers.messages import END, HELLO, PUSH, READ, REFUSED, receive_exactly

HELLO_TIMEOUT_S = 10.0
MOST_WORKERS = MAX_RACKS * RACK_WORKERS
MOST_VALUES = 2**32  # more than any of our models has


class Server:
    """Serves one job. barrier: for this server's range of the vector."""

    def __init__(self, listening: socket.socket, workers: int, barrier: Barrier) -> None:
        self._listening = listening
        self._workers = workers
        self._left = threading.Barrier(workers)
        self._connections: dict[int, socket.socket] = {}
        self.barrier = barrier

    def run(self) -> None:
        """Serves until all workers have read the last sum. Raises WorkerGone."""
        threads = []
        while len(self._connections) < self._workers:
            connection, _ = self._listening.accept()
            worker = self._welcome(connection)
            if worker is not None:
                self._connections[worker] = connection
        for worker, connection in self._connections.items():
            connection.sendall(READ.pack(0, 0.0))  # the answer to HELLO: all workers have joined
            threads.append(threading.Thread(target=self._serve, args=(worker, connection), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()
        if self.barrier.failed is not None:
            raise self.barrier.failed

    def _welcome(self, connection: socket.socket) -> int | None:
        """The worker that a new connection belongs to. If it belongs to none: None, and the connection is closed."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(HELLO_TIMEOUT_S)  # a connection without a HELLO must not block the workers
        try:
            worker, workers, values = HELLO.unpack(receive_exactly(connection, HELLO.size))
            connection.settimeout(None)
        except OSError:
            connection.close()
            return None
        if (
            (workers, values) != (self._workers, self.barrier.values)
            or worker in self._connections
            or worker >= workers
        ):
            with suppress(OSError):
                connection.sendall(READ.pack(REFUSED, 0.0))
            connection.close()
            return None
        return int(worker)

    def _serve(self, worker: int, connection: socket.socket) -> None:
        values = np.empty(self.barrier.values, np.int32)
        try:
            while True:
                (round_,) = PUSH.unpack(receive_exactly(connection, PUSH.size))
                if round_ == END:
                    break
                receive_exactly(connection, values.nbytes, values.data.cast("B"))
                read, total, waited = self.barrier.contribute(worker, round_, values)
                connection.sendall(READ.pack(total, waited))
                connection.sendall(read.data.cast("B"))
            self._left.wait()
            read, total = self.barrier.last()
            connection.sendall(READ.pack(total, 0.0))
            connection.sendall(read.data.cast("B"))
        except (OSError, threading.BrokenBarrierError):
            self.barrier.fail(WorkerGone(f"worker {worker} disconnected before the end of the job"))
        except WorkerGone:
            pass
        finally:
            if self.barrier.failed is not None:
                self._left.abort()
                for each in self._connections.values():  # also wakes the threads that send or receive
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
            connection.close()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host and port.isdecimal() and 0 < int(port) < 65536:
        return host, int(port)
    raise argparse.ArgumentTypeError(f"{text}: expected ADDRESS:PORT")


@command
def main() -> int:
    parser = Parser("A parameter server over TCP, a baseline.")
    parser.add_argument("--workers", type=whole(1, MOST_WORKERS), required=True, help="number of workers of the job")
    parser.add_argument("--strategy", required=True, help="bsp, ssp:S, asp, quorum:K or mixed:W,W")
    parser.add_argument(
        "--values", type=whole(1, MOST_VALUES), required=True, help="length of this server's range of the vector"
    )
    parser.add_argument("--listen", type=_address, required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--out", type=Path, default=None, help="a JSON file for each worker's contributions")
    parser.add_argument("--rpc", action="store_true", help="serve by PyTorch's RPC instead")
    options = parser.parse_args()
    with usage():
        strategy = parse(options.strategy)
        strategy.compile(range(options.workers))
    try:
        with held():
            barrier = Barrier(options.values, strategy.compile(range(options.workers)))
            try:
                if options.rpc:
                    with allowed():
                        rpc.serve(options.listen, options.workers, barrier)
                else:
                    with socket.create_server(options.listen) as listening, allowed():
                        Server(listening, options.workers, barrier).run()
            finally:
                if options.out is not None:
                    counted = [barrier.contributions[worker] for worker in range(options.workers)]
                    options.out.write_text(json.dumps({"contributions": counted}))
    except (SereneError, OSError, MemoryError) as error:
        print(f"error: parameter server: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
