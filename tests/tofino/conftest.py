"""The Tofino program as printed by p4c's frontend, and the Tofino and v1model programs as data planes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dataplane.conftest import EmbeddedDataPlane
from tests.programs import TOFINO, TOFINO_BUILD
from tests.tofino.p4text import Module, parse
from tests.tofino.plane import TofinoDataPlane

BUILD = TOFINO_BUILD


@pytest.fixture(scope="session")
def module() -> Module:
    return parse(TOFINO.read_text())


@pytest.fixture
def tofino(module: Module) -> TofinoDataPlane:
    return TofinoDataPlane(module)


@pytest.fixture(scope="module")
def v1model() -> Iterator[EmbeddedDataPlane]:
    plane = EmbeddedDataPlane()
    yield plane
    plane.switch.close()
