"""What the resumable studies share: their command line's end, and the frame of their pages."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import jinja2
from rich.console import Console

from serene.errors import SereneError


class BadUsage(SereneError):
    """Options that make no sense."""


def main(options: argparse.Namespace, run: Callable[[argparse.Namespace, Console], None]) -> int:
    """Runs a study and says what happened: the process's exit status. ``options.out`` is where its results are."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    try:
        run(options, console)
    except BadUsage as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (SereneError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"stopped; what is done stays in {options.out}: the same command goes on", file=sys.stderr)
        return 130
    return 0


def template(path: Path) -> jinja2.Template:
    """A page that may extend ``study.html``, whose macros make its tables and pictures."""
    places = [path.parent, Path(__file__).parent]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(places), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(path.name)
