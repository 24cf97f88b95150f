"""Output files of commands. They are checked before the work begins, and are not lost if writing fails at the end.

Work takes seconds to hours. A directory may be read-only, or the disk full, before it begins or only at its end. So a
program that writes results first calls ``check``, and at the end ``write`` or ``keep``. If these cannot write the
results to their place, they write them to another place and name it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from serene.errors import SereneError

MB = 10**6


class CannotWrite(SereneError):
    """An output cannot be written. The message gives the reason, and the place of the results.

    nowhere: there were results, and they could not be written to any other place.
    """

    def __init__(self, message: str, nowhere: bool = False) -> None:
        super().__init__(message)
        self.nowhere = nowhere


def check(path: Path, room: int) -> None:
    """Raises CannotWrite unless ``room`` bytes can be written to a file or directory of this name. No files remain."""
    place = path
    try:
        if _in_place(path):
            return
        while not place.exists():
            if place.is_symlink():
                raise CannotWrite(f"cannot write {path}: {place} is a link to nothing")
            place = place.parent
        if place != path and not place.is_dir():
            raise CannotWrite(f"cannot write {path}: {place} is no directory; choose another place")
        with tempfile.TemporaryFile(dir=place if place.is_dir() else place.parent) as file:
            os.posix_fallocate(file.fileno(), 0, max(room, 1))
    except OSError as error:
        raise CannotWrite(
            f"cannot write {path}: {error.strerror} ({room / MB:.1f} MB are needed); choose another place"
        ) from error


@contextmanager
def claimed(out: Path) -> Iterator[None]:
    """Locks a directory of results, so that no other run on this machine writes to it meanwhile. The kernel releases
    the lock when this process ends in any way. Raises CannotWrite."""
    name = hashlib.sha256(os.fsencode(out.resolve())).hexdigest()[:32]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        try:
            claim.bind(f"\0serene-out-{name}")
        except OSError:
            raise CannotWrite(f"cannot write {out}: another run uses it; choose another folder") from None
        yield


def check_file(path: Path, room: int) -> None:
    """As ``check``, for a file."""
    check(path, room)
    if path.is_dir():
        raise CannotWrite(f"cannot write {path}: it is a directory; name a file")


def check_directory(path: Path, room: int) -> None:
    """As ``check``, for a directory."""
    check(path, room)
    if path.exists() and not path.is_dir():
        raise CannotWrite(f"cannot write {path}: it is a file; name a directory")


def _in_place(path: Path) -> bool:
    """Whether this is a device, a pipe or a link, such as /dev/stdout. It is written, and never replaced."""
    return path.exists() and not path.is_dir() and (path.is_symlink() or not path.is_file())


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file for writing. It replaces a regular file of the same name when it is complete; if writing fails, that
    file does not change. Raises OSError."""
    if _in_place(path):
        with path.open("wb") as file:
            yield file
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write(path: Path, fill: Callable[[IO[bytes]], None]) -> None:
    """Writes a complete result to its place, or else to another place. Raises CannotWrite, which names that place."""

    def into(directory: Path) -> None:
        with whole(directory / path.name) as file:
            fill(file)

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        into(path.parent)
    except OSError as error:
        where = elsewhere(into, path)
        if where is None:
            raise CannotWrite(f"cannot write {path}: {error.strerror}, nor anywhere else", True) from error
        raise CannotWrite(f"cannot write {path}: {error.strerror}; written to {where / path.name} instead") from error


def write_text(path: Path, text: str) -> None:
    """As ``write``, for text. If it cannot be written to any place, it is printed."""
    try:
        write(path, lambda file: _write_all(file, text))
    except CannotWrite as error:
        if error.nowhere:
            sys.stdout.write(text)
            raise CannotWrite(f"{error}; the result is printed above") from error
        raise


def _write_all(file: IO[bytes], text: str) -> None:
    file.write(text.encode())


def keep(fill: Callable[[Path], None], work: Path, out: Path) -> None:
    """Creates a directory of finished results. ``fill`` writes them into the empty directory ``work`` beside ``out``,
    which is then renamed to ``out`` in one step. If that fails, they are written to another place. Raises CannotWrite,
    which names that place."""
    part = work / "results"
    try:
        part.mkdir()
        fill(part)
        give_to_caller(part)
        if out.exists():
            out.rmdir()  # empty when the work began
        part.replace(out)
    except OSError as error:
        where = elsewhere(fill, out)
        if where is None:
            raise CannotWrite(f"cannot write {out}: {error.strerror}, nor anywhere else", True) from error
        raise CannotWrite(
            f"cannot write {out}: {error.strerror}; the results are written to {where} instead"
        ) from error


def elsewhere(fill: Callable[[Path], None], instead_of: Path) -> Path | None:
    """Calls ``fill`` with a new directory at any place with enough room, and returns it; None if there is no such
    place."""
    for place in spare_places(instead_of):
        directory = None
        try:
            directory = Path(tempfile.mkdtemp(prefix="serene-", dir=place))
            fill(directory)
            give_to_caller(directory)
        except OSError:
            if directory is not None:
                shutil.rmtree(directory, ignore_errors=True)
            continue
        return directory
    return None


def spare_places(instead_of: Path) -> list[Path]:
    """Directories to try if a place cannot be written, those on other devices first."""
    places = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd(), Path(os.environ.get("HOME", "/"))]
    found = [place for place in dict.fromkeys(places) if place.is_dir()]
    device = next((_device(parent) for parent in (instead_of, *instead_of.absolute().parents) if _device(parent)), 0)
    return sorted(found, key=lambda place: _device(place) == device)


def _device(path: Path) -> int:
    try:
        return path.stat().st_dev
    except OSError:
        return 0


def give_to_caller(path: Path) -> None:
    """Makes the user who called sudo the owner of a path and of everything below it."""
    user, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or user is None or group is None:
        return
    for item in (path, *path.rglob("*")):
        os.chown(item, int(user), int(group), follow_symlinks=False)
