"""A job under ASP on the P4 program in process, for tests of the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from serene.strategy import ASP
from tests.dataplane.conftest import EmbeddedDataPlane

SLOTS = 4


@pytest.fixture(scope="module")
def switch() -> EmbeddedDataPlane:
    return EmbeddedDataPlane()


@pytest.fixture
def plane(switch: EmbeddedDataPlane) -> Iterator[EmbeddedDataPlane]:
    switch.clear()
    switch.start_job(ASP(), slots=SLOTS)
    yield switch
