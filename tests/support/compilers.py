"""Skips compiling what has been compiled before: a compiler that once made the committed output of the same sources
would make it again, and Tofino's takes a minute to do so. pytest's cache remembers the compilers and sources;
``--cache-clear`` forgets them."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest


def _files(tool: Path) -> Iterator[Path]:
    """Yields the file of a program and, if it is a script, the files that the script names."""
    yield tool
    with tool.open("rb") as file:
        script = file.read(2) == b"#!"
    if script:
        for name in re.findall(r"/[\w./-]+", tool.read_text()):
            yield from (path for path in (Path(name), *sorted(Path(name).rglob("*"))) if path.is_file())


def _identity(tool: str) -> str:
    path = Path(shutil.which(tool) or "").resolve()
    return repr([(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in _files(path)])


class Compiled:
    """Which compilers made which output of which sources. checkout: a folder with the sources, the script that compiles
    them, and the committed output."""

    def __init__(self, config: pytest.Config, name: str, tools: Sequence[str], checkout: Path) -> None:
        self._cache: pytest.Cache | None = getattr(config, "cache", None)  # None: pytest runs without a cache
        self._name = f"serene/compiled-{name}"
        digest = hashlib.sha256(repr([_identity(tool) for tool in tools]).encode())
        for path in sorted(path for path in checkout.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(checkout)}\n".encode())
            digest.update(path.read_bytes())
        self._digest = digest.hexdigest()

    def before(self) -> bool:
        """Whether these compilers made this output of these sources the last time that they ran."""
        return self._cache is not None and self._cache.get(self._name, None) == self._digest

    def remember(self) -> None:
        if self._cache is not None:
            self._cache.set(self._name, self._digest)
