"""Outcomes of tests in a file, so that an interrupted command resumes where it ended (``--resume``)."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.suites.checkouts import BUILT, ROOT, NotCompiled, NotThere, Program

FILE = BUILT / "outcomes.jsonl"
_RUNNERS = (
    "embedded/stf*.py", "embedded/bmv2.py", "embedded/packets.py", "embedded/p4rt_controller.py", "p4rt.py",
    "suites/loading.py", "suites/random*.py",
)  # fmt: skip


class Outcomes:
    """Outcomes by part, switch and test. Each is valid for one content of the test, the switch, and its runner."""

    def __init__(self, resume: bool = False, path: Path = FILE) -> None:
        """resume: whether outcomes of earlier runs are used. New ones are stored in any case."""
        self._path, self._lock = path, threading.Lock()
        self._known: dict[str, Any] = {}
        if resume and path.exists():
            for line in path.read_bytes().splitlines():
                with suppress(ValueError, KeyError, TypeError):  # a killed command wrote it in part, or it is damaged
                    record = json.loads(line)
                    self._known[record["key"]] = record["outcome"]

    def of(
        self, part: str, switches: Iterable[str], test: str, program: Program, run: Callable[[], Any], more: bytes = b""
    ) -> Any:
        """The stored outcome, or else ``run``'s, which is stored. more: the test's content besides the program."""
        try:
            contents = b"".join(path.read_bytes() for path in program.compiled() if path is not None) + more
        except (NotCompiled, NotThere):
            return run()
        named = f"{part}\n{test}\n{''.join(_version(switch, part) for switch in switches)}".encode()
        key = hashlib.sha256(named + contents).hexdigest()
        if key in self._known:
            return self._known[key]
        outcome = run()
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            record = json.dumps({"key": key, "part": part, "test": test, "outcome": outcome})
            # A new line first, as the last one may be written in part; in one call, as another command may write, too.
            with self._path.open("ab", buffering=0) as file:
                file.write(f"\n{record}\n".encode())
            self._known[key] = outcome
        return outcome


@cache
def _version(switch: str, part: str) -> str:
    """A digest of the switch and of what runs tests on it. Packets are sent without the embedded switch's server."""
    found = [path for pattern in _RUNNERS for path in sorted((ROOT / "tests").glob(pattern))]
    engine = ROOT / "serene" / "embedded"
    if switch == "bmv2":
        installed = shutil.which("simple_switch_grpc")
        found += [Path(installed)] if installed is not None else []
        found += sorted((engine / "program").glob("*.py"))  # reads the names in a packet test
    else:
        found += sorted((ROOT / "serene" / "native").glob("*.py"))
        without = [] if part == "loading" else [engine / "p4runtime"]
        found += [
            path
            for path in sorted(engine.rglob("*"))
            if path.is_file() and path.suffix != ".pyc" and not any(each in path.parents for each in without)
        ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest()
