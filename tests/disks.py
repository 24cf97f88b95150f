"""Small disks for tests, which can be filled, or made read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def disk(place: Path, size: str) -> Iterator[Path]:
    """A file system with so many bytes, mounted at ``place`` until the end of the block; skips the test without
    root."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path, leave: int = 0) -> Path:
    """Fills a disk, except for so many bytes, and returns the file that fills it."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(65536)):
            pass
    with ballast.open("r+b") as file:
        file.truncate(max(ballast.stat().st_size - leave, 0))
    return ballast


def read_only(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
