"""What makes no sense is refused before anything starts, with the valid choices, and leaves nothing behind."""

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

BAD = [
    (["--workers", "0"], "WORKERS=0: expected a whole number from 1 to 32"),
    (["--workers", "33"], "WORKERS=33: expected a whole number from 1 to 32"),
    (["--workers", "four"], "WORKERS=four: expected a whole number"),
    (["--steps", "0"], "STEPS=0: expected a whole number from 1"),
    (["--seed", "-1"], "SEED=-1: expected a whole number from 0"),
    (["--compute-ms", "nan"], "COMPUTE_MS=nan: expected a number from 0"),
    (["--strategy", "magic"], "expected bsp, ssp:S, asp, quorum:K or mixed:W"),
    (["--strategy", "ssp:16"], "15"),
    (["--strategy", "quorum:5"], "5"),
    (["--strategy", "mixed:4"], "4"),
    (["--strategy", "mixed:1.0"], "no worker 1.0: expected 0 to 3"),
    (["--strategy", "mixed:2.0", "--racks", "2"], "no worker 2.0: expected 0 to 3, or 0.0 to 1.1"),
    (["--straggler", "lazy"], "none, slow_worker, heterogeneous or failure"),
    (["--straggler", "slow_worker:speed=3"], "probability, low, high or workers"),
    (["--straggler", "failure:worker=4"], "there are workers 0 to 3"),
    (["--straggler", "heterogeneous:workers=-1"], "there are workers 0 to 3"),
    (["--model", "gpt"], "mlp, cnn or cnn-large"),
    (["--dataset", "imagenet"], "digits, fashion-mnist, mnist or cifar10"),
    (["--dataset", "mnist", "--data-dir", "/no/such/directory"], "/no/such/directory"),
    (["--batch-size", "0"], "BATCH_SIZE=0: expected a whole number from 1"),
    (["--learning-rate", "-1"], "LEARNING_RATE=-1: expected a number from 1e-09"),
    (["--exchange", "mpi"], "EXCHANGE=mpi: expected switch, server, sharded or gloo"),
    (["--strategy", "auto:magic"], "no automatic strategy 'auto:magic'; expected auto:pacing, auto:dssp"),
    (["--exchange", "server", "--strategy", "auto"], "STRATEGY=auto: automatic strategies need EXCHANGE=switch"),
    (["--exchange", "gloo", "--strategy", "asp"], "gloo's all-reduce is synchronous; expected bsp"),
    (["--exchange", "server", "--target", "embedded"], "TARGET=embedded is for a run through the switch"),
    (["--exchange-share", "0.3"], "EXCHANGE_SHARE=0.3 needs LINK_MBIT"),
    (["--exchange-share", "30", "--link-mbit", "100"], "EXCHANGE_SHARE=30: expected a number from 0.01 to 0.99"),
    (["--packets", "pcap"], "PACKETS=pcap: expected compiled, numpy or scapy"),
    (["--target", "tofino"], "auto, embedded or bmv2"),
    (["--program", "serene_huge"], "serene or serene_jumbo"),
    (["--link-mbit", "fast"], "LINK_MBIT=fast: expected a number"),
    (["--link-mbit", "0"], "LINK_MBIT=0: expected a number"),
    (["--no-mininet", "--link-mbit", "10"], "LINK_MBIT needs Mininet"),
    (["--no-mininet", "--target", "bmv2"], "TARGET=bmv2 needs Mininet"),
    (["--racks", "9"], "RACKS=9: expected a whole number from 1 to 8"),
    (["--racks", "2", "--workers", "65"], "WORKERS=65: expected a whole number from 2 to 64"),
    (["--racks", "2", "--no-mininet"], "RACKS=2 needs Mininet: make run-mininet RACKS=2\n"),
    (["--slots", "0"], "SLOTS=0: expected a whole number from 1 to 8,388,608"),
    (
        ["--slots", "248"],
        "serene holds 79360 in 248 slots: expected SLOTS=249 or more",
    ),
    (["--slots", "300", "--exchange", "server"], "SLOTS=300 is for a run through the switch; with EXCHANGE=server"),
    (["--racks", "2", "--program", "serene_jumbo"], "PROGRAM=serene_jumbo is for a run with one switch; with RACKS=2"),
    (["--uplink-mbit", "10"], "UPLINK_MBIT=10 needs RACKS"),
    (["--racks", "2", "--uplink-mbit", "0"], "UPLINK_MBIT=0: expected a number"),
    (["--colour", "blue"], "unrecognized arguments: --colour blue"),
]


def refused(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["run", *arguments])
    try:
        return run.main()
    except SystemExit as exit_:
        return int(exit_.code or 0)


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_invalid_run_option_is_refused_with_its_choices(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "runs" / "here"
    assert refused(monkeypatch, *arguments, "--out", str(out)) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ") and message.count("\n") == 1
    assert said in message
    assert not out.parent.exists()


def test_results_are_never_overwritten(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "summary.json").write_text("{}")
    assert refused(monkeypatch, "--out", str(tmp_path)) == 2
    assert f"OUT={tmp_path} exists already" in capsys.readouterr().err
    assert (tmp_path / "summary.json").read_text() == "{}"


def test_a_name_that_no_file_can_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / ("x" * 300)
    assert refused(monkeypatch, "--out", str(out)) == 2
    assert capsys.readouterr().err == f"error: OUT={out}: File name too long; choose another directory\n"


def test_bmv2_that_is_not_installed_is_named(
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
    """249 frames of 1,362 bytes take 27.1 ms at 100 Mbit/s; whatever the exchange, computing is the rest of a step."""
    for exchange in ("switch", "sharded"):
        found = checked(tmp_path, exchange=exchange, exchange_share=share)
        assert found.compute_ms == pytest.approx(ms, rel=0.01)
        taken = 249 * 1362 * 8 / 100e6
        assert taken / (taken + found.compute_ms / 1e3) == pytest.approx(float(share), abs=1e-6)


def test_the_share_is_of_the_run_s_own_frames(tmp_path: Path) -> None:
    """89 frames of 3,666 bytes, where the other program has 249 of 1,362."""
    found = checked(tmp_path, program="serene_jumbo", exchange_share="0.5")
    assert found.compute_ms == pytest.approx(89 * 3666 * 8 / 100e6 * 1e3)


@pytest.mark.parametrize("exchange", ["switch", "server"])
def test_a_worker_is_named_by_its_rack_or_its_number(exchange: str, tmp_path: Path) -> None:
    """Two in each rack."""
    found = checked(tmp_path, racks="2", strategy="mixed:1.0,1:2", exchange=exchange)
    assert found.strategy == Mixed((1, 2), 2)


def test_rerun_keeps_fault_text_after_fault_file_is_deleted(tmp_path: Path) -> None:
    file, text = tmp_path / "faults.toml", '[[events]]\niteration = 1\naction = "restart switch"\n'
    file.write_text(text)
    found = checked(tmp_path, faults=file)
    file.unlink()
    assert rerun(found)["faults"] == text
    assert rerun(found.model_copy(update={"commit": "that one"}))["commit"] == "that one"
