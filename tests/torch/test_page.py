"""Programs and commands of docs/pytorch.md, word for word."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT, output

PAGE = (ROOT / "docs/pytorch.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CONSOLES = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS)
def test_pytorch_page_programs_compile_and_import(program: str) -> None:
    compile(program, "docs/pytorch.md", "exec")
    exec("\n".join(line for line in program.splitlines() if line.startswith(("import ", "from "))), {})


@pytest.mark.parametrize(("page", "example"), [("pytorch", "shared"), ("elastic", "elastic")])
def test_pytorch_page_shows_the_shipped_example(page: str, example: str) -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(), re.DOTALL)
    assert programs[0].strip() in (ROOT / f"examples/{example}.py").read_text()


def in_a_network_of_its_own() -> list[str]:
    """The page's commands use the default ports, so they run in a network namespace."""
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and ip, to run beside other switches")
    options = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]
    return [unshare, *options, "bash", "-euc", 'ip link set lo up; eval "$0"']


def test_commands_of_the_pytorch_page_run_on_one_machine(embedded: None, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(next(program for program in PROGRAMS if "init_process_group(" in program))
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    console = next(console for console in CONSOLES if "serenectl up --local" in console)
    commands = [line.removeprefix("$ ") for line in console.splitlines() if line.startswith("$ ")]
    assert [command.split()[0].rpartition("/")[2] for command in commands][0::3] == ["serenectl", "serenectl"]
    given = {name: None for name in os.environ if name.startswith("SERENE_")} | {"XDG_RUNTIME_DIR": str(tmp_path)}
    shown = output(*in_a_network_of_its_own(), "\n".join(commands), folder=tmp_path, environment=given)
    assert "\n".join(console.splitlines()[1:4]) in shown  # the program, the ports and the room
    result = r"rank (\d): loss \d\.\d+, sum of the parameters (-?\d+\.\d{3})"
    assert sorted(re.findall(result, shown)) == sorted(re.findall(result, console))
    assert "job 0: finished, BSP" in shown
    assert shown.rstrip().endswith("controller at http://127.0.0.1:8559 stopped; the switch stopped, too")
