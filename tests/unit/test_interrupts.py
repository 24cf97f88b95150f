"""Our commands end quietly when interrupted before they have begun, and clean up when interrupted later."""

from __future__ import annotations

import ast
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from serene.distribution import version
from tests.commands import ROOT, run
from tests.controller.processes import until
from tests.runs import Marked

PACKAGES = ("controller", "experiments", "serene", "topologies", "workers")

INTERRUPTED = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name not in first and name.partition(".")[0] not in sys.stdlib_module_names:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
for module in sys.argv[1:]:
    if child := os.fork():
        print(module, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    first = (module, f"{module}.__main__", *(module[:end] for end, each in enumerate(module) if each == "."),
             "serene", "serene.process", "serene.process.interrupts")
    del sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    break
"""


def interrupted(*modules: str, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs each module in a fork of a Python that has imported none of ours. It is interrupted whenever it imports
    something, from the first on that Python does not bring. The output has each one's name and exit status."""
    how = ["env", "--ignore-signal=INT"] if ignored else ["env", "--default-signal=INT"]
    return run(*how, sys.executable, "-c", INTERRUPTED, *modules)


def commands() -> set[str]:
    """The modules that users start, or commands do that are installed: those that make and pages name, and those that
    read a command line. The shim's package is imported before the shim can set its handler."""
    pattern = r"(?:python|VENV_PYTHON\)) -m ((?:serene|tests)[\w.]*\w)"
    pages = [ROOT / "Makefile", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    sources = [path for package in (*PACKAGES, "tests") for path in (ROOT / package).rglob("*.py")]
    found = {name for page in pages for name in re.findall(pattern, page.read_text())}
    reads = re.compile(r"^from serene.arguments import Parser\b.*^if __name__ == ", re.MULTILINE | re.DOTALL)
    for path in (source for source in sources if reads.search(source.read_text())):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        found.add(name if name.startswith(("serene.", "tests.")) else f"serene.{name}")
    others = {"serene.controller", "serene.experiments.network_study.question", "serene.switch_command"}
    return found - {"serene.faults.shim"} | others | {"serene.workers.train"}


def test_interrupt_during_import_ends_each_command_quietly() -> None:
    ended = interrupted(*sorted(commands()))
    assert (ended.stdout.splitlines(), ended.stderr) == ([f"{module} 130" for module in sorted(commands())], "")


HELP = """
import contextlib, io, re, runpy, sys
for module in sys.argv[1:]:
    output, sys.argv, status = io.StringIO(), [module, "--help"], None
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code
    shown = " ".join(output.getvalue().lower().split())
    if status != 0 or not shown.startswith("usage: ") or re.search(r"\\(default [^()]*\\) \\(default", shown):
        print(module)
"""


def test_help_option_prints_help_and_has_no_side_effect() -> None:
    """All run in one process, so that shared imports happen once."""
    done = run(sys.executable, "-W", "ignore", "-c", HELP, *sorted(commands()))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def computed_s(pid: int) -> float:
    """The seconds that a process has computed; 0 once it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def test_interrupt_ends_a_command_with_worker_processes(tmp_path: Path) -> None:
    """A terminal signals all processes. (Other output is about the runs.)"""
    command = ["env", "--default-signal=INT", sys.executable, "-m", "serene.experiments.correctness.schedules"]
    running = Marked([*command, "--runs", "1000000", "--processes", "2", "--pair", "bsp,asp"], tmp_path / "output")
    first = running.process.pid
    try:
        until(lambda: sum(computed_s(each) > 1 for each in running.alive() if each != first) > 1, "two play runs")
        os.killpg(first, signal.SIGINT)
        assert running.wait(100) == 130
        assert "Traceback" not in running.output
        until(lambda: not running.alive(), "none of them is left")
    finally:
        running.end()


def test_command_continues_if_interrupts_are_ignored() -> None:
    ended = interrupted("serene.switch_command", ignored=True)
    assert ended.stdout == "serene.switch_command 2\n"
    assert ended.stderr.startswith("error: give a program"), "it has come as far as its command line"


@pytest.mark.parametrize("command", ["serenectl", "serene-netstudy", "serene-shim", "serene-switch"])
def test_installed_command_prints_its_version_beside_a_foreign_google_package(command: str, tmp_path: Path) -> None:
    """The package is named google, like the one that contains protobuf's modules."""
    (tmp_path / "google").mkdir()
    (tmp_path / "google" / "__init__.py").touch()
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = run(Path(sys.executable).with_name(command), "--version", environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[-1] == version()


PROGRAM = """
import os, signal, sys, time
from serene.process import interrupts
from serene.process.interrupts import allowed, coming, ended, held, time_limit

def send(*names):
    for name in names:
        os.kill(os.getpid(), getattr(signal, f"SIG{name}"))

def say(what):
    try:
        print(what, flush=True)
    except OSError:
        sys.exit(77)

def main():
"""


def played(body: str, ignored: Sequence[str]) -> tuple[int, list[str]]:
    """Returns exit status and output of a program with this ``main``; standard error must stay empty."""
    how = ["env", "--default-signal=INT,TERM,HUP", *(f"--ignore-signal={name}" for name in ignored)]
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    code = f"{PROGRAM}{lines}\nstatus = ended(main)\nsay('end')\nsys.exit(status)"
    ended = run(*how, sys.executable, "-c", code)
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.split()


CLEARED = """
try:
    say("works"); send("{name}"); say("on")
finally:
    say("clears")
    send("INT", "TERM", "HUP", "INT")
    say("cleared")
"""
DEFERRED = """
try:
    with held():
        with held():
            send("INT"); say("one")
        say("two")
        try:
            with allowed():
                say("never")
        finally:
            say("three")
finally:
    send("HUP"); say("four")
"""
SECOND = """
with held():
    try:
        with allowed():
            send("TERM")
    except KeyboardInterrupt:
        try:
            with allowed():
                send("TERM", "HUP"); say("waits")
                send("INT"); say("never")
        finally:
            send("INT"); say("cleared")
"""
SWALLOWED = """
class Destroyed:
    def __del__(self):
        try:
            send("TERM")
        finally:
            say("dropped")

Destroyed()
while True:
    time.sleep(1)
"""
CAUGHT = """
with time_limit({limit}):
    try:
        send("TERM")
    except BaseException:
        time.sleep({sleeps})
        {then}
say("never")
"""
RESTORED = """
def last(*restored):
    signal.signal = restore
    send("TERM", "INT", "HUP")
    restore(*restored)

restore, signal.signal = signal.signal, last
"""
PENDING = "with held():\n    {}\n    heard = coming()\n    {}\n    say(len(os.read(heard, 1)))\nsay('never')"
# What a program does; the signal by which it ends; what it prints before its end; the signals that it ignores: SIGHUP
# after nohup, SIGINT in a shell's background jobs.
PLAYED = {
    **{
        f"only the first signal raises, {name}": (CLEARED.format(name=name), name, "works clears cleared", "")
        for name in ("INT", "TERM", "HUP")
    },
    "held blocks defer signals": (DEFERRED, "INT", "one two three four", ""),
    "a held signal is raised at the block's end": ("with held():\n    send('TERM'); say('one')\nsay('never')",
                                                   "TERM", "one", ""),
    "a second Ctrl-C interrupts an allowed block": (SECOND, "INT", "waits cleared", ""),
    **{
        f"SIG{name} stays ignored": (f"send('{name}'); say('on'); send('TERM')", "TERM", "on", name)
        for name in ("INT", "HUP")
    },
    "a signal that a destructor swallows is raised again": (SWALLOWED, "TERM", "dropped", ""),
    **{
        f"a signal that foreign code catches is raised again, {case}": (CAUGHT.format(**how), "TERM", "", "")
        for case, how in {
            "in time": {"limit": 60, "sleeps": 0, "then": "pass"},
            "as another error": {"limit": 60, "sleeps": 0, "then": "raise ValueError"},
            "too late": {"limit": 0.1, "sleeps": 1, "then": "pass"},
        }.items()
    },
    "a signal while handlers are restored does nothing": (RESTORED.strip(), "", "", ""),
    "a held block reads of a signal before": (PENDING.format("send('TERM')", ""), "TERM", "1", ""),
    "a held block reads of a signal after": (PENDING.format("", "send('TERM')"), "TERM", "1", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", PLAYED)
def test_signal_ends_a_command_after_its_clean_up(case: str) -> None:
    body, name, words, ignored = PLAYED[case]
    status = 128 + getattr(signal, f"SIG{name}") if name else 0
    assert played(body, ignored.split()) == (status, [*words.split(), "end"])


def test_only_the_interrupts_module_raises_in_signal_handlers() -> None:
    """Other modules leave signals alone, ignore them or pass them on."""
    passed_on = ("topologies/isolation.py", "serene/torch/termination.py")
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.relative_to(ROOT).as_posix() in ("serene/process/interrupts.py", *passed_on):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "signal.signal":
                    assert ast.unparse(node.args[1]) in ("signal.SIG_DFL", "signal.SIG_IGN"), path


def test_command_that_loses_its_terminal_still_cleans_up(tmp_path: Path) -> None:
    """Printing fails without a terminal, which must not end the clean-up."""
    cleared = tmp_path / "cleared"
    body = f"try:\n    say('on'); time.sleep(100)\nfinally:\n    say('lost'); open({str(cleared)!r}, 'w').close()"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    child, terminal = pty.fork()
    if child == 0:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-c", f"{PROGRAM}{lines}\nsys.exit(ended(main))"])
    assert os.read(terminal, 100).split() == [b"on"]
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP
    assert cleared.exists()
