"""TCP relays that can hold bytes back, as a network or a busy machine may."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Relay:
    """Forwards connections to ``address`` to a server, and its answers back."""

    def __init__(self, server: str) -> None:
        host, port = server.split(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{1}".format(*self._listener.getsockname())
        self._ways: list[tuple[bool, threading.Event]] = []  # whether it is to the server, and whether it is free
        self._ends: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, *, requests: bool) -> None:
        """Holds back bytes of the open connections: those to the server, or those from it."""
        for to_server, free in self._ways:
            if to_server == requests:
                free.clear()

    def release(self) -> None:
        """Forwards the bytes that were delayed."""
        for _, free in self._ways:
            free.set()

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.release()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._ends += [client, server]
                self._pass_on(client, server, to_server=True)
                self._pass_on(server, client, to_server=False)

    def _pass_on(self, come: socket.socket, go: socket.socket, *, to_server: bool) -> None:
        free = threading.Event()
        free.set()
        self._ways.append((to_server, free))

        def pass_on() -> None:
            with suppress(OSError):
                while data := come.recv(1 << 16):
                    free.wait()
                    go.sendall(data)
                free.wait()
                go.shutdown(socket.SHUT_WR)

        threading.Thread(target=pass_on, daemon=True).start()
