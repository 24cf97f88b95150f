from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runs import missing, private_network


@pytest.fixture(params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def target(request: pytest.FixtureRequest) -> str:
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"a network with the {request.param} switch needs {lacking}")
    return str(request.param)


@pytest.fixture
def mininet() -> None:
    if lacking := missing(None):
        pytest.skip(f"needs {lacking}")


@pytest.fixture
def network() -> Iterator[None]:
    """Gives the test an empty network of its own."""
    lacking = missing()
    if lacking:
        pytest.skip(f"Mininet runs need {lacking}")
    with private_network():
        yield
