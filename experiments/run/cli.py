"""The command line of ``python -m serene.experiments.run``, which trains a model through the switch or a baseline.

``make run-mininet`` calls it; ``make run-local`` calls it with ``--no-mininet``, which needs no root.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from serene.arguments import Parser
from serene.at_exit import leave_garbage
from serene.errors import SereneError, choices
from serene.experiments.run.launch import launch
from serene.experiments.run.settings import Settings, check
from serene.experiments.shared import terminal
from serene.workers import architectures, baselines, data, packets


def parser() -> argparse.ArgumentParser:
    result = Parser(prog="python -m serene.experiments.run", description="Trains a network through the switch.")
    add = result.add_argument
    # Numbers come as text: `settings.check` says for each which ones are valid, by the name of the make variable.
    add("--workers", default="4")
    add("--strategy", default="bsp", help="bsp, ssp:S, asp, quorum:K, mixed:W,W or auto[:NAME[:KEY=VALUE,...]]")
    add("--straggler", default="none", help="none, slow_worker, heterogeneous or failure; parameters as :key=value,...")
    add("--steps", default="200")
    add("--target", default="auto", help="auto, embedded or bmv2")
    add("--model", default="mlp", help=choices(architectures.MODELS))
    add("--dataset", default="digits", help=choices(data.DATASETS))
    add("--data-dir", type=Path, default=None, help="directory of fashion-mnist, mnist and cifar10")
    add("--racks", default="1", help="number of racks; with more than one, each has a leaf switch below one root")
    add("--uplink-mbit", default="", help="rate of each leaf's link to the root in Mbit/s; default: unlimited")
    add("--link-mbit", default="", help="rate of each host's link in Mbit/s; default: unlimited")
    add("--batch-size", default="32", help="images in each worker's batch; the paper's authors use 256")
    add("--learning-rate", default="", help="default: the model's own; the paper's authors use 0.04")
    add("--exchange", default="switch", help=f"what sums the gradients: {choices(baselines.EXCHANGES)}")
    add(
        "--exchange-share",
        default="",
        help="communication's share of a step, 0.01 to 0.99; it sets the compute time instead of --compute-ms",
    )
    add("--packets", default="compiled", help=f"what encodes the workers' packets: {choices(packets.PACKETS)}")
    add("--seed", default="1")
    add("--compute-ms", default="250", help="mean compute time of an iteration in ms; 0: no emulated time")
    add("--program", default="serene", help="serene (MTU 1500) or serene_jumbo")
    add("--slots", default="", help="of the switch; by default as many as the program was compiled with")
    add("--faults", type=Path, default=None, help="a file of faults, as docs/faults.md shows")
    add("--out", default="", help="directory for the results (default runs/DATE-STRATEGY)")
    add("--no-mininet", action="store_true", help="UDP on loopback instead: no root needed")
    return result


def _settings(options: argparse.Namespace) -> Settings:
    given = vars(options).copy()
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{options.strategy.replace(':', '-').replace(',', '-')}"
    given["out"] = Path(given["out"] or Path("runs", name))
    given["mininet"] = not given.pop("no_mininet")
    return check(**given)


def main() -> int:
    leave_garbage()
    console = terminal.console()
    try:
        settings = _settings(parser().parse_args())
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return launch(settings, console)
