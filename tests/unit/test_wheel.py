"""The wheel, installed outside the repository: its contents, an operator's needs, and PyTorch's process group."""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from importlib import metadata
from importlib.metadata import Distribution
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement

from tests import commands
from tests.commands import ROOT, output
from tests.ports import some_ports

OFFLINE = re.compile(r"No matching distribution|Could not find a version|Connection|Temporary failure|Read timed out")
PARTS = ("controller", "experiments", "topologies", "workers")


def pip(*arguments: str) -> str:
    """Returns pip's output. Skips the test where packages cannot be downloaded."""
    done = commands.run(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments)
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip(f"pip cannot get what the wheel needs: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def tracked(*patterns: str) -> list[str]:
    """The repository's files."""
    return output("git", "ls-files", "-z", *patterns).split("\0")[:-1]


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


def required_by(distribution: Distribution) -> dict[str, Distribution]:
    """What it requires without extras, and what that requires, as they are installed here."""
    found: dict[str, Distribution] = {}
    todo, seen = [(distribution, "")], set[tuple[str, str]]()
    while todo:
        one, extra = todo.pop()
        for needed in map(Requirement, one.requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                found[needed.name] = metadata.distribution(needed.name)
                new = {(needed.name, each) for each in ("", *needed.extras)} - seen
                todo += [(found[needed.name], each) for _, each in new]
                seen |= new
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands' folder of an environment that has only the wheel and what it requires. pip would take a minute to
    install what is installed here already."""
    folder = tmp_path_factory.mktemp("environment")
    output(sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    pip(f"--python={folder / 'bin' / 'python'}", "install", "--no-deps", "--no-compile", str(wheel))
    (ours,) = metadata.distributions(name="serene-p4", path=[str(site)])
    files = {file: file.locate() for each in required_by(ours).values() for file in each.files or ()}
    for file, here in files.items():
        if ".." not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).symlink_to(here)
    return folder / "bin"


def test_wheel_contains_exactly_the_tracked_modules(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    about = wheel.name.partition("-py3")[0] + ".dist-info"
    assert {name.split("/")[0] for name in names} == {"serene", about}, "a name that others' modules may have"
    checkout = {name for part in PARTS for name in tracked(f"{part}/**.py")}
    assert {f"serene/{name}" for name in checkout} | set(tracked("serene/**.py")) == {
        name for name in names if name.endswith(".py")
    }
    others = {path for path in tracked("serene/**.c", "serene/**.h", "controller/page/*.*") if not path.endswith(".py")}
    others |= {"serene/p4/serene.json", "serene/p4/serene_jumbo.p4info.txtpb"}
    assert {path if path.startswith("serene/") else f"serene/{path}" for path in others} <= set(names)


def run(folder: Path, *command: object, **given: str) -> str:
    """What a command prints in the folder, without this environment's settings."""
    unset = {name: None for name in os.environ if name.startswith(("SERENE_", "PYTHON"))}
    environment = {**unset, "XDG_RUNTIME_DIR": str(folder), "OMP_NUM_THREADS": "1", **given}
    return output(*command, folder=folder, environment=environment)


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
        program = [shutil.copy(ROOT / "examples" / "ddp.py", tmp_path), "--steps", "50"]
        shown = run(tmp_path, installed / "python", *torchrun, *program, SERENE_CONTROLLER=controller)
        assert "step 50: loss " in shown
        assert "job 0: finished" in run(tmp_path, installed / "serenectl", "status", SERENE_CONTROLLER=controller)
    finally:
        run(others, installed / "serenectl", "down", SERENE_CONTROLLER=controller)
