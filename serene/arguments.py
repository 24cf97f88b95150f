"""Command lines that name what was wrong in one line, and end with status 2."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version


class Parser(argparse.ArgumentParser):
    """argparse's, without the usage before an error."""

    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2)


def add_version(parser: argparse.ArgumentParser) -> None:
    """The option --version, as `serenectl` has it."""
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('serene')}")
