"""Outputs are checked before the work, the check leaves nothing behind, and results are not lost after the work."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serene.experiments.correctness import schedules
from serene.experiments.network_study import __main__ as network_study
from serene.experiments.pytorch_study import __main__ as pytorch_study
from serene.experiments.pytorch_study import fewer_bits
from serene.experiments.run import __main__ as training_run
from serene.experiments.shared import terminal
from serene.experiments.shared.pool import Processes
from serene.experiments.shared.store import alone
from serene.experiments.straggler_study import __main__ as straggler_study
from serene.process import outputs
from serene.process.outputs import CannotWrite
from tests import disks
from tests.commands import called, run

MB = outputs.MB


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with disks.disk(tmp_path / "small", "4m") as place:
        yield place


@pytest.fixture
def spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results go that cannot go where they should."""
    place = tmp_path / "spare"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def listing(place: Path) -> list[str]:
    return sorted(path.name for path in place.rglob("*"))


@pytest.mark.parametrize("name", ["out", "a/b/out", "a/b/out.json"])
def test_output_check_leaves_a_writable_folder_unchanged(tmp_path: Path, name: str) -> None:
    outputs.check(tmp_path / name, MB)
    assert listing(tmp_path) == []


def full(place: Path) -> None:
    disks.fill(place)


def nearly_full(place: Path) -> None:
    disks.fill(place, MB // 2)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(full, "No space left on device"), (nearly_full, "No space left on device"), (disks.read_only, "Read-only")],
)
def test_output_check_refuses_a_disk_that_cannot_hold_the_output(
    small: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(small)
    before = listing(small)
    for name in ("out", "a/b/out"):
        with pytest.raises(CannotWrite, match=f"cannot write {small}/{name}: {message}.*1.0 MB are needed"):
            outputs.check(small / name, MB)
    assert listing(small) == before


def test_output_check_names_the_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CannotWrite, match=f"{tmp_path}/file is no directory"):
        outputs.check(tmp_path / "file" / "out", MB)
    with pytest.raises(CannotWrite, match="link is a link to nothing"):
        outputs.check(tmp_path / "link" / "out", MB)
    with pytest.raises(CannotWrite, match="it is a directory; name a file"):
        outputs.check_file(tmp_path, MB)
    with pytest.raises(CannotWrite, match="it is a file; name a directory"):
        outputs.check_directory(tmp_path / "file", MB)
    for check in (outputs.check, outputs.check_file, outputs.check_directory):
        for name in ("x" * 300, f"{'x' * 300}/out"):
            with pytest.raises(CannotWrite, match="File name too long"):
                check(tmp_path / name, MB)


def test_output_check_refuses_a_folder_without_write_permission(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root needs no permission; a read-only disk stands for it above")
    tmp_path.chmod(0o555)
    with pytest.raises(CannotWrite, match="Permission denied"):
        outputs.check(tmp_path / "out", MB)


def where(error: CannotWrite) -> Path:
    found = re.search(r"written to (\S+) instead", str(error))
    assert found, error
    return Path(found[1])


def test_output_that_does_not_fit_is_written_to_another_disk(small: Path, spare: Path) -> None:
    disks.fill(small)
    text = "found\n" * 10_000
    with pytest.raises(CannotWrite, match=f"cannot write {small}/deep/found.json: No space") as raised:
        outputs.write_text(small / "deep" / "found.json", text)
    assert where(raised.value).read_text() == text
    assert where(raised.value).is_relative_to(spare)
    assert not any("found" in name for name in listing(small)), "no half of it either"


def test_result_is_printed_when_no_disk_has_room(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disks.fill(small)
    monkeypatch.setattr(outputs, "spare_places", lambda path: [small])
    with pytest.raises(CannotWrite, match="nor anywhere else; the result is printed above"):
        outputs.write_text(small / "found.json", "found\n" * 10_000)
    assert capsys.readouterr().out == "found\n" * 10_000


def test_failed_write_keeps_the_older_file(small: Path, spare: Path) -> None:
    (small / "found.json").write_text("older")
    disks.fill(small)
    with pytest.raises(CannotWrite):
        outputs.write_text(small / "found.json", "newer" * 10_000)
    assert (small / "found.json").read_text() == "older"


def test_pipe_or_link_as_output_is_written_and_not_replaced(tmp_path: Path) -> None:
    """Root's /dev/null or /dev/stdout became a file, for the whole machine."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("older")
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        for path in (pipe, link):
            outputs.check_file(path, MB)
            outputs.write_text(path, "found")
        assert reader.read() == "found"
    assert pipe.is_fifo() and link.is_symlink() and (tmp_path / "file").read_text() == "found"


def test_output_folder_is_claimed_by_one_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "runs" / "out"
    with outputs.claimed(out):
        with pytest.raises(CannotWrite, match="cannot write runs/out: another run uses it; choose another folder"):
            outputs.claimed(Path("runs/out")).__enter__()
        with outputs.claimed(tmp_path / "runs" / "other"):
            pass
    with outputs.claimed(out):
        pass
    assert listing(tmp_path) == []


def test_folder_that_does_not_fit_is_kept_on_another_disk(small: Path, spare: Path) -> None:
    work = small / ".run"
    work.mkdir()
    disks.fill(small)

    def make(place: Path) -> None:
        (place / "one").write_text("1" * 100_000)

    with pytest.raises(CannotWrite) as raised:
        outputs.keep(make, work, small / "out")
    assert listing(where(raised.value)) == ["one"]
    assert not (small / "out").exists()


# -- the commands ----------------------------------------------------------------------------------------------


ONE_SCHEDULE = ["--runs", "1", "--pair", "bsp,ssp", "--processes", "1"]
COMMANDS = {
    "a run": (training_run.main, ["--no-mininet", "--workers", "1"], "runs/out"),
    "schedules": (schedules.main, ONE_SCHEDULE, "numbers.json"),
    "the straggler study": (straggler_study.main, ["--engine", "simulated"], "study"),
    "the network study": (network_study.main, ["--no-emulation"], "study"),
    "the PyTorch study": (pytorch_study.main, [], "study"),
    "the study of fewer bits": (fewer_bits.main, [], "study"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_command_refuses_a_bad_output_before_working(command: str, small: Path, tmp_path: Path) -> None:
    main, arguments, name = COMMANDS[command]
    disks.fill(small)
    (small / "file").touch()
    before = listing(small)
    bad = {small / name: "", small / "file" / name: ""}
    if name == "study":
        (tmp_path / "of another program").touch()
        bad[tmp_path / "of another program"] = "it is a file; name a directory"
    for out, why in bad.items():
        done = called(main, *arguments, "--out", out)
        assert done.returncode in (1, 2)
        assert re.fullmatch(rf"error: (OUT: )?cannot write {re.escape(str(out))}: {why or '.*'}\n", done.stderr), done
        assert done.stdout.count("\n") == (command == "a run"), "what it is about to do is a line"
        assert listing(small) == before


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"TMPDIR": "/{place}"}, "path too long; their socket is made in /{place}, another folder is given by TMPDIR"),
        ({"CC": "/bin/false", "XDG_CACHE_HOME": "/{place}"}, "/bin/false, which $CC names, compiles no C program"),
    ],
    ids=["no room for a socket's path", "no compiler"],
)  # fmt: skip
def test_schedules_report_what_their_processes_lack_in_one_line(
    environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    place = tmp_path / ("x" * 100)
    place.mkdir()
    command = [sys.executable, "-m", "serene.experiments.correctness.schedules", *ONE_SCHEDULE]
    given = {name: value.replace("/{place}", str(place)) for name, value in environment.items()}
    done = run(*command, "--out", tmp_path / "numbers.json", environment=given)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert message.replace("/{place}", str(place)) in done.stderr


@pytest.fixture
def forks() -> None:
    """The server that processes are forked from. Its socket is where temporary files are, and the path of ``spare`` is
    too long for one: it has to be there before."""
    Processes(1, ()).shutdown()


@pytest.mark.parametrize("command", ["the straggler study", "the network study"])
def test_second_study_in_a_folder_is_refused(command: str, tmp_path: Path) -> None:
    main, arguments, _ = COMMANDS[command]
    with alone(tmp_path):
        done = called(main, *arguments, "--out", tmp_path)
    assert done.returncode == 1 and done.stderr.startswith(f"error: {tmp_path} is in use by another run: ")


def test_schedules_keep_results_if_the_disk_fills_while_running(
    forks: None, small: Path, spare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = schedules.play_all

    def and_fill(*arguments: object) -> Iterator[object]:
        yield from play(*arguments)  # type: ignore[arg-type]
        disks.fill(small)

    monkeypatch.setattr(schedules, "play_all", and_fill)
    done = called(schedules.main, *ONE_SCHEDULE, "--out", small / "numbers.json")
    assert done.returncode == 1
    assert json.loads(where(CannotWrite(done.stderr)).read_text())["tallies"]["bsp ssp"]["runs"] == 1


def test_console_outlives_an_output_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run prints for hours, and its results lie elsewhere."""
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        console = terminal.console()
        for line in ("one", "two"):
            console.print(line)
    monkeypatch.setattr(sys, "stdout", None)  # closed by the caller
    terminal.console().print("three")
    message = "the output cannot be written: No space left on device; the work continues, and its results are kept\n"
    assert capsys.readouterr().err == message
