"""Which Serene this is: results of two different ones do not belong in one study."""

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
    """version: the package's. programs: what p4c made. sources: the Python and C files. Hashes, 16 hex digits."""

    version: str
    programs: str
    sources: str

    def differences(self, other: Build) -> str:
        """As a text: what, and both values; empty if they are the same."""
        pairs = [(each.name, getattr(self, each.name), getattr(other, each.name)) for each in fields(self)]
        return ", ".join(f"{name} {here} and {there}" for name, here, there in pairs if here != there)


@lru_cache(maxsize=1)
def this_build() -> Build:
    """Of the code that runs in this process, as it is on the disk."""
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
    """Of the checkout, with ``-dirty`` behind it where files were changed; None outside of one."""
    # Under sudo the checkout is another user's, which git would not read.
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
