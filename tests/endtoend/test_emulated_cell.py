"""A cell in Mininet leaves its trace and nothing else, also when it times out."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serene.errors import SereneError
from serene.experiments.run import forked
from serene.experiments.straggler_study import emulated
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.emulated import RunFailed, emulate
from serene.experiments.straggler_study.measures import numbers
from serene.process.spawn import module
from tests.runs import interfaces, missing, private_network

CELL = Cell(
    engine="emulated", workers=2, steps=4, eval_every=2, compute_ms=20, link_mbit=100,
    straggler="heterogeneous:factor=3,workers=0",
)  # fmt: skip
WAYS = {
    "switch": CELL,
    "automatic": replace(CELL, strategy="auto:dssp:period=0.05"),
    "server": replace(CELL, exchange="server", strategy="asp"),
    "gloo": replace(CELL, exchange="gloo"),
}

mininet = pytest.mark.mininet


@pytest.fixture
def _network() -> None:
    lacking = missing("embedded")
    if lacking:
        pytest.skip(f"an emulated cell needs {lacking}")


@mininet
@pytest.mark.usefixtures("_network")
@pytest.mark.parametrize("way", WAYS)
def test_emulated_cell_leaves_only_its_trace(way: str, tmp_path: Path) -> None:
    with private_network():
        trace = emulate(WAYS[way], tmp_path)
        assert not interfaces()
    assert not list(tmp_path.iterdir())
    assert trace.cell == WAYS[way]
    assert sorted(zip(trace.steps["worker"], trace.steps["step"], strict=True)) == [
        (worker, step) for worker in range(2) for step in range(1, 5)
    ]
    assert np.isfinite(trace.steps["accuracy"]).sum() == 4
    assert trace.facts["contributions_sent"] > 0 == trace.facts["miscounted"]
    if way != "gloo":  # which counts nothing
        assert trace.facts["contributions_sent"] == trace.facts["contributions_applied"]
    found = numbers(trace, 0.0)
    assert 0 < found.share < 1
    asked = np.where(trace.steps["worker"] == 0, 0.060, 0.020)
    assert (trace.steps["pushed"] - trace.steps["began"] >= asked - 1e-6).all()
    assert (np.diff(trace.steps["ended"]) >= 0).all() and (trace.steps["ended"] > trace.steps["pushed"]).all()


@mininet
@pytest.mark.usefixtures("_network")
def test_emulated_cell_whose_strategy_the_controller_ends_has_no_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not another strategy's result under its name."""
    file, out = tmp_path / "mine.py", tmp_path / "out"
    out.mkdir()
    file.write_text("def Mine(seen):\n    raise ValueError('not now')\n")
    with private_network(), pytest.raises(RunFailed, match="the run ended with status 1"):
        emulate(replace(CELL, steps=100, strategy=f"auto:{file}:Mine"), out)
    assert f"error: {file}:Mine: ValueError('not now') in line 2" in capfd.readouterr().err
    assert not list(out.iterdir())


@mininet
@pytest.mark.usefixtures("_network")
def test_emulated_cell_over_its_time_limit_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated, "patience_s", lambda cell: 3.0)
    with private_network():
        with pytest.raises(RunFailed, match="took far too long"):
            emulate(replace(CELL, steps=100_000), tmp_path)
        assert not list(tmp_path.iterdir())


def test_forked_start_refuses_modules_that_are_not_ours(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log, pytest.raises(SereneError, match="only our own modules"):
        forked.start("sleeper", ["sleep", "1"], log, {})


def test_failed_fork_restores_the_signal_mask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full() -> int:
        raise BlockingIOError("no process left")

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    monkeypatch.setattr("serene.experiments.run.forked.os.fork", full)
    with (tmp_path / "log").open("wb") as log, pytest.raises(BlockingIOError):
        forked.start("none", module("serene.workers.train"), log, {})
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
