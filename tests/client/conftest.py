"""A job under ASP on the P4 program in process, for tests of the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from serene.client import Client
from serene.strategy import ASP
from tests.client.answers import SLOTS
from tests.client.rejoining import client
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.support.in_process import InProcess


@pytest.fixture(scope="module")
def switch() -> EmbeddedDataPlane:
    return EmbeddedDataPlane()


@pytest.fixture
def plane(switch: EmbeddedDataPlane) -> Iterator[EmbeddedDataPlane]:
    switch.clear()
    switch.start_job(ASP(), slots=SLOTS)
    yield switch


@pytest.fixture
def wire(plane: EmbeddedDataPlane) -> InProcess:
    return InProcess(plane)


@pytest.fixture
def worker(wire: InProcess) -> Client:
    """Worker 0, which has joined."""
    joined = client(wire)
    joined.join()
    return joined
