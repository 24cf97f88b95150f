"""Switches for processes that train."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controller.processes import SwitchProcess, embedded_switch, missing
from tests.torch.local import Local, local_switch
from tests.torch.sharers import Plant


@pytest.fixture(scope="session")
def embedded() -> None:
    """Skips the test where there can be no embedded switch."""
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")


@pytest.fixture(scope="module")
def local(embedded: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A local switch that the tests of a module share."""
    with local_switch(tmp_path_factory.mktemp("local")) as there:
        yield there


@pytest.fixture
def mine(embedded: None, tmp_path: Path) -> Iterator[Local]:
    """A local switch and its controller that may be killed."""
    with local_switch(tmp_path) as there:
        yield there


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    yield from embedded_switch(tmp_path_factory.mktemp("switch") / "switch.log")


@pytest.fixture
def plant(switch: SwitchProcess, tmp_path: Path) -> Iterator[Plant]:
    """A switch and a controller, for workers of shared training, that may be killed."""
    switch.restart()
    made = Plant(switch, tmp_path)
    yield made
    made.stop()
