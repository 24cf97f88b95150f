"""The study's cells, which are trainings: how torchrun runs one, and where its result is kept."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serene import outputs
from serene.errors import SereneError
from serene.experiments.pytorch_study.mirrored import BACKEND as MIRRORED
from serene.spawn import module
from serene.torch.opening import PRECISION

ROOT = Path(__file__).resolve().parents[2]
SERENE, GLOO = "serene", "gloo"
BACKENDS = (SERENE, MIRRORED, GLOO)
EXAMPLES = ("ddp", "sharded", "restarts")
TASKS = ("resnet", "transformer")
MAGNITUDES = "magnitudes"
PATIENCE_S = 1800.0  # for one training; one that takes longer hangs
UNDER_WAY = ".under-way-"  # prefix of the folder of a training that is not done
VERSION = 1  # of results; to be raised when earlier ones are wrong


class NotTrained(SereneError):
    """A training failed, or its result cannot be read; the message says why."""


@dataclass(frozen=True)
class Cell:
    """One training. what: one of EXAMPLES or TASKS, or MAGNITUDES. backend: one of BACKENDS. die_at: the step before
    which a rank of ``restarts`` kills itself; 0: none does. bits: the gradients' precision in the switch."""

    what: str
    backend: str
    optimiser: str = "sgd"
    seed: int = 1
    steps: int = 200
    ranks: int = 4
    die_at: int = 0
    bits: int = 32

    def __str__(self) -> str:
        killed = f"-killed-at-{self.die_at}" if self.die_at else ""
        bits = f"-{self.bits}-bits" if self.bits != 32 else ""
        return f"{self.what}-{self.optimiser}-{self.backend}-{self.ranks}x{self.steps}-seed-{self.seed}{killed}{bits}"

    def command(self, folder: Path) -> list[str]:
        """The command line. folder: for its files; the result will be ``losses.json`` there."""
        command = module("torch.distributed.run", "--nproc-per-node", str(self.ranks))
        command += ["--max-restarts", "1" if self.die_at else "0"]
        command += ["--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
        if self.backend == MIRRORED:
            command += ["-m", "serene.experiments.pytorch_study.mirrored"]
        if self.what in EXAMPLES:
            command += [f"examples/{self.what}.py", "--optimiser", self.optimiser]
            if self.what == "restarts":
                command += ["--checkpoint", str(folder / "checkpoint.pt")]
            if self.die_at:
                command += ["--die-at", str(self.die_at)]
        elif self.what == MAGNITUDES:
            command += ["-m", "serene.experiments.pytorch_study.magnitudes", "--seed", str(self.seed)]
        else:
            command += [
                "-m",
                "serene.experiments.pytorch_study.training",
                "--task",
                self.what,
                "--seed",
                str(self.seed),
            ]
        if self.what != MAGNITUDES:
            command += ["--steps", str(self.steps)]
        return [*command, "--backend", self.backend, "--losses", str(folder / "losses.json")]


class Results:
    """A directory with a file for each training that is done."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def tidy(self) -> None:
        """Removes the folders of trainings that were killed."""
        for path in self.directory.glob(f"{UNDER_WAY}*"):
            shutil.rmtree(path, ignore_errors=True)

    def path(self, cell: Cell) -> Path:
        """The file of a cell's result."""
        return self.directory / f"{cell}.json"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells without a result of this VERSION, each once. Raises NotTrained."""
        return [cell for cell in dict.fromkeys(cells) if not self._there(cell)]

    def _there(self, cell: Cell) -> bool:
        return self.path(cell).exists() and self._read(cell)["version"] == VERSION

    def _read(self, cell: Cell) -> dict[str, Any]:
        try:
            found = json.loads(self.path(cell).read_text())
            found["version"], found["about"], found["result"]
        except (ValueError, KeyError, TypeError, OSError):
            raise NotTrained(f"{self.path(cell)} is no result of this study; remove the file") from None
        return dict(found)

    def result(self, cell: Cell) -> Any:
        """What a training wrote: an example the losses of all steps, others what their modules say. Raises
        NotTrained."""
        return self._read(cell)["result"]

    def about(self, cell: Cell) -> dict[str, str]:
        """The machine and the versions that a training ran with. Raises NotTrained."""
        return dict(self._read(cell)["about"])

    def keep(self, cell: Cell, result: Any) -> None:
        """Writes a training's result. Raises CannotWrite."""
        told = {"version": VERSION, "cell": asdict(cell), "about": about(), "result": result}
        outputs.write_text(self.path(cell), json.dumps(told) + "\n")


def train_in(directory: Path, cell: Cell) -> Any:
    """Runs one training and returns its result. Its files are in the directory meanwhile. The environment says where
    the switch's controller is. Raises NotTrained."""
    with tempfile.TemporaryDirectory(prefix=UNDER_WAY, dir=directory) as name:
        folder = Path(name)
        # If this process dies, torchrun gets SIGTERM, and ends its ranks.
        command = ["setpriv", "--pdeathsig", "TERM", "--", *cell.command(folder)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", PRECISION: str(cell.bits)}
        with (folder / "output").open("w+") as output:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
            try:
                status: int | None = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                status = None
                process.send_signal(signal.SIGTERM)
                process.wait()
            output.seek(0)
            said = output.read()
        if status != 0:
            how = f"did not end within {PATIENCE_S:g} s" if status is None else f"ended with status {status}"
            raise NotTrained(f"{how}: {_reason(said)}")
        return json.loads((folder / "losses.json").read_text())


def _reason(said: str) -> str:
    """The first error that a rank printed: later ones may be its consequences, and torchrun prints much after them."""
    errors = re.findall(r"^(?:\[rank\d+\]: ?)?(\w[\w.]*(?:Error|Failed|NotOpened|Exception)\b.*)$", said, re.MULTILINE)
    own = [error for error in errors if "ChildFailedError" not in error]
    return own[0] if own else said[-500:]


def about() -> dict[str, str]:
    """The machine and the versions that a result depends on."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "machine": f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "system": f"Linux {platform.release()}, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy")),
        "date": date.today().isoformat(),
    }
