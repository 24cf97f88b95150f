from __future__ import annotations

from collections.abc import Iterator

import pytest

from serene.experiments.shared.clusters import Cluster
from tests.clusters.dask import Dask


@pytest.fixture(scope="session")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Its workers may be killed: others take their places."""
    with Dask(tmp_path_factory.mktemp("dask")) as dask:
        yield Cluster(dask.address)
