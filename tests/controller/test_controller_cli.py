"""The output of serenectl with and without a controller."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import typer

from serene.controller.automatic.choices import shipped
from serene.controller.commands.cli import main
from serene.controller.commands.sync import sync
from serene.distribution import version
from serene.strategy import BSP
from tests.controller.hosts import Host, join
from tests.controller.processes import ROOT, ControllerProcess, SwitchProcess, until
from tests.ports import some_port


class Ended(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Ended]

pytestmark = pytest.mark.targets("embedded")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process: exit status, output, errors."""

    def run_one(command: str, controller: str | None = None) -> Ended:
        if controller is None:
            monkeypatch.delenv("SERENE_CONTROLLER", raising=False)
        else:
            monkeypatch.setenv("SERENE_CONTROLLER", controller)
        with pytest.raises(SystemExit) as ended:
            main(command.split())
        output = capfd.readouterr()
        return Ended(int(ended.value.code or 0), output.out, output.err)

    return run_one


@pytest.fixture
def controller(controller: ControllerProcess) -> Iterator[ControllerProcess]:
    yield controller
    for job in controller.client.jobs():
        controller.client.delete_job(job.job)


@pytest.mark.parametrize("command", [
    "status", "status --json", "watch", "jobs", "down", "sync bsp", "jobs create --workers 2",
    "jobs create --workers 2 --racks 2", "jobs create --workers 2 --strategy mixed:0.1", "jobs delete --job 0",
])  # fmt: skip
def test_command_without_controller_names_serenectl_up(run: Run, command: str) -> None:
    url = f"http://127.0.0.1:{some_port()}"
    error = f"error: no controller at {url}: start one with 'serenectl up', or set $SERENE_CONTROLLER\n"
    assert run(command, controller=url) == (1, "", error)
    assert run(f"{command} --controller {url}") == (1, "", error)


def test_trace_command_needs_no_token(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks the switch, not the controller."""
    monkeypatch.setenv("SERENE_TOKEN", "short")
    ended = run(f"trace --switch 127.0.0.1:{some_port()}")
    assert ended.status == 1 and ended.err.startswith("error: ") and "TOKEN" not in ended.err
    assert "error: $SERENE_TOKEN: expected 16 to 512 letters" in run("up --switch here").err


def test_local_switch_needs_a_loopback_address(run: Run) -> None:
    error = "error: --switch 192.0.2.1:9559: --local needs a loopback address\n"
    assert run("up --local --switch 192.0.2.1:9559") == (1, "", error)


def test_nan_or_impossible_limit_is_refused(run: Run, controller: ControllerProcess) -> None:
    ended = run("jobs create --workers 2 --limit nan", controller=controller.url)
    assert ended == (1, "", "error: a number is NaN or infinite: expected finite numbers\n")
    ended = run("jobs create --workers 2 --limit 0", controller=controller.url)
    assert (ended.status, ended.out) == (2, "")
    assert "expected a limit of 9.53674e-07 to 1024, or" not in ended.err
    assert "expected a limit of 9.53674e-07 to 1024" in ended.err


def test_command_without_arguments_prints_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "serene.controller"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    for command in ("up", "down", "status", "watch", "sync", "jobs"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssp:3", "ssp --staleness 3"),
        ("ssp:3:4", "ssp --staleness 3:4"),  # refused as no number
        ("quorum:2 --job 1", "quorum --k 2 --job 1"),
        ("mixed:3,5", "mixed --async-workers 3,5"),
        ("mixed:3,5:2", "mixed --async-workers 3,5 --staleness 2"),
        ("auto:my.py:Mine", "auto my.py:Mine"),
    ],
)
def test_sync_takes_the_texts_of_strategies(text: str, words: str) -> None:
    command = typer.main.get_command(sync)
    name, _, rest = command.resolve_command(typer.Context(command), text.split())  # type: ignore[attr-defined]
    assert [name, *rest] == words.split()


def test_commands_manage_a_job_from_creation_to_deletion(
    run: Run, switch: SwitchProcess, controller: ControllerProcess, hosts: list[Host]
) -> None:
    def output(command: str) -> str:
        ran = run(command, controller=controller.url)
        assert (ran.status, ran.err) == (0, ""), command
        return ran.out

    assert output("jobs") == "no jobs; create one with a PyTorch program or 'serenectl jobs create --workers N'\n"
    assert output("jobs create --workers 2 --strategy ssp:2") == "job 0: waiting, SSP(2), 0 of 2 workers here\n"
    assert output("sync ssp --staleness 2") == output("sync ssp:2") == "job 0: already SSP(2), no change\n"
    assert output("sync bsp") == "job 0: SSP(2) -> BSP, when it starts\n"
    session = join(hosts[:2], 0, 700)[0]["session"]
    swap = output("sync ssp --staleness 3")
    assert re.fullmatch(r"job 0: BSP -> SSP\(3\), epoch 2 \(\d+ ms\)\n", swap)
    assert output("sync ssp --staleness 3") == "job 0: already SSP(3), no change\n"
    times = {"compute_s": 1.0, "network_s": 1.0, "waiting_s": 2.0}
    hosts[0].report(0, 0, iteration=1, round=0, loss=2.25, accuracy=0.125, state="computing", **times)
    hosts[0].push(0, 0, [1], session=session, epoch=1, seq=1)
    until(lambda: controller.client.job(0).workers[0].report, "the report arrives")
    until(lambda: controller.client.job(0).workers[0].contributions, "the contribution is counted")
    drops = controller.client.status().switch.drops
    dropped = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in drops.items() if count) or "none"
    assert [line.rstrip() for line in output("status").splitlines()] == [
        f"switch {switch.grpc} (device 0), program serene: 8192 slots of 320 values; connected",
        "job 0: running, SSP(3), epoch 2, 700 values in 3 slots",
        "worker state     iteration round   loss accuracy waiting blocked repeats",
        "     0 computing         0     0 2.2500    0.125     50%       0       0",
        "     1 running           0     -      -        -       -       0       0",
        f"dropped packets: {dropped}",
    ]
    assert json.loads(output("status --json"))["jobs"][0]["epoch"] == 2
    assert [line.rstrip() for line in output("jobs").splitlines()] == [
        "job  state    strategy  epoch  workers  values  slots",
        "  0  running  SSP(3)        2        2     700      3",
    ]
    assert output("jobs delete --job 0") == "job 0 deleted\n"


def test_command_without_job_number_needs_exactly_one_job(run: Run, controller: ControllerProcess) -> None:
    def error(command: str) -> tuple[int, str]:
        ran = run(command, controller=controller.url)
        return ran.status, ran.err

    none = "error: there is no job; create one with a PyTorch program or 'serenectl jobs create --workers N'\n"
    assert error("sync bsp") == (1, none)
    controller.client.create_job(2, BSP())
    assert error("sync bsp --job 1") == (2, "error: there is no job 1 (jobs: 0)\n")
    controller.client.create_job(2, BSP())
    assert error("sync bsp") == (2, "error: --job is missing: expected 0 or 1\n")
    assert error("sync bsp --job 1") == (0, "")


def test_watch_into_a_pipe_prints_a_block_per_change(controller: ControllerProcess) -> None:
    """Ctrl-C ends it quietly."""
    command = [sys.executable, "-m", "serene.controller", "watch", "--controller", controller.url]
    watching = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    try:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("switch ")
        controller.client.create_job(3, BSP())
        assert any("job 0: waiting, BSP, 0 of 3 workers here" in line for line in watching.stdout)
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=60)
    finally:
        watching.kill()
        watching.wait()
    assert (watching.returncode, errors) == (130, "")


@pytest.mark.parametrize(
    ("terminal", "awaited"),
    [({"COLUMNS": "120"}, b"job 0 waits for"), ({"COLUMNS": "20", "PYTHONIOENCODING": "ascii"}, b"\\u2026")],
    ids=["unicode", "ascii"],
)
def test_watch_on_a_terminal_leaves_its_last_state(
    controller: ControllerProcess, terminal: dict[str, str], awaited: bytes
) -> None:
    """Also on one without Unicode, which shows the ellipsis of lines that are cut by its code."""
    controller.client.create_job(3, BSP())
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "serene.controller", "watch", "--controller", controller.url]
    environment = {**os.environ, "TERM": "xterm", "LINES": "30", **terminal}
    watching = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment)
    os.close(theirs)
    written = b""
    try:
        while awaited not in written:
            written += os.read(ours, 65536)
        watching.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # how a terminal reports that nobody has it open any more
            while more := os.read(ours, 65536):
                written += more
        assert watching.wait(60) == 130
    finally:
        watching.kill()
        watching.wait()
        os.close(ours)
    _, left, after = written.rpartition(b"\x1b[?1049l")
    assert left and b"Traceback" not in written
    text = "job 0 waits for workers 0, 1 and 2 to join before it starts under BSP"
    assert text[: int(terminal["COLUMNS"]) // 2] in after.decode()


@pytest.mark.parametrize(
    ("command", "redirected"), [("status", ">/dev/full"), ("jobs", ">/dev/full"), ("status", ">&-")]
)
def test_commands_report_unwritable_output_in_one_line(
    controller: ControllerProcess, command: str, redirected: str
) -> None:
    shell = f'exec "$0" -m serene.controller {command} --controller {controller.url} {redirected}'
    done = subprocess.run(["sh", "-c", shell, sys.executable], capture_output=True, text=True, cwd=ROOT)
    full = (1, "error: cannot use the output: No space left on device\n")
    assert (done.returncode, done.stderr) == (full if "full" in redirected else (0, ""))


def test_version_option_prints_the_version(run: Run) -> None:
    assert run("--version") == (0, f"serenectl {version()}\n", "")


def test_help_of_sync_auto_lists_the_parameters_of_each_shipped_strategy(run: Run) -> None:
    lines = run("sync auto --help").out.splitlines()
    for one in shipped():
        assert f"    {one.name}: {', '.join(f'--{each.name} {each.default}' for each in one.parameters)}" in lines


@pytest.mark.parametrize(
    ("line", "completed"),
    [("serenectl ex", {"explain"}), ("serenectl sync a", {"asp", "auto"}), ("serenectl up --wa", {"--wait"})],
)
def test_bash_completion_completes_commands_and_options(
    run: Run, monkeypatch: pytest.MonkeyPatch, line: str, completed: set[str]
) -> None:
    monkeypatch.setenv("_SERENECTL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    ended = run("")
    assert (ended.status, set(ended.out.split())) == (0, completed)


def test_up_without_a_home_directory_reports_it() -> None:
    unknown = ["unshare", "--user", "--map-user=54321", "env", "--unset=HOME", "--unset=XDG_RUNTIME_DIR"]
    try:
        subprocess.run([*unknown, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs unshare and user namespaces")
    command = [*unknown, sys.executable, "-m", "serene.controller", "up", "--http", f"127.0.0.1:{some_port()}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    reason = "error: cannot write logs and pid files to ~: this user has no home directory; "
    assert (done.returncode, done.stderr) == (1, f"{reason}choose another folder with XDG_RUNTIME_DIR=/PATH\n")
