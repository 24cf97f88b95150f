"""A replacement for BMv2's Thrift port: tools wait until it is open before they use P4Runtime."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

from serene.embedded.control.types import PortError


class ClosingListener:
    """Listens and closes every connection at once, so that a Thrift client gets an error instead of waiting."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
            self._socket.listen(8)
        except OSError as error:
            self._socket.close()
            raise PortError(f"cannot open --thrift-port {port}: {error.strerror}; choose another one") from None
        self._thread = threading.Thread(target=self._serve, name="thrift-port", daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                self._socket.accept()[0].close()
            except OSError:
                return

    def __enter__(self) -> ClosingListener:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._socket.close()
        self._thread.join()
