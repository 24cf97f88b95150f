"""A switch for the worker processes of a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controller.processes import SwitchProcess, missing


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    lacking = missing("embedded")
    if lacking:
        pytest.skip(f"the embedded switch needs {lacking}")
    process = SwitchProcess("embedded", tmp_path_factory.mktemp("switch") / "log")
    yield process
    process.stop()
