"""The controller runs code only from files that no user but its own (or root) can write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from serene.errors import SereneError

LARGEST = 1 << 20  # bytes of a strategy's source


class BadAutomatic(SereneError):
    """An automatic strategy that does not exist, cannot be loaded or run, or does not take such parameters."""


def trusted_source(file: str) -> bytes:
    """A file's content. Raises BadAutomatic unless only the controller's user, or root, can write the file and every
    folder above it.

    The controller often runs as root, and any user of the machine can send it requests. The file is opened once, so
    that it cannot be replaced between the check and the reading.
    """
    try:
        path = Path(file).resolve(strict=True)  # follows links: a link's writer chooses the code
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise BadAutomatic(f"{file}: not a file")
            _check(path, status)
            for folder in path.parents:
                _check(folder, folder.stat())
            source = opened.read(LARGEST + 1)
    except FileNotFoundError:
        raise BadAutomatic(f"{file}: no such file") from None
    except (OSError, ValueError, RuntimeError) as error:  # an invalid name, a folder that may not be entered, ...
        raise BadAutomatic(f"{file}: {error.strerror if isinstance(error, OSError) else error}") from None
    if len(source) > LARGEST:
        raise BadAutomatic(f"{file}: longer than {LARGEST} bytes")
    return source


def _check(path: Path, status: os.stat_result) -> None:
    trusted = {0, os.getuid(), int(os.environ.get("SUDO_UID", os.getuid()))}
    # In a sticky folder, such as /tmp, other users may make files, but cannot replace ours.
    others_may_write = status.st_mode & 0o022 and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX)
    if status.st_uid not in trusted or others_may_write:
        raise BadAutomatic(
            f"{path} belongs to uid {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o}: expected the controller's "
            "user as owner, and no write access for others (chmod go-w)"
        )
