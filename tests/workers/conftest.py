"""A switch for the worker processes of a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controller.processes import SwitchProcess, embedded_switch


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    yield from embedded_switch(tmp_path_factory.mktemp("switch") / "log")
