"""The worker's command line: impossible settings are refused at once, in one line, with what was expected."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.ports import some_ports
from tests.workers.running import ended

ALONE = ["--worker", "0", "--workers", "1"]


def test_training_command_names_missing_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = [*ALONE, "--dataset", "mnist", "--data-dir", str(tmp_path), "--frame-udp"]
    ports = some_ports(2, socket.SOCK_DGRAM)
    assert ended(monkeypatch, *arguments, f"{ports[0]}:{ports[1]}") == 1
    assert f"{tmp_path}/mnist/train-images-idx3-ubyte is missing" in capsys.readouterr().err


def test_worker_without_welcome_exits_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ports = some_ports(2, socket.SOCK_DGRAM)
    arguments = ["--frame-udp", f"{ports[0]}:{ports[1]}", "--join-timeout", "0.3"]
    assert ended(monkeypatch, *ALONE, *arguments) == 1
    assert "error: worker 0: no WELCOME for worker 0 of job 0 within 0.3 s" in capsys.readouterr().err
