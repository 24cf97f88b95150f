"""The worker's command line: what makes no sense is refused at once, in one line, with what was expected."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.ports import some_ports
from tests.workers.running import ended

ALONE = ["--worker", "0", "--workers", "1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "2"], "--worker"),
        (["--worker", "2", "--workers", "2"], "--worker 2: expected a whole number from 0 to 1"),
        (["--worker", "0", "--workers", "0"], "--workers 0: expected a whole number from 1 to 32"),
        (["--worker", "299", "--workers", "300"], "--workers 300: expected a whole number from 1 to 32"),
        ([*ALONE, "--job", "300"], "--job 300: expected a whole number from 0 to 255"),
        ([*ALONE, "--steps", "0"], "--steps 0: expected a whole number from 1 to 1,000,000"),
        ([*ALONE, "--steps", "many"], "--steps many: expected a whole number"),
        ([*ALONE, "--batch-size", "-1"], "--batch-size -1: expected a whole number from 1 to 100,000"),
        ([*ALONE, "--seed", "-1"], "--seed -1: expected a whole number from 0"),
        ([*ALONE, "--compute-ms", "nan"], "--compute-ms nan: expected a number from 0 to 60,000"),
        ([*ALONE, "--compute-ms", "inf"], "--compute-ms inf: expected a number from 0 to 60,000"),
        ([*ALONE, "--learning-rate", "0"], "--learning-rate 0: expected a number from 1e-09"),
        ([*ALONE, "--learning-rate", "nan"], "--learning-rate nan: expected a number from 1e-09"),
        ([*ALONE, "--model", "gpt"], "--model gpt: expected mlp, cnn or cnn-large"),
        ([*ALONE, "--dataset", "imagenet"], "--dataset imagenet: expected digits, fashion-mnist, mnist or cifar10"),
        ([*ALONE, "--straggler", "lazy"], "expected none, slow_worker, heterogeneous or failure"),
        ([*ALONE, "--straggler", "failure:worker=1"], "failure names worker 1; there are workers 0 to 0"),
        ([*ALONE, "--colour", "blue"], "unrecognized arguments: --colour blue"),
        ([*ALONE, "--frame-udp", "1"], "--frame-udp 1: expected LOCAL:SWITCH, UDP ports (or fdN:SWITCH)"),
        (
            [*ALONE, "--frame-udp", "99999:1"],
            "--frame-udp 99999:1: expected LOCAL:SWITCH, UDP ports (or fdN:SWITCH)",
        ),
    ],
)
def test_bad_usage(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert ended(monkeypatch, *arguments, "--out", str(tmp_path / "out")) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ") and message.count("\n") == 1
    assert said in message
    assert not (tmp_path / "out").exists()


def test_missing_data_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = [*ALONE, "--dataset", "mnist", "--data-dir", str(tmp_path), "--frame-udp"]
    ports = some_ports(2, socket.SOCK_DGRAM)
    assert ended(monkeypatch, *arguments, f"{ports[0]}:{ports[1]}") == 1
    assert f"{tmp_path}/mnist/train-images-idx3-ubyte is missing" in capsys.readouterr().err


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ports = some_ports(2, socket.SOCK_DGRAM)
    arguments = ["--frame-udp", f"{ports[0]}:{ports[1]}", "--join-timeout", "0.3"]
    assert ended(monkeypatch, *ALONE, *arguments) == 1
    assert "error: worker 0: no WELCOME for worker 0 of job 0 within 0.3 s" in capsys.readouterr().err
