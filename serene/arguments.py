"""Command line parsers whose errors are one line, with exit status 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from serene.distribution import version


class Parser(argparse.ArgumentParser):
    """argparse's parser, without the usage text before an error."""

    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2)


def add_version(parser: argparse.ArgumentParser) -> None:
    """Adds the option --version, the same for every command."""
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an option whose value is a whole number in these bounds."""
    expected = f"{least} or more" if most is None else f"from {least} to {most}"

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(
                f"{text!r}: expected a whole number{',' if most is None else ''} {expected}"
            )
        return int(text)

    return number


def probability(text: str) -> float:
    """The type of an option whose value is a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0 to 1")
    return number
