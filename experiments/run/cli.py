"""The command line of ``python -m serene.experiments.run``, which trains a model through the switch or a baseline.

``make run-mininet`` calls it; ``make run-local`` calls it with ``--no-mininet``, which needs no root.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from serene.arguments import Parser, command, usage
from serene.experiments.run.launch import launch
from serene.experiments.run.settings import Given, Settings, check
from serene.experiments.shared import terminal
from serene.process.at_exit import leave_garbage
from serene.settings import add_options


def parser() -> Parser:
    result = Parser("Trains a network through the switch.")
    add_options(result, Given)
    result.add_argument(
        "--no-mininet",
        dest="mininet",
        action="store_false",
        help="use UDP on loopback instead of Mininet; needs no root",
    )
    return result


def _settings(options: argparse.Namespace) -> Settings:
    strategy = re.sub("[:,/]", "-", getattr(options, "strategy", "bsp"))
    default = {"out": Path("runs", f"{time.strftime('%Y%m%d-%H%M%S')}-{strategy}")}
    return check(**default | {name: value for name, value in vars(options).items() if value != ""})


@command
def main() -> int:
    leave_garbage()
    console = terminal.console()
    with usage():
        settings = _settings(parser().parse_args())
    return launch(settings, console)
