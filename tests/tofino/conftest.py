"""The Tofino program as it was compiled for each chip, and the Tofino and v1model programs as data planes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dataplane.conftest import EmbeddedDataPlane
from tests.tofino.plane import Build, TofinoDataPlane, chosen


@pytest.fixture(scope="session", params=chosen(), ids=lambda build: build.chip)
def build(request: pytest.FixtureRequest) -> Build:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def tofino(build: Build) -> TofinoDataPlane:
    return TofinoDataPlane(build)


@pytest.fixture(scope="module")
def v1model() -> Iterator[EmbeddedDataPlane]:
    plane = EmbeddedDataPlane()
    yield plane
    plane.switch.close()
