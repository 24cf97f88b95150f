"""Bad input is refused before anything starts, with the valid choices, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from serene.experiments.run import cli as run
from serene.experiments.run import settings
from serene.experiments.run.results import rerun
from serene.strategy import Mixed


@pytest.mark.parametrize(
    ("name", "options", "status", "expected"),
    [
        ("", [], 2, "OUT={out} exists already"),
        ("x" * 300, [], 2, "OUT={out}: File name too long; choose another directory"),
        ("out", ["--target", "bmv2"], 2, "simple_switch_grpc is not installed; use TARGET=embedded"),
        ("out", [], 1, "make run-local"),  # neither root nor sudo
    ],
)
def test_run_refuses_what_it_cannot_use(
    name: str, options: list[str], status: int, expected: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:  # fmt: skip
    out = tmp_path / "there" / name
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "summary.json").write_text("{}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", ["run", *options, "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(run.main())
    assert ended.value.code == status
    message = capsys.readouterr().err
    assert message.startswith("error: ") and expected.format(out=out) in message
    assert {path.name for path in tmp_path.rglob("*")} == {"there", "summary.json"}
    assert (tmp_path / "there" / "summary.json").read_text() == "{}"
    assert settings.resolve_target("auto", mininet=True) == "embedded"


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
