"""Command lines that say in one line what was wrong, and exit with status 2."""

from __future__ import annotations

import argparse
import sys

from serene.distribution import version


class Parser(argparse.ArgumentParser):
    """argparse's parser, without the usage text before an error."""

    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2)


def add_version(parser: argparse.ArgumentParser) -> None:
    """Adds the option --version, the same for every command."""
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")
