"""Switches to speak P4Runtime with: the embedded one in this process, and simple_switch_grpc where it is installed."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from serene.switch.p4runtime import P4RuntimeServer, Port
from serene.topologies.processes import bmv2
from tests.ports import some_ports
from tests.switch.p4rt_controller import PATIENCE_S, Controller, Stream, load_p4info
from tests.switch.p4rt_probe import CPU_PORT, JSON, P4INFO

DEVICE_ID = 7


@dataclass(frozen=True)
class Target:
    """A running switch without ports and without a program."""

    name: str  # embedded or bmv2
    address: str
    device_id: int = DEVICE_ID

    def controller(self) -> Controller:
        return Controller(self.address, self.device_id, load_p4info(P4INFO))

    def either(self, embedded: object, bmv2: object) -> object:
        """The expectation for this switch where the two differ; the embedded one follows the specification."""
        return embedded if self.name == "embedded" else bmv2


@contextlib.contextmanager
def embedded_target(*ports: Port, cpu_port: int | None = CPU_PORT) -> Iterator[Target]:
    with P4RuntimeServer(ports, address="127.0.0.1:0", device_id=DEVICE_ID, cpu_port=cpu_port) as server:
        yield Target("embedded", f"127.0.0.1:{server.port}")


@contextlib.contextmanager
def bmv2_target(log: Path) -> Iterator[Target]:
    ports = some_ports(2)
    address = f"127.0.0.1:{ports[0]}"
    command = [*bmv2(ports[1], DEVICE_ID), "--", "--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, cwd=log.parent) as process:
        try:
            with grpc.insecure_channel(address) as channel:
                grpc.channel_ready_future(channel).result(PATIENCE_S)
            yield Target("bmv2", address)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def embedded() -> Iterator[Target]:
    with embedded_target() as target:
        yield target


@pytest.fixture(scope="module", params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Each of the two switches, one after the other."""
    if request.param == "embedded":
        with embedded_target() as target:
            yield target
        return
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("needs simple_switch_grpc")
    with bmv2_target(tmp_path_factory.mktemp("bmv2") / "log") as target:
        yield target


@pytest.fixture
def controller(target: Target) -> Iterator[Controller]:
    """A client of either switch that has sent nothing yet."""
    controller = target.controller()
    yield controller
    controller.close()


@pytest.fixture
def stream(controller: Controller) -> Stream:
    """The stream over which ``primary`` becomes the primary controller; tests may use it as well."""
    return controller.become_primary()


@pytest.fixture
def primary(controller: Controller, stream: Stream) -> Controller:
    """The primary controller, with the probe program newly pushed."""
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    return controller


@pytest.fixture
def embedded_primary(embedded: Target) -> Iterator[Controller]:
    """Like ``primary``, on the embedded switch only."""
    controller = embedded.controller()
    controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    yield controller
    controller.close()
