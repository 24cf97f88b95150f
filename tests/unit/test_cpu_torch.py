"""The index from which set-up installs PyTorch: real pip and wheels, with indexes on loopback in place of the public
ones."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pip
import pytest

from tests.commands import output, run
from tests.ports import some_port
from tests.runs import ROOT

PUBLIC = "https://download.pytorch.org/whl/cpu"
WANTED = next(
    line.removeprefix("torch==")
    for line in (ROOT / "constraints.txt").read_text().split()
    if line.startswith("torch==")
)


class Index:
    """A package index on loopback. asked: how many requests it had."""

    def __init__(self, folder: Path) -> None:
        outer, self.asked = self, 0

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments: object) -> None:
                super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

            def log_message(self, format: str, *arguments: object) -> None:
                outer.asked += 1

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever).start()


def put_wheel(folder: Path, version: str, tag: str = "py3-none-any") -> None:
    """A wheel named torch that has nothing in it, at its place in an index."""
    (folder / "torch").mkdir(exist_ok=True)
    about = f"torch-{version}.dist-info"
    files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / "torch" / f"torch-{version}-{tag}.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    folder = tmp_path / "index"
    folder.mkdir()
    index = Index(folder)
    yield index
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter with pip, this one's, and without PyTorch."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "pip").symlink_to(Path(pip.__file__).parent)
    return str(environment / "bin" / "python")


def set_up(python: str, public: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs scripts/cpu-torch, with ``public`` in the place of PyTorch's own index."""
    script = (ROOT / "scripts" / "cpu-torch").read_text()
    assert f"={PUBLIC}\n" in script
    copy = Path(python).parents[1] / "scripts" / "cpu-torch"
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(script.replace(PUBLIC, public))
    (copy.parents[1] / "constraints.txt").write_text((ROOT / "constraints.txt").read_text())
    unset = {name: None for name in os.environ if name.startswith(("PIP_", "TORCH_"))}
    return run("bash", copy, python, environment={**unset, "PIP_CONFIG_FILE": os.devnull, **environment})


def installed(python: str) -> str | None:
    asked = "import importlib.metadata as all; print(*[each.version for each in all.distributions(name='torch')])"
    return output(python, "-c", asked).strip() or None


def test_setup_installs_cpu_torch_from_pytorch_index_once(python: str, index: Index, tmp_path: Path) -> None:
    for version in ("2.12.0+cpu", f"{WANTED}+cpu", "99.0+cpu"):
        put_wheel(tmp_path / "index", version)
    done = set_up(python, index.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"setup: PyTorch {WANTED}, the CPU build, from {index.url} (some 200 MB to fetch)\n"
    assert installed(python) == f"{WANTED}+cpu"
    asked = index.asked
    again = set_up(python, index.url, TORCH_INDEX="pip")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert index.asked == asked


def test_setup_uses_pip_index_if_pytorch_index_has_no_wheel(python: str, index: Index, tmp_path: Path) -> None:
    put_wheel(tmp_path / "index", "2.12.0+cpu")
    put_wheel(tmp_path / "index", f"{WANTED}+cpu", "cp27-cp27m-linux_x86_64")
    # What pip itself would find is no answer of PyTorch's index.
    put_wheel(tmp_path, WANTED)
    for public in (index.url, f"http://127.0.0.1:{some_port()}"):
        done = set_up(python, public, PIP_FIND_LINKS=str(tmp_path / "torch"))
        assert (done.returncode, done.stderr) == (0, "")
        assert f"setup: {public} has no PyTorch {WANTED} for this Python, or does not answer\n" in done.stdout
        assert f"PyTorch {WANTED} from pip's own index" in done.stdout and "2.7 GB to fetch" in done.stdout
        assert installed(python) is None
    assert index.asked > 0


def test_setup_takes_the_torch_index_that_the_user_names(python: str, index: Index, tmp_path: Path) -> None:
    put_wheel(tmp_path / "index", f"{WANTED}+own")
    nowhere = f"http://127.0.0.1:{some_port()}"
    done = set_up(python, index.url, TORCH_INDEX="pip")
    assert "from pip's own index" in done.stdout and index.asked == 0
    done = set_up(python, index.url, TORCH_INDEX=nowhere, PIP_RETRIES="0")
    assert done.returncode != 0 and "No matching distribution" in done.stderr, "a choice is not replaced by another"
    done = set_up(python, nowhere, TORCH_INDEX=index.url)
    assert (done.returncode, done.stdout) == (0, f"setup: PyTorch {WANTED} from TORCH_INDEX={index.url}\n")
    assert installed(python) == f"{WANTED}+own"
