"""The study's cells, which are trainings, and where their results are kept."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serene import outputs
from serene.errors import SereneError

SHARED, DDP, POST_LOCAL = "shared training", "DDP, gloo", "PostLocalSGD, gloo"
VERSION = 2  # of results; to be raised when earlier ones are wrong


class NotTrained(SereneError):
    """A training failed, or its result cannot be read; the message says why."""


@dataclass(frozen=True)
class Cell:
    """One training. task: of `tasks.TASKS`. optimizer: of `training.OPTIMIZERS`. way: SHARED, DDP or POST_LOCAL.
    strategy: of shared training, as `serene.strategy.parse` takes it; of the others ``bsp``. every: steps of the
    worker's own optimizer from one exchange to the next. stragglers: of `training.STRAGGLERS`."""

    task: str
    optimizer: str
    way: str
    strategy: str = "bsp"
    every: int = 1
    stragglers: str = "none"
    seed: int = 1
    steps: int = 128
    workers: int = 4

    def __str__(self) -> str:
        said = (
            f"{self.task} {self.optimizer} {self.way} {self.strategy} every {self.every} stragglers {self.stragglers}"
        )
        return re.sub(r"[^a-zA-Z0-9]+", "-", f"{said} {self.workers}x{self.steps} seed {self.seed}")


class Results:
    """A directory with a file for each training that is done."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, cell: Cell) -> Path:
        """The file of a cell's result."""
        return self.directory / f"{cell}.json"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells without a result of this VERSION, each once. Raises NotTrained."""
        return [cell for cell in dict.fromkeys(cells) if self.result(cell) is None]

    def result(self, cell: Cell) -> dict[str, Any] | None:
        """What a training has measured (`training.train`), with ``date`` and ``load``; None where it was not run.
        Raises NotTrained."""
        path = self.path(cell)
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text())
            return dict(found["result"]) if found["version"] == VERSION else None
        except (ValueError, KeyError, TypeError, OSError):
            raise NotTrained(f"{path} is no result of this study; remove the file") from None

    def keep(self, cell: Cell, result: dict[str, Any]) -> None:
        """Writes a training's result. Raises CannotWrite."""
        told = {"version": VERSION, "cell": asdict(cell), "about": about(), "result": result}
        outputs.write_text(self.path(cell), json.dumps(told) + "\n")


def about() -> dict[str, str]:
    """The machine and the versions that a result depends on."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "machine": f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "system": f"Linux {platform.release()}, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy")),
        "date": date.today().isoformat(),
    }
