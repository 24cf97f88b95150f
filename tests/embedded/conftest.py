"""Switches to speak P4Runtime with: the embedded one in this process, and simple_switch_grpc where it is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from serene.embedded.p4runtime import P4RuntimeServer, Port
from tests.embedded.bmv2 import bmv2_process, why_not
from tests.embedded.p4rt_probe import CPU_PORT, Probing
from tests.embedded.running import DEVICE_ID, Hosts


@dataclass(frozen=True)
class Target:
    """A running switch without ports and without a program."""

    name: str  # embedded or bmv2
    address: str
    device_id: int = DEVICE_ID

    def controller(self) -> Probing:
        return Probing(self.address, self.device_id)


@contextlib.contextmanager
def embedded_target(*ports: Port, cpu_port: int | None = CPU_PORT) -> Iterator[Target]:
    with P4RuntimeServer(ports, address="127.0.0.1:0", device_id=DEVICE_ID, cpu_port=cpu_port) as server:
        yield Target("embedded", f"127.0.0.1:{server.port}")


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
    if lacking := why_not():
        pytest.skip(lacking)
    log = tmp_path_factory.mktemp("bmv2") / "log"
    with bmv2_process(log, "--cpu-port", str(CPU_PORT), device_id=DEVICE_ID) as address:
        yield Target("bmv2", address)


@pytest.fixture
def controller(target: Target) -> Iterator[Probing]:
    """A client of either switch that has sent nothing yet."""
    with target.controller() as controller:
        yield controller


@pytest.fixture
def primary(controller: Probing) -> Probing:
    """The primary controller of either switch, with the probe program newly pushed."""
    return controller.primary()


@pytest.fixture
def ours(embedded: Target) -> Iterator[Probing]:
    """Like ``primary``, on the embedded switch only."""
    with embedded.controller() as controller:
        yield controller.primary()


@pytest.fixture
def fresh() -> Iterator[Target]:
    """An embedded switch without any earlier client."""
    with embedded_target() as target:
        yield target


@pytest.fixture
def new(fresh: Target) -> Iterator[Callable[[], Probing]]:
    """Makes controllers of such a switch."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(fresh.controller())


@pytest.fixture
def alone(fresh: Target) -> Iterator[Probing]:
    """The primary controller of a switch without other clients."""
    with fresh.controller() as controller:
        yield controller.primary()


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with contextlib.closing(Hosts()) as there:
        yield there
