"""Commands that make Mininet networks of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable

from serene.errors import SereneError
from serene.topologies.isolation import run_isolated
from serene.topologies.processes import NotReady


def command(work: Callable[[], None], hint: str) -> int:
    """Does the work in a PID namespace of its own, so that none of its hosts is left behind. Returns the exit status:
    0, or 1 after an error, which is printed. hint: follows the error where no namespace can be made."""

    def run() -> int:
        try:
            work()
        except (SereneError, NotReady, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 0

    try:
        return run_isolated(run)
    except OSError as error:
        print(f"error: {error} ({hint})", file=sys.stderr)
        return 1
