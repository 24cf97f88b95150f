"""Identifies the version of Serene that runs here, so that a study does not mix results of different versions."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from serene.program import BUILD, TREE, VARIANTS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("serene", "controller", "workers", "topologies", "experiments")
ENDINGS = ("*.py", "*.c", "*.h")


@dataclass(frozen=True)
class Build:
    """version: the package's. programs, sources: hashes, 16 hex digits, of the compiled P4 programs and of the Python
    and C files."""

    version: str
    programs: str
    sources: str

    def differences(self, other: Build) -> str:
        """What differs, with both values, this one's first; empty if nothing does."""
        pairs = [(each.name, getattr(self, each.name), getattr(other, each.name)) for each in fields(self)]
        return ", ".join(f"{name} {here} and {there}" for name, here, there in pairs if here != there)


@lru_cache(maxsize=1)
def this_build() -> Build:
    """The build that this process runs, by the files as they are on the disk now."""
    try:
        known = version("serene")
    except PackageNotFoundError:  # run from the sources, without being installed
        known = "unknown"
    files = [path for name in SOURCES for ending in ENDINGS for path in sorted((ROOT / name).rglob(ending))]
    return Build(
        known,
        _hash([(name, BUILD / f"{name}.json") for name in (*VARIANTS, *TREE)]),
        _hash([(str(path.relative_to(ROOT)), path) for path in files]),
    )


def commit() -> str | None:
    """The checkout's commit, 40 hex digits, with ``-dirty`` after them if files were changed; None outside a
    checkout."""
    # safe.directory: under sudo the checkout belongs to another user, and git would refuse to read it.
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    command = [*git, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 and (ROOT / ".git").exists() else None


def _hash(files: list[tuple[str, Path]]) -> str:
    whole = hashlib.sha256()
    for name, path in files:
        whole.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:16]
