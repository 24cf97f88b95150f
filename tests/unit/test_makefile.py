"""make's settings: unknown ones are refused with a suggestion, known ones reach the programs. Set-up uses the Python
that the user names, make's targets use the environment's, and each package has one pin for every Python."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from serene.experiments.run.settings import Given
from tests.commands import ROOT, output, run
from tests.support.warm import warm_python

TARGETS = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
TAKEN = ["WORKERS=8", "FULL=1", "PACKETS=3", "TARGET=embedded"]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `make -n`: returns its output and status."""
    of_an_outer_make = dict.fromkeys(("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"))
    return run("make", "-n", *arguments, environment={**of_an_outer_make, **environment})


def test_make_refuses_an_unknown_setting_for_every_target() -> None:
    """Several targets share the same check."""
    refused = make(*TARGETS, "STALENES=3")
    assert refused.returncode == 2
    assert f"STALENES: no setting of make {TARGETS[0]}" in refused.stderr
    assert refused.stdout == ""


def test_make_accepts_settings_shown_in_pages() -> None:
    given: dict[str, set[str]] = {}
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        for target, settings in re.findall(r"\bmake ([a-z][\w-]*)((?: [A-Z_]+=\S+)+)", page.read_text()):
            given.setdefault(target, set()).update(re.findall(r" ([A-Z_]+)=", settings))
    assert given.keys() <= set(TARGETS)
    assert {"run-mininet", "compare", "bench"} <= given.keys()
    for target, names in given.items():
        done = make(target, *(f"{name}=1" for name in sorted(names)))
        assert "no setting" not in done.stderr, done.stderr


def test_make_accepts_common_variables_for_every_target() -> None:
    done = make(*TARGETS, "PYTHON=python3", "CC=gcc", "V=1", *TAKEN)
    assert done.returncode == 0, done.stderr
    assert "no setting" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run-mininet", "WORKER=4"], "did you mean WORKERS?"),
        (["run-mininet", "workers=4"], "did you mean WORKERS?"),
        (["run-local", "STALENESS=3"], "did you mean STRATEGY=ssp:3?"),
        (["run-local", "STALENESS=3"], "which takes BATCH_SIZE, COMPUTE_MS, DATASET,"),
        (["test", "WORKERS=8"], "WORKERS: no setting of make test, which takes TORCH"),
        (["swaps", "STEPS=8"], "STEPS: no setting of make swaps, which takes OUT, RACKS, TARGET, WORKERS"),
        (["WORKERS=8"], "WORKERS: no setting of make help"),
        (["lint", "it's=8"], "it's: no setting of make lint"),
    ],
)
def test_unknown_make_setting_error_suggests_the_right_one(arguments: list[str], message: str) -> None:
    refused = make(*arguments)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_make_passes_settings_to_the_command() -> None:
    done = make("run-local", "STRATEGY=mixed:1,2", "WORKERS=8")
    assert "--strategy 'mixed:1,2'" in done.stdout and "--workers '8'" in done.stdout
    assert done.stderr == "", "nothing to warn about"


def test_make_help_shows_the_defaults_of_the_program() -> None:
    text = make("help").stdout.partition("A run's settings and their defaults:")[2]
    named = {name.lower(): default for name, default in re.findall(r"\b([A-Z_]+)=(\w+)", text) if name != "OUT"}
    assert len(named) > 10
    assert named == {name: str(Given.model_fields[name].default) for name in named}


def test_make_schedules_runs_one_switch_unless_racks_are_given() -> None:
    alone = make("schedules").stdout
    assert "--racks" not in alone and "--first" not in alone
    assert make("schedules", "RACKS=1").stdout == alone
    part = make("schedules", "RACKS=3", "RUNS=1000", "FIRST=2000", "OUT=part.json").stdout
    words = shlex.split(part.replace("\\\n", " ").splitlines()[-1])
    assert words[3:] == ["--racks", "3", "--runs", "1000", "--first", "2000", "--out", "part.json"]


def test_make_ignores_environment_settings_with_a_warning() -> None:
    done = make("run-local", WORKERS="8")
    assert done.returncode == 0 and "--workers" not in done.stdout
    assert "WORKERS: in the environment, which is ignored" in done.stderr
    assert make("lint", WORKERS="8").stderr == "", "where it would mean nothing anyway"


MODULES = re.findall(r"^\t@\$\(VENV_PYTHON\) -m ([a-z_.]+)", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_options_passed_by_make_exist_in_the_programs() -> None:
    """Compares `make -n` for every target with each program's own help."""
    targets = [target for target in TARGETS if target not in ("help", "clean", "shell")]
    commands = make(*targets, "FULL=1", "OUT=here").stdout.replace("\\\n", " ").splitlines()
    programs = [line.split(" -m ", 1)[1].split() for line in commands if " -m " in line]
    assert {words[0] for words in programs} >= set(MODULES)
    passed_on: dict[str, set[str]] = {}
    for module, *words in programs:
        passed_on.setdefault(module, set()).update(word for word in words if word.startswith("--"))
    for module, options in passed_on.items():
        if options:
            shown = output(warm_python(), "-m", module, "--help")
            assert options <= set(re.findall(r"--[a-z][\w-]*", shown)), f"{module} has no such option"


@pytest.mark.parametrize(
    "given", ["a b", "it's", "$(touch here)", "`touch here`", "$$HOME", "a; touch here", "'; touch here; '"]
)
def test_make_passes_an_output_path_unchanged(given: str) -> None:
    targets = ["run-local", "run-mininet", "reproduce", "network-study", "swaps", "schedules"]
    done = make(*targets, f"OUT={given}")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "nothing is in the environment, and nothing is to be warned of"
    commands = [shlex.split(line) for line in done.stdout.replace("\\\n", " ").splitlines() if "--out" in line]
    assert len(commands) == len(targets)
    assert all(words[words.index("--out") + 1] == given for words in commands)


# -- set-up -----------------------------------------------------------------------------------------------------------


def test_make_targets_run_venv_python_despite_python_setting() -> None:
    targets = ["run-mininet", "run-local", "test", "bench"]
    for done in (make(*targets, PYTHON="/nowhere/python"), make(*targets, "PYTHON=/nowhere/python")):
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(".venv/bin/python -m ") == len(targets) and "/nowhere/python" not in done.stdout


def test_make_setup_exports_the_python_setting() -> None:
    """For make, a variable on the command line replaces one of the environment."""
    rule = "--eval=setting: ; @printenv PYTHON"
    for arguments, environment in ((["PYTHON=here"], {}), ([], {"PYTHON": "here"})):
        command = ["make", "--no-print-directory", rule, "setting", *arguments]
        assert output(*command, environment=environment) == "here\n"


OLD = 'case "$2" in *print*) echo 3.9;; *) exit 1;; esac'  # what set-up asks for, and whether that is enough


@pytest.mark.parametrize(
    ("script", "message"), [(None, "is no Python"), ("exit 0", "is no Python"), (OLD, "is Python 3.9")]
)
def test_setup_refuses_an_unusable_interpreter_before_installing(
    script: str | None, message: str, tmp_path: Path
) -> None:
    python = tmp_path / "a python"
    if script is not None:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    done = run("scripts/setup", environment={"PYTHON": str(python)})
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error: PYTHON={python} {message}: expected Python 3.10 or later" in done.stderr


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_constraints_pin_each_package_once_for_every_python(version: str) -> None:
    lines = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    pins = [Requirement(line) for line in lines if line]
    there = [pin.name for pin in pins if pin.marker is None or pin.marker.evaluate({"python_version": version})]
    assert Counter(there) == Counter({pin.name for pin in pins})
