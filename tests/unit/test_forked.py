"""The log of a forked worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from serene.experiments.run import forked
from serene.process.spawn import module

pytest.importorskip("torch")


@pytest.mark.filterwarnings("error::RuntimeWarning")  # which runpy gives, and the child inherits
def test_forked_worker_runs_a_module_the_parent_has_imported(tmp_path: Path) -> None:
    import serene.workers.train  # noqa: F401 # as `forked.prepare` does

    with (tmp_path / "log").open("wb") as log:
        process = forked.start("worker", module("serene.workers.train", "--help"), log, {})
    assert process.wait() == 0
    assert "usage" in (tmp_path / "log").read_text().lower()


def test_worker_logs_why_it_cannot_enter_its_host(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = forked.start("worker", module("serene.workers.train", "--help"), log, {}, host=2**31 - 1)
    assert process.wait() == 1
    assert "No such file or directory: '/proc/2147483647/ns/net'" in (tmp_path / "log").read_text()
