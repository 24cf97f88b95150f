"""Compiles C code to a shared library, once per content.

The library's name is a digest of all its inputs: the source, the headers that it may include, the compiler, its flags,
and the processor. The code is built for this machine's processor. Of processes that request it at the same time, one
builds it and renames it into place, and the others wait.

The compiler runs with an empty environment, in a directory of its own, and with limits. Root starts it under an unused
user id (confined.py). This process copies its output into the cache.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from serene.native.cache import cache_directory, in_cache, one_builder, prune, safe_cache
from serene.native.errors import CompileFailed, CompilerMissing

CONFINED = Path(__file__).with_name("confined.py")
FREE_USERS = (61184, 65519)  # user ids for temporary users, by systemd's convention
TRIAL = {"source.c": b"int nothing;"}  # any C compiler compiles this
OURSELVES = "-"  # the same as in confined.py
TIME_LIMIT_S = 300
log = logging.getLogger("serene.native")
FLAGS = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O3",
    "-march=native",
    "-fno-strict-aliasing",
    "-fPIC",
    "-shared",
    "-pthread",
    "-w",
)


def compiler() -> str:
    """The C compiler: $CC, cc, gcc or clang."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise CompilerMissing("no C compiler was found, and the embedded switch needs one (apt install gcc libc6-dev)")


@cache
def _identity(path: str) -> str:
    """The compiler's version, and the processor it builds for."""
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return "\n".join([path, version, platform.machine(), _processor()])


@cache
def compiler_user(path: str) -> str:
    """The user id under which the compiler runs: an unused one if we are root, else "-" for our own."""
    if os.geteuid() != 0:
        return OURSELVES
    user = str(random.SystemRandom().randint(*FREE_USERS))
    try:
        _compile_trial(path, user)
    except (CompileFailed, OSError) as error:
        if _compiles_trial(path, OURSELVES):
            log.warning("the C compiler does not run as an ordinary user, so it runs as root: %s", error)
        return OURSELVES
    return user


def _processor() -> str:
    try:
        return next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return ""


def _run(user: str, command: Sequence[str], scratch: Path) -> subprocess.CompletedProcess[str]:
    """Runs the compiler in an empty environment, with limits on time, memory and output."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TMPDIR": str(scratch), "HOME": "/"}
    confined = [sys.executable, "-I", "-S", str(CONFINED), user, str(TIME_LIMIT_S), *command]
    with subprocess.Popen(
        confined, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        cwd=scratch, env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, error = process.communicate(timeout=TIME_LIMIT_S)
        except BaseException as ending:
            os.killpg(process.pid, signal.SIGKILL)  # including the compiler's own children
            if isinstance(ending, subprocess.TimeoutExpired):
                raise CompileFailed(f"{command[0]} took more than {TIME_LIMIT_S} s") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, error)


def compile_source(source: str, extra_flags: tuple[str, ...] = (), headers: Path | None = None) -> Path:
    """The shared library for a source. It is compiled if it is not in the cache, which takes some seconds. headers: a
    directory of files that the source may include.

    Raises CompilerMissing, CompileFailed, or UnsafeCache if other users could have written to the cache.
    """
    path = compiler()
    flags = (*FLAGS, *extra_flags)
    digest = hashlib.sha256("\0".join([source, *flags, _identity(path)]).encode())
    included = {part.name: part.read_bytes() for part in sorted(headers.iterdir())} if headers else {}
    for content in included.values():
        digest.update(content)
    place, variable = "the cache", "XDG_CACHE_HOME"
    try:
        place = str(cache_directory())
        directory = safe_cache()
        library = directory / f"{digest.hexdigest()[:32]}.so"
        if in_cache(library):
            return library
        with one_builder(library, TIME_LIMIT_S):
            if in_cache(library):
                return library
            place, variable = tempfile.gettempdir(), "TMPDIR"
            with tempfile.TemporaryDirectory(prefix="serene-") as scratch:
                sources = {"source.c": source.encode(), **included}
                built = _compile(path, compiler_user(path), flags, sources, Path(scratch))
            place, variable = str(directory), "XDG_CACHE_HOME"
            with tempfile.TemporaryDirectory(dir=directory) as staging:
                for content, target in ((source.encode(), library.with_suffix(".c")), (built, library)):
                    written = Path(staging, target.name)
                    written.write_bytes(content)
                    written.replace(target)
        prune(directory)
    except (OSError, RuntimeError) as error:  # a RuntimeError means that there is no home directory
        message = f"cannot build in {place}: {error}; {variable}=/PATH chooses another place"
        raise CompileFailed(message) from error
    return library


def _compile(path: str, user: str, flags: Sequence[str], sources: Mapping[str, bytes], scratch: Path) -> bytes:
    """Compiles and returns the library's bytes. The compiler sees a directory with these sources, never the cache."""
    for name, content in sources.items():
        (scratch / name).write_bytes(content)
    if user != OURSELVES:
        for owned in (scratch, *scratch.iterdir()):
            os.chown(owned, int(user), int(user))
    run = _run(user, [path, *flags, "-o", "library.so", "source.c"], scratch)
    if run.returncode < 0 or run.returncode > 128:
        raise CompileFailed(f"{path} was stopped: it exceeded {TIME_LIMIT_S} s of processor time, or its memory")
    if run.returncode and os.strerror(errno.ENOSPC) in run.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    library = scratch / "library.so"
    if run.returncode or not library.exists():
        head = "\n".join(run.stderr.splitlines()[:20])[:2000]
        ended = f"it ended with status {run.returncode}, with " + (f"this output:\n{head}" if head else "no output")
        if sources != TRIAL and _compiles_trial(path, user):
            raise CompileFailed(f"{path} refuses Serene's code (please report it): {ended}")
        chosen = ", which $CC names," if shutil.which(os.environ.get("CC", "")) == path else ""
        raise CompileFailed(f"{path}{chosen} compiles no C program: {ended}")
    descriptor = os.open(library, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _compile_trial(path: str, user: str) -> None:
    """Compiles a minimal source. Raises CompileFailed or OSError."""
    with tempfile.TemporaryDirectory(prefix="serene-") as scratch:
        _compile(path, user, ("-shared", "-fPIC"), TRIAL, Path(scratch))


def _compiles_trial(path: str, user: str) -> bool:
    """Whether the compiler compiles anything at all."""
    try:
        _compile_trial(path, user)
    except CompileFailed:
        return False
    return True
