"""The wheel, installed outside the repository: its contents, an operator's needs, and PyTorch's process group."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from tests.controller.processes import ROOT
from tests.ports import some_ports

OFFLINE = re.compile(r"No matching distribution|Could not find a version|Connection|Temporary failure|Read timed out")
PARTS = ("controller", "experiments", "topologies", "workers")


def pip(*arguments: str) -> str:
    """Returns pip's output. Skips the test where packages cannot be downloaded."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip(f"pip cannot get what the wheel needs: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def tracked(*patterns: str) -> list[str]:
    """The repository's files."""
    command = ["git", "ls-files", "-z", *patterns]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"  # setuptools writes beside them
    for name in tracked():
        if (ROOT / name).exists():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, sources / name, follow_symlinks=False)
    for part in PARTS:  # as an archive leaves them that knows no links
        (sources / "serene" / part).unlink()
        (sources / "serene" / part).write_text(f"../{part}")
    pip("wheel", "--no-deps", "-w", str(folder), str(sources))
    return next(folder.glob("serene_p4-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands' folder of an environment that has only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    # Without pip, which takes seconds to install; modules are compiled when they are imported.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    constraints = str(ROOT / "constraints.txt")
    pip(f"--python={folder / 'bin' / 'python'}", "install", "--no-compile", "-c", constraints, str(wheel))
    return folder / "bin"


def test_wheel_contains_exactly_the_tracked_modules(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    metadata = wheel.name.partition("-py3")[0] + ".dist-info"
    assert {name.split("/")[0] for name in names} == {"serene", metadata}, "a name that others' modules may have"
    checkout = {name for part in PARTS for name in tracked(f"{part}/**.py")}
    assert {f"serene/{name}" for name in checkout} | set(tracked("serene/**.py")) == {
        name for name in names if name.endswith(".py")
    }
    for needed in (
        "p4/serene.json",
        "p4/serene_jumbo.p4info.txtpb",
        "client/compiled/fastpath.c",
        "client/compiled/blocks.c",
        "client/compiled/pool.c",
    ):
        assert f"serene/{needed}" in names
    assert {path.name for path in (ROOT / "controller" / "page").iterdir() if path.is_file()} <= {
        name.removeprefix("serene/controller/page/") for name in names
    }


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SERENE_", "PYTHON"))}
    return {**kept, "XDG_RUNTIME_DIR": str(folder), "OMP_NUM_THREADS": "1"}


def run(folder: Path, *command: object, **more: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**environment(folder), **more},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_wheel_without_extras_installs_no_pytorch(installed: Path, tmp_path: Path) -> None:
    there = pip(f"--python={installed / 'python'}", "list", "--format=freeze").lower()
    assert "\ngrpcio==" in there
    for name in ("torch", "scikit-learn", "matplotlib", "scapy"):
        assert f"\n{name}==" not in there
    assert "usage: serene-switch" in run(tmp_path, installed / "serene-switch", "--help")
    fast = "from serene.client.compiled.fastpath import library; print(library() is not None)"
    if shutil.which("cc"):
        assert run(tmp_path, installed / "python", "-c", fast) == "True\n"


def test_installed_wheel_trains_with_the_process_group(installed: Path, tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("the embedded switch needs a C compiler")
    grpc, http = some_ports(2)
    controller = f"http://127.0.0.1:{http}"
    # The PyTorch of this environment, behind everything that the other one has: a second copy would take long to get.
    site = next((installed.parent / "lib").glob("python*/site-packages"))
    (site / "pytorch.pth").write_text(str(Path(torch.__file__).parents[1]) + "\n")
    where = run(tmp_path, installed / "python", "-c", "import serene.torch; print(serene.torch.__file__)")
    assert where.startswith(str(site))
    others = tmp_path / "others"
    for name in (*PARTS, "serene"):  # somebody's own modules, which `serenectl` must not run
        (others / name).mkdir(parents=True)
        (others / name / "__init__.py").write_text("raise SystemExit('the wrong folder')\n")
    up = ["up", "--local", "--switch", f"127.0.0.1:{grpc}", "--http", f"127.0.0.1:{http}"]
    assert "connected" in run(others, installed / "serenectl", *up)
    try:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        output = run(
            tmp_path,
            installed / "python",
            *torchrun,
            shutil.copy(ROOT / "examples" / "ddp.py", tmp_path),
            "--steps",
            "50",
            SERENE_CONTROLLER=controller,
        )
        assert "step 50: loss " in output
        assert "job 0: finished" in run(tmp_path, installed / "serenectl", "status", SERENE_CONTROLLER=controller)
    finally:
        run(others, installed / "serenectl", "down", SERENE_CONTROLLER=controller)
