"""Bad input is refused before anything starts, with the valid choices, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from serene.experiments.run import cli as run
from serene.experiments.run import settings
from serene.experiments.run.rerun import rerun
from serene.strategy import Mixed


def refused(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["run", *arguments])
    try:
        return run.main()
    except SystemExit as exit_:
        return int(exit_.code or 0)


def test_run_refuses_an_existing_output_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "summary.json").write_text("{}")
    assert refused(monkeypatch, "--out", str(tmp_path)) == 2
    assert f"OUT={tmp_path} exists already" in capsys.readouterr().err
    assert (tmp_path / "summary.json").read_text() == "{}"


def test_run_refuses_an_impossible_output_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / ("x" * 300)
    assert refused(monkeypatch, "--out", str(out)) == 2
    assert capsys.readouterr().err == f"error: OUT={out}: File name too long; choose another directory\n"


def test_run_names_a_missing_bmv2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert refused(monkeypatch, "--target", "bmv2", "--out", str(tmp_path / "out")) == 2
    assert "simple_switch_grpc is not installed; use TARGET=embedded" in capsys.readouterr().err
    assert settings.resolve_target("auto", mininet=True) == "embedded"


def test_missing_root_and_sudo_error_suggests_make_run_local(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    assert refused(monkeypatch, "--out", str(tmp_path / "out")) == 1
    assert "make run-local" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def checked(tmp_path: Path, **options: Any) -> settings.Settings:
    return settings.check(**{"link_mbit": "100", "out": tmp_path / "out", **options})


@pytest.mark.parametrize(("share", "ms"), [("0.05", 515.5), ("0.3", 63.3), ("0.65", 14.6)])
def test_exchange_share_determines_compute_time(share: str, ms: float, tmp_path: Path) -> None:
    """249 frames of 1,362 bytes take 27.1 ms at 100 Mbit/s; with every exchange, computing is the rest of a step."""
    for exchange in ("switch", "sharded"):
        found = checked(tmp_path, exchange=exchange, exchange_share=share)
        assert found.compute_ms == pytest.approx(ms, rel=0.01)
        taken = 249 * 1362 * 8 / 100e6
        assert taken / (taken + found.compute_ms / 1e3) == pytest.approx(float(share), abs=1e-6)


def test_exchange_share_uses_the_runs_own_frame_size(tmp_path: Path) -> None:
    """89 frames of 3,666 bytes; the other program has 249 of 1,362."""
    found = checked(tmp_path, program="serene_jumbo", exchange_share="0.5")
    assert found.compute_ms == pytest.approx(89 * 3666 * 8 / 100e6 * 1e3)


@pytest.mark.parametrize("exchange", ["switch", "server"])
def test_worker_is_named_by_rack_or_by_number(exchange: str, tmp_path: Path) -> None:
    """There are two workers in each rack."""
    found = checked(tmp_path, racks="2", strategy="mixed:1.0,1:2", exchange=exchange)
    assert found.strategy == Mixed((1, 2), 2)


def test_rerun_keeps_fault_text_after_fault_file_is_deleted(tmp_path: Path) -> None:
    file, text = tmp_path / "faults.toml", '[[events]]\niteration = 1\naction = "restart switch"\n'
    file.write_text(text)
    found = checked(tmp_path, faults=file)
    file.unlink()
    assert rerun(found)["faults"] == text
    assert rerun(found.model_copy(update={"commit": "that one"}))["commit"] == "that one"
