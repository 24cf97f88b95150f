"""The cache of compiled libraries: a directory that only this user can write to.

Switches and workers load its libraries and may run as root. So anyone who could write there could run code as root. The
most recently used libraries are kept. A library's modification time is the time of its last use.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from serene.native.errors import UnsafeCache
from serene.process import locks

KEPT = 256  # libraries: a run of the tests uses about a hundred, of 0.4 MB each
SPARED_S = 3600.0  # since its last use: by then the process that requested a library has loaded it


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "serene" / "native"


def safe_cache() -> Path:
    """The directory, created if necessary. Raises UnsafeCache, or OSError if it cannot be created."""
    directory = cache_directory().absolute()
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    real = directory.resolve()
    for path in (real, *real.parents):
        check(path, is_ours=path == real)
    return real


def check(path: Path, *, is_ours: bool) -> None:
    """Raises UnsafeCache if another user could modify or replace ``path``."""
    status = path.stat(follow_symlinks=False)
    owners = {os.geteuid()} if is_ours else {os.geteuid(), *_root()}
    if status.st_uid not in owners:
        raise UnsafeCache(
            f"compiled code is kept in {cache_directory()}, but {path} belongs to user {status.st_uid}, not to "
            f"user {os.geteuid()}: set XDG_CACHE_HOME to a directory of your own"
        )
    writable = stat.S_IWGRP | stat.S_IWOTH
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX and not is_ours
    if status.st_mode & writable and not sticky:
        raise UnsafeCache(
            f"compiled code is kept in {cache_directory()}, but others may write to {path}: "
            f"chmod go-w {path}, or set XDG_CACHE_HOME to a directory of your own"
        )


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Locks the cache, so that no other process removes anything meanwhile."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock directories
            locks.locked(descriptor, None)
        yield
    finally:
        os.close(descriptor)


def in_cache(library: Path) -> bool:
    """Whether the library is in the cache; if so, marks it as used now. Raises UnsafeCache."""
    with locked(library.parent):
        if not library.exists():
            return False
        check(library, is_ours=True)
        with suppress(OSError):  # a cache that cannot be written is not pruned either
            os.utime(library)
        return True


@contextmanager
def one_builder(library: Path, within_s: float) -> Iterator[None]:
    """Waits up to so many seconds while another process or thread builds the same library."""
    path = library.with_suffix(".lock")
    lock = _locked(path, within_s)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is locked: those that wait for it create another one
        lock.close()


def _locked(path: Path, within_s: float) -> IO[str]:
    """Creates a file and locks it."""
    end = time.monotonic() + within_s
    while True:
        lock = path.open("w")
        try:
            if not locks.locked(lock, max(end - time.monotonic(), 0.0)):
                return lock
            if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                return lock
        except FileNotFoundError:  # the one that had it has removed it
            pass
        except OSError:  # some network file systems cannot lock
            return lock
        lock.close()


def prune(directory: Path) -> None:
    """Removes files of killed builds, and libraries that have not been used for SPARED_S and are not among the KEPT
    latest."""
    with locked(directory):
        found = {path: status for path in directory.iterdir() if (status := _status(path))}
        libraries = sorted((path for path in found if path.suffix == ".so"), key=lambda path: -found[path].st_mtime)
        before = time.time() - SPARED_S
        kept = {library.stem for library in libraries[:KEPT]}
        kept |= {path.stem for path, status in found.items() if status.st_mtime >= before}
        for path, status in found.items():
            if path.stem in kept:
                continue
            if stat.S_ISDIR(status.st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat(follow_symlinks=False)
    except FileNotFoundError:  # that build has ended meanwhile
        return None


def _root() -> set[int]:
    """The owner of the root directory: root, which in a user namespace may appear as an unknown user."""
    try:
        maps = Path("/proc/self/uid_map").read_text().split()
        unknown = int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return {0}
    return {0} if maps == ["0", "0", "4294967295"] else {0, unknown}
