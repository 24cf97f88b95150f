"""The authors' figures, computed from hand-made logs in their format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serene.experiments.straggler_study import authors
from serene.workers import stragglers
from tests.commands import called


def log(path: Path, accuracies: list[float], seconds: float, exchange_s: float) -> None:
    """An evaluation every 100 seconds from 1000 on, as pandas wrote them."""
    rows = [f"{n},,,1.0,{accuracy},{1000 + seconds * n}" for n, accuracy in enumerate(accuracies)]
    total = seconds * (len(accuracies) - 1)
    path.write_text("\n".join([",train_loss,train_acc,val_loss,val_acc,time_refs", *rows, f"{total},{exchange_s}", ""]))


def run(directory: Path, staleness: int, accuracies: list[float], seconds: float, **further: object) -> None:
    directory.mkdir(parents=True)
    (directory / "settings.json").write_text(json.dumps({"workers": 2, "stale": staleness, **further}))
    log(directory / "worker-0-stats.csv", accuracies, seconds, 0.6 * seconds * (len(accuracies) - 1))
    log(directory / "worker-1-stats.csv", [*accuracies[:-1], 0.5], seconds, 0.4 * seconds * (len(accuracies) - 1))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    slow = {"straggling_pattern": {"args": {"pattern": "slow_worker"}}}
    run(tmp_path / "slow" / "b", 10, [0.1, 0.5, 0.8, 0.92], 50.0, **slow)
    run(tmp_path / "slow" / "a", 0, [0.1, 0.4, 0.7, 0.9, 0.911], 100.0, **slow)
    run(tmp_path / "twice" / "a", 0, [0.1, 0.4, 0.7, 0.9, 0.911], 100.0, **slow)  # copied: the same files
    run(tmp_path / "never" / "a", 0, [0.1, 0.91], 100.0)  # not above it
    return tmp_path


def test_author_run_ends_when_one_worker_exceeds_the_target(logs: Path) -> None:
    """Copies count once, and logs that never exceed it do not count."""
    slow, fast = authors.read(logs).itertuples()
    assert (slow.s, slow.evaluations, slow.seconds, slow.step_s) == (0, 4, 400.0, 10.0)
    assert (fast.s, fast.evaluations, fast.seconds, fast.step_s) == (10, 3, 150.0, 5.0)
    assert slow.straggler == "slow_worker" and slow.exchanging == pytest.approx(0.5)


def test_author_table_compares_within_a_series(logs: Path) -> None:
    done = called(authors.main, logs)
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if line.startswith("slow")]
    assert [line.split()[3] for line in lines] == ["0", "10"]
    assert "%" not in lines[0].split("50 %")[1]
    for change in ("-25.0 %", "-50.0 %", "-62.5 %"):  # 4 to 3 evaluations, 10 to 5 s a step, 400 to 150 s
        assert change in lines[1]


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ("", [], "expected the authors' logs"),
        ("{}", [], "not a run of the authors'"),
        ("[]", [], "not a run of the authors'"),
        ('{"workers": 2, "stale": null}', [], "not a run of the authors'"),
        ("", ["--trace", "delays.csv"], "expected a run of the authors'"),
    ],
)
def test_authors_command_refuses_other_folders(
    settings: str, options: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if settings:
        run(tmp_path / "x", 0, [0.1, 0.95], 1.0)
        (tmp_path / "x" / "settings.json").write_text(settings)
    done = called(authors.main, tmp_path, *options)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert expected in done.stderr and not (tmp_path / "delays.csv").exists()


@pytest.mark.parametrize(
    ("time", "options"),
    [("x", []), ("x", ["--trace", "delays.csv"]), ("nan", ["--trace", "delays.csv"]), ("", []),
     ("", ["--trace", "delays.csv"])],
)  # fmt: skip
def test_damaged_author_logs_are_refused(
    time: str, options: list[str], logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(logs)
    log = logs / "slow" / "a" / "worker-0-stats.csv"
    assert len(authors.read(log.parent)) == 1
    text = log.read_text()
    log.unlink()
    if time:
        log.write_text(text.replace(",1100.0", f",{time}"))
    else:
        log.mkdir()
    done = called(authors.main, log.parent, *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"error: {log.parent}: n" in done.stderr and not (logs / "delays.csv").exists()


def test_author_delays_are_exported_as_a_straggler(logs: Path) -> None:
    uneven = logs / "slow" / "b" / "worker-1-stats.csv"
    uneven.write_text(uneven.read_text().replace(",1150.0", ",1250.0").replace(",1100.0", ",1150.0"))
    file = logs / "delays.csv"
    assert called(authors.main, uneven.parent, "--trace", file).returncode == 0
    profile = stragglers.parse(f"trace:{file}")
    # Worker 1 takes 50, 100 and 100 s for ten steps each; worker 0 always 50.
    assert [profile.delay(1, iteration, 1.0, 0) for iteration in (1, 10, 11, 30)] == [0, 0, 1, 1]
    assert profile.delay(0, 30, 1.0, 0) == 0
