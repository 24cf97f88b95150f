from __future__ import annotations

from collections.abc import Iterator

import pytest
from _pytest.mark.structures import ParameterSet

from tests.runs import missing, private_network


def on_bmv2(*more: object, otherwise: bool = False) -> ParameterSet:
    """Parameters of a test: BMv2, and others. otherwise: where BMv2 is not installed, the embedded switch instead. For
    runs whose embedded form other tests have where both are installed."""
    embedded = otherwise and missing("bmv2", mininet=False) is not None
    return pytest.param("embedded" if embedded else "bmv2", *more, marks=() if embedded else pytest.mark.bmv2)


@pytest.fixture(params=["embedded", on_bmv2()])
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
