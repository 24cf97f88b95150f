"""A local switch that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controller.processes import missing
from tests.torch.local import Local, local_switch


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")
    with local_switch(tmp_path_factory.mktemp("local")) as there:
        yield there
