"""The study's switch and controller, on this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serene.controller.http.client import ControllerClient, NoController
from serene.http import CONTROLLER
from serene.topologies.processes import Background, free_ports, program

READY_S = 120.0  # the first start compiles the switch
STOP_S = 20.0


@contextmanager
def local_switch(ranks: int) -> Iterator[ControllerClient]:
    """``serenectl up --local`` with a port for each rank, until the end of the block. Child processes find it by
    this process's environment. Raises NotReady."""
    grpc, http = free_ports(9659, 8659)
    url = f"http://127.0.0.1:{http}"
    options = ["--ports", f"1-{ranks}", "--switch", f"127.0.0.1:{grpc}", "--http", f"127.0.0.1:{http}"]
    with tempfile.TemporaryDirectory(prefix="serene-study-") as folder:
        before = {name: os.environ.get(name) for name in (CONTROLLER, "XDG_RUNTIME_DIR")}
        os.environ.update({CONTROLLER: url, "XDG_RUNTIME_DIR": folder})
        command = [program("serenectl"), "up", "--local", "--foreground", *options]
        controller = Background("controller", command, Path(folder, "controller.log"))
        try:
            with ControllerClient(url) as client:
                controller.wait_until(lambda: controller.serves(http) and _answers(client), READY_S)
                yield client
        finally:
            controller.stop(STOP_S)
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _answers(client: ControllerClient) -> bool:
    try:
        client.status()
    except NoController:
        return False
    return True
