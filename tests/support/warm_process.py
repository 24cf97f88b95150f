"""Programs started in a Python that has already imported their modules (`warm.py`): by default controllers, embedded
switches and serenectl."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.warm import END, server

OF_CALLER = Path("/proc/thread-self/ns/net")


class WarmProcess:
    """``python ARGUMENTS`` with its output in a file, as subprocess.Popen: its process id is the program's own."""

    def __init__(
        self,
        arguments: Sequence[str],
        stdout: int,
        stderr: int,
        folder: Path,
        environment: dict[str, str] | None = None,
        modules: str = "controller",
    ) -> None:
        self.args = ["python", *arguments]
        self.returncode: int | None = None
        request = {"arguments": list(arguments), "folder": str(folder), "environment": environment or dict(os.environ)}
        message = json.dumps(request).encode() + END
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(str(server(modules)))
        with open(os.devnull) as nothing, OF_CALLER.open() as network:
            files = [nothing.fileno(), stdout, stderr, network.fileno()]
            socket.send_fds(self._server, [len(message).to_bytes(4, "big")], files)
        self._server.sendall(message)
        self.pid = int.from_bytes(self._answer(), "big")

    def _answer(self) -> bytes:
        answer = self._server.recv(4, socket.MSG_WAITALL)
        if len(answer) != 4:
            raise AssertionError("the server of warm Pythons ended")
        return answer

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._server], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._server], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int.from_bytes(self._answer(), "big", signed=True)
            self._server.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    arguments: Sequence[str], folder: Path, environment: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Runs ``python ARGUMENTS`` like subprocess.run, with the output captured as text."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = WarmProcess(arguments, out.fileno(), err.fileno(), folder, environment)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(process.args, status, out.read(), err.read())
