"""The P4 program in process: with a job under ASP for tests of the client, and for pools in virtual time."""

from __future__ import annotations

import pytest

from serene.client import Client
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.program import Program
from serene.strategy import ASP
from tests.client.answers import SLOTS
from tests.client.rejoining import client
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.support.in_process import InProcess


@pytest.fixture(scope="module")
def switch() -> P4Switch:
    return P4Switch(Program.load("serene"))


@pytest.fixture(scope="module")
def loaded() -> EmbeddedDataPlane:
    return EmbeddedDataPlane()


@pytest.fixture
def bare(loaded: EmbeddedDataPlane) -> EmbeddedDataPlane:
    """A switch without a job."""
    loaded.clear()
    return loaded


@pytest.fixture
def plane(bare: EmbeddedDataPlane) -> EmbeddedDataPlane:
    bare.start_job(ASP(), slots=SLOTS)
    return bare


@pytest.fixture
def wire(plane: EmbeddedDataPlane) -> InProcess:
    return InProcess(plane)


@pytest.fixture
def worker(wire: InProcess) -> Client:
    """Worker 0, which has joined."""
    joined = client(wire)
    joined.join()
    return joined
