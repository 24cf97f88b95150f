"""The command line of ``serene-netstudy``: how long an exchange takes on a network, and what the network is worth.

serene-netstudy --hosts 1024 --bisection 0.25 --method leaf-spine-aggregation --gradient-mb 100
serene-netstudy --hosts 128                          # all methods
serene-netstudy --hosts 1024 --strategy ssp:3 --straggler slow_worker --compute-ms 100
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from serene.arguments import Parser, add_version, command, usage
from serene.errors import SereneError, choices
from serene.experiments.network_study.cells import ENGINES, ExchangeCell, NetworkCell, TrainingCell, our_switch
from serene.experiments.network_study.exchange import BadMethod, SwitchSizes
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import ROUTINGS, SIZES
from serene.experiments.network_study.flows.solver import MODELS
from serene.experiments.network_study.methods import MAIN, METHODS
from serene.experiments.network_study.training import SERVERS, SWITCH
from serene.experiments.shared import terminal
from serene.palette import look


def parser() -> Parser:
    sizes = ", ".join(str(hosts) for _, hosts in SIZES)
    switch = our_switch()
    result = Parser("Simulates a gradient exchange on a Clos network: its time and the network's cost.")
    add_version(result)
    add = result.add_argument
    add("--hosts", type=int, required=True, help=f"number of hosts: {sizes}")
    add("--layers", type=int, default=0, help="layers: 2 or 3, if both fit the number of hosts")
    add("--bisection", type=float, default=1.0, metavar="R", help="bisection ratio: 1, 0.5, 0.25 or 0.125 (default 1)")
    add("--method", default="all", help=f"all, or one of {', '.join(METHODS)}")
    add("--gradient-mb", type=float, default=100.0, metavar="MB", help="size of the gradient (default 100)")
    add("--bandwidth-gb", type=float, default=4.0, metavar="GB/S", help="link bandwidth per direction (default 4)")
    add("--latency-us", type=float, default=0.2, metavar="US", help="switch latency (default 0.2)")
    add("--routing", default=ROUTINGS[0], help=" or ".join(ROUTINGS))
    add("--engine", default=solver.NAME, help=f"{' or '.join(ENGINES)} (default {solver.NAME})")
    add("--model", default="LV08", help=f"{' or '.join(MODELS)} (default LV08)")
    add("--lanes", type=int, default=switch.lanes, help=f"values in a packet of our switch (default {switch.lanes})")
    add("--slots", type=int, default=switch.slots, help=f"slots of our switch (default {switch.slots})")
    add(
        "--window",
        type=int,
        default=switch.window,
        help=f"packets that a worker has in flight (default {switch.window})",
    )
    add(
        "--strategy",
        default="",
        help="also simulate training under this strategy: bsp, ssp:S, asp, quorum:K, quorum (nine in ten)",
    )
    add("--straggler", help="with --strategy: a profile, as slow_worker:probability=0.3 (default none)")
    add("--compute-ms", type=float, metavar="MS", help="with --strategy: mean of an iteration (default 100)")
    return result


def answer(options: argparse.Namespace, console: Console) -> None:
    """Prints the tables. Raises SereneError."""
    if options.method != "all" and options.method not in METHODS:
        raise BadMethod(f"--method {options.method}: expected all, {choices(METHODS)}")
    _check_training(options)
    sizes = SwitchSizes(options.lanes, options.slots, options.window)
    network = NetworkCell(
        options.layers, options.hosts, options.bisection, options.bandwidth_gb, options.latency_us, options.routing
    )
    clos = network.clos()
    rows = []
    for name in MAIN if options.method == "all" else (options.method,):
        cell = ExchangeCell(network, name, options.gradient_mb, options.engine, options.model)
        found = cell.answer(sizes)
        seconds, closed = found["seconds"], found["closed_form_s"]
        apart = "" if closed is None else f"{seconds / closed - 1:+.1%}".replace("-0.0%", "+0.0%")
        known = "" if closed is None else f"{closed * 1e3:.2f} ms"
        rows.append([name, f"{seconds * 1e3:.2f} ms", f"{seconds / cell.unit_s:.2f}", known, apart])
    training = _training(options, network, sizes) if options.strategy else None
    console.print(
        f"{clos.hosts} hosts, {clos.layers} layers of {clos.ports}-port switches, bisection ratio {clos.ratio:g}: "
        f"{clos.switches} switches, worth {clos.equivalents:,} of 2x2\n",
        terminal.table(["method", "time", "gradient / bandwidth", "closed form", "apart"], rows, ["method"]),
        f"\na gradient of {options.gradient_mb:g} MB, links of {options.bandwidth_gb:g} GB/s, switches of "
        f"{options.latency_us:g} us, {options.routing}; engine {options.engine}, model {options.model}; gradient / "
        f"bandwidth = {cell.unit_s * 1e3:g} ms",
        *(["", training] if training else []),
        sep="\n", highlight=False,
    )  # fmt: skip


def _check_training(options: argparse.Namespace) -> None:
    """Raises SereneError for options of a training without --strategy: they would be ignored."""
    for name, given in (("--straggler", options.straggler), ("--compute-ms", options.compute_ms)):
        if given is not None and not options.strategy:
            raise SereneError(f"{name} {given} needs --strategy: bsp, ssp:S, asp, quorum:K or quorum")


def _training(options: argparse.Namespace, network: NetworkCell, sizes: SwitchSizes) -> Table:
    straggler = "none" if options.straggler is None else options.straggler
    compute_ms = 100.0 if options.compute_ms is None else options.compute_ms
    rows = []
    for how in (SWITCH, SERVERS):
        found = TrainingCell(network, how, options.strategy, straggler, options.gradient_mb, compute_ms).answer(sizes)
        shares = [f"{found[name]:.0%}" for name in ("computing", "network", "waiting")]
        ahead = f"{found['ahead_mean']:.1f} ({found['ahead_max']})"
        rows.append([how, f"{found['rounds_per_s']:.2f}", *shares, ahead])
    head = ["exchange", "rounds/s", "computing", "network", "waiting", "ahead of the slowest, mean (most)"]
    title = f"training, {look(options.strategy).name}, straggler {straggler}, {compute_ms:g} ms of computing"
    return terminal.table(head, rows, ["exchange"], title)


@command
def main() -> None:
    options = parser().parse_args()
    with usage():
        answer(options, terminal.console(140))
