"""Compiles a generated program to a shared library, once per content.

The library's name is a digest of everything that shapes it: the C source, the runtime it includes, the compiler and
its flags, and the processor (the code is built for the machine it runs on). Builders that race produce the same file
and rename it into place.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from serene.errors import SereneError

RUNTIME = Path(__file__).with_name("runtime")
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


class CompilerMissing(SereneError):
    """No C compiler on this machine."""


class CompileFailed(SereneError):
    """The generated C does not compile: a defect of the embedded switch."""


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "serene" / "switch"


def compiler() -> str:
    """The C compiler: $CC, cc, gcc or clang."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise CompilerMissing("the embedded switch needs a C compiler and found none (apt install gcc libc6-dev)")


@cache
def _compiler_identity(path: str) -> str:
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        flags = ""
    return "\n".join([path, version, platform.machine(), flags])


def compile_source(source: str, extra_flags: tuple[str, ...] = ()) -> Path:
    """The shared library for a generated source; compiles it when the cache has none (some seconds)."""
    cc = compiler()
    flags = (*FLAGS, *extra_flags)
    digest = hashlib.sha256("\0".join([source, *flags, _compiler_identity(cc)]).encode())
    for part in sorted(RUNTIME.iterdir()):
        digest.update(part.read_bytes())
    directory = cache_directory()
    library = directory / f"{digest.hexdigest()[:32]}.so"
    if library.exists():
        return library
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            c_file, built = Path(scratch, "switch.c"), Path(scratch, "switch.so")
            c_file.write_text(source)
            command = [cc, *flags, f"-I{RUNTIME}", "-o", str(built), str(c_file)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                head = "\n".join(run.stderr.splitlines()[:20])
                raise CompileFailed(f"{cc} refuses the generated program (a defect of the embedded switch):\n{head}")
            c_file.replace(library.with_suffix(".c"))
            built.replace(library)
    except OSError as error:
        raise CompileFailed(f"cannot build in {directory}: {error.strerror}") from error
    return library
