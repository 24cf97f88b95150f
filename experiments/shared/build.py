"""Identifies the version of Serene that runs here, so that a study does not mix results of different versions."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from serene.distribution import PACKAGE, version
from serene.program import BUILD, TREE, VARIANTS

PARTS = ("controller", "experiments", "topologies", "workers")  # the rest of the package is the library
ENDINGS = ("*.py", "*.c", "*.h")


@lru_cache(maxsize=1)
def this_build() -> str:
    """The build that this process runs, by the files as they are on the disk now: the package's version, and digests of
    the compiled P4 programs and of the Python and C files."""
    try:
        known = version()
    except PackageNotFoundError:  # run from the sources, without being installed
        known = "unknown"
    return f"version {known}, programs {digest(programs())}, sources {digest(sources(*PARTS))}"


def programs() -> list[Path]:
    """The compiled programs."""
    return [BUILD / f"{name}.json" for name in (*VARIANTS, *TREE)]


def sources(*parts: str) -> list[Path]:
    """The Python and C files of the library, and of these parts of the package or folders in them. In a checkout the
    parts are links, which are not followed from above; in a wheel they are folders."""
    library = [path for path in _below(PACKAGE) if path.relative_to(PACKAGE).parts[0] not in PARTS]
    return sorted([*library, *(path for part in parts for path in _below(PACKAGE / part))])


def _below(folder: Path) -> list[Path]:
    return [path for ending in ENDINGS for path in folder.rglob(ending)]


def commit() -> str | None:
    """The checkout's commit, 40 hex digits, with ``-dirty`` after them if files were changed; None outside a
    checkout."""
    root = PACKAGE.parent
    # safe.directory: under sudo the checkout belongs to another user, and git would refuse to read it.
    git = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
    command = [*git, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 and (root / ".git").exists() else None


def digest(files: Iterable[Path]) -> str:
    """16 hex digits of the files' contents and of their names, which do not depend on where Serene is installed."""
    whole = hashlib.sha256()
    for path in files:
        name = path.name if path.parent == BUILD else path.relative_to(PACKAGE)
        whole.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:16]
