"""Command lines with argparse: their errors are one line, with exit status 2.

Not with typer, which `serenectl` uses: typer makes a program's start 0.1 s slower, and has no option with any number of
values, as ``--seeds 1 2``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from serene.distribution import version
from serene.errors import BadUsage, SereneError
from serene.process.spawn import started

P = ParamSpec("P")


class Parser(argparse.ArgumentParser):
    """argparse's parser, with the name by which its program was started. An error is one line, without the usage text.
    Options cannot be abbreviated. about: its first line is the description; otherwise as argparse's."""

    def __init__(self, about: str, **given: Any) -> None:
        usual: dict[str, Any] = {"prog": " ".join(started()), "description": about.partition("\n")[0]}
        super().__init__(**usual | given, allow_abbrev=False)

    def error(self, message: str) -> None:  # type: ignore[override]
        for option in self._actions:  # whose value is missing, or begins with a dash
            if message == f"argument {'/'.join(option.option_strings)}: expected one argument":
                message += f", {option.metavar or option.dest.upper()}"
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2)


def add_version(parser: argparse.ArgumentParser) -> None:
    """Adds the option --version, the same for every command."""
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")


def command(main: Callable[P, int | None]) -> Callable[P, int]:
    """A command's main function. It prints a user's error as one line, and returns the exit status: 2 after BadUsage, 1
    after another SereneError."""

    @wraps(main)
    def run(*arguments: P.args, **named: P.kwargs) -> int:
        try:
            return main(*arguments, **named) or 0
        except SereneError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2 if isinstance(error, BadUsage) else 1

    return run


@contextmanager
def usage() -> Iterator[None]:
    """A block that reads what the user has given: it raises a SereneError as BadUsage."""
    try:
        yield
    except SereneError as error:
        raise BadUsage(str(error)) from error


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
