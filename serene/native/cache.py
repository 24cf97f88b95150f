"""Where compiled libraries are kept: a directory that nobody but this user can put anything into.

What lies there is loaded into the switch or a worker, which may well run as root: whoever could write there could run
as root.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from serene.native.errors import UnsafeCache


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "serene" / "native"


def safe_cache() -> Path:
    """The directory, made if need be. Raises UnsafeCache, or OSError where it cannot be made."""
    directory = cache_directory().absolute()
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    real = directory.resolve()
    for path in (real, *real.parents):
        check(path, is_ours=path == real)
    return real


def check(path: Path, *, is_ours: bool) -> None:
    """Raises UnsafeCache where somebody else could change what ``path`` holds, or put something else in its place."""
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


def _root() -> set[int]:
    """Who owns what is above: root, which in a user namespace may show as a user that is not known there."""
    try:
        maps = Path("/proc/self/uid_map").read_text().split()
        unknown = int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return {0}
    return {0} if maps == ["0", "0", "4294967295"] else {0, unknown}
