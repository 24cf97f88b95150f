"""Random runs in process and in virtual time, with swaps between each pair of strategies: ``make schedules``.

Every run has real workers' code on one side, the P4 program on the other, and between them a network that loses,
repeats and reorders packets, and delivers some of them long after; workers stand still, die, join twice and are
evicted, the controller dies and comes back with another clock, jobs are deleted and their ids used again, and a host
that is in no job says whatever it likes. For every run:
is a contribution missing from the sums, or in them twice? Is a worker stuck? Did a worker get ahead of its bound, or
read another BSP sum than the others? A run is told by its pair and its number, and can be played again alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from rich.progress import Progress
from rich.table import Table

from experiments.correctness.virtual.checks import Violation
from experiments.correctness.virtual.plan import Outcome
from experiments.correctness.virtual.random_plans import random_plan
from experiments.correctness.virtual.schedule import Schedule
from experiments.correctness.virtual.switch import P4Switch
from experiments.correctness.virtual.tree import TreeSchedule, TreeSwitch
from experiments.shared import terminal
from experiments.shared.random_strategies import FAMILIES, alternating
from serene import outputs
from serene.arguments import Parser
from serene.errors import SereneError, choices
from serene.program import Program
from serene.racks import MAX_RACKS

Pair = tuple[str, str]

PAIRS: tuple[Pair, ...] = tuple(itertools.product(FAMILIES, FAMILIES))
AT_ONCE = 100  # runs that a process is given
OUTPUT = Path("build/schedules.json")


@dataclass
class Tally:
    """Sums over the runs of one pair. broken: violations by property. failed: numbers of the runs that had one.
    happened: what else there was in them, by name."""

    runs: int = 0
    swaps: int = 0
    contributions: int = 0
    packets: int = 0
    lost: int = 0
    repeated: int = 0
    cpu_s: float = 0.0
    broken: dict[str, int] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    happened: dict[str, int] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        for name in ("runs", "swaps", "contributions", "packets", "lost", "repeated", "cpu_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.broken = dict(Counter(self.broken) + Counter(other.broken))
        self.happened = dict(Counter(self.happened) + Counter(other.happened))
        self.failed = sorted(self.failed + other.failed)


@cache
def _switch(program: Program) -> P4Switch:
    """One for each process and program: loading takes longer than a run."""
    return P4Switch(program)


@cache
def _tree(racks: int) -> TreeSwitch:
    return TreeSwitch(*Program.tree(), racks)


def play(pair: Pair, number: int, program: Program, racks: int = 0) -> Outcome:
    """One run, through one switch or through a tree of so many racks. Raises Violation."""
    seed = PAIRS.index(pair) * 10**9 + number
    plan = random_plan(seed)
    strategies = alternating(pair, seed, plan.workers)
    if racks:
        return TreeSchedule(_tree(racks), plan, strategies).run()
    return Schedule(_switch(program), plan, strategies).run()


def play_many(pair: Pair, numbers: Sequence[int], program: Program, racks: int = 0) -> Tally:
    tally, began = Tally(), time.process_time()
    for number in numbers:
        tally.runs += 1
        try:
            outcome = play(pair, number, program, racks)
        except Violation as violation:
            tally.broken[violation.broken] = tally.broken.get(violation.broken, 0) + 1
            tally.failed.append(number)
            continue
        tally.swaps += outcome.swaps
        tally.contributions += outcome.contributions
        tally.packets += outcome.packets
        tally.happened = dict(Counter(tally.happened) + Counter(outcome.happened))
        tally.lost += outcome.balance.lost
        tally.repeated += outcome.balance.repeated
        if outcome.balance.lost or outcome.balance.repeated:
            tally.failed.append(number)
    tally.cpu_s = time.process_time() - began
    return tally


def play_all(
    runs: int, processes: int, program: Program, pairs: Iterable[Pair] = PAIRS, racks: int = 0
) -> Iterator[tuple[Pair, Tally]]:
    """So many runs of each pair, in several processes; tallies as they come."""
    with ProcessPoolExecutor(processes) as pool:
        parts = {
            pool.submit(play_many, pair, range(start, min(start + AT_ONCE, runs)), program, racks): pair
            for pair in pairs
            for start in range(0, runs, AT_ONCE)
        }
        for part in as_completed(parts):
            yield parts[part], part.result()


def table(tallies: dict[Pair, Tally]) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 2))
    columns = (
        "swaps between", "runs", "swaps", "contributions", "packets", "lost", "repeated", "stuck", "other", "CPU",
    )  # fmt: skip
    for heading in columns:
        shown.add_column(heading, justify="left" if heading == "swaps between" else "right")
    total = Tally()
    for pair, tally in tallies.items():
        total.add(tally)
        shown.add_row(*_row(" and ".join(pair), tally))
    shown.add_row(*_row("all", total), style="bold")
    return shown


def _row(name: str, tally: Tally) -> list[str]:
    stuck = tally.broken.get("no stuck worker", 0)
    numbers = (
        tally.runs, tally.swaps, tally.contributions, tally.packets, tally.lost, tally.repeated, stuck,
        sum(tally.broken.values()) - stuck,
    )  # fmt: skip
    return [name, *(f"{number:,}" for number in numbers), f"{tally.cpu_s:.1f} s"]


def happenings(total: Tally) -> Table:
    """How many of each there were."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2))
    shown.add_column("in all runs")
    shown.add_column("times", justify="right")
    for name, times in sorted(total.happened.items(), key=lambda item: (item[0].startswith("hostile"), -item[1])):
        shown.add_row(name, f"{times:,}")
    return shown


def _pair(text: str) -> Pair:
    first, _, second = text.partition(",")
    if (first, second) not in PAIRS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected two of {choices(FAMILIES)}, as bsp,ssp")
    return first, second


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, 1 or more")
    return int(text)


def _racks(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_RACKS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 to {MAX_RACKS}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m experiments.correctness.schedules", description="Random runs of each pair of strategies."
    )
    parser.add_argument("--runs", type=_positive, default=10_000, help="of each pair (default 10000)")
    parser.add_argument("--processes", type=_positive, default=os.cpu_count() or 1)
    parser.add_argument("--pair", type=_pair, action="append", help="only this one, as bsp,ssp; repeatable")
    parser.add_argument("--number", type=int, help="play only this run, and say what happens; needs one --pair")
    parser.add_argument("--racks", type=_racks, default=0, help=f"through a tree of so many, 1 to {MAX_RACKS}")
    parser.add_argument("--program", default="serene", help="serene, serene_jumbo, or a path to a .json")
    parser.add_argument("--out", type=Path, default=OUTPUT, help=f"the numbers as JSON (default {OUTPUT})")
    return parser


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    # A run's matrices are small: threads would only be in each other's way.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    console = terminal.console(140)
    pairs = tuple(options.pair or PAIRS)
    try:
        program = Program.load(options.program)
    except SereneError as error:
        parser.error(str(error))
    if options.number is not None:
        if len(pairs) != 1:
            parser.error("--number needs one --pair")
        return _play_alone(pairs[0], options.number, program, options.racks)
    try:
        outputs.check_file(options.out, outputs.MB)
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    began, tallies = time.monotonic(), {pair: Tally() for pair in pairs}
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("runs", total=options.runs * len(pairs))
        for pair, tally in play_all(options.runs, options.processes, program, pairs, options.racks):
            tallies[pair].add(tally)
            progress.advance(task, tally.runs)
    took = time.monotonic() - began
    console.print(table(tallies))
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    console.print(happenings(total))
    console.print(
        f"{total.runs:,} runs with {total.swaps:,} swaps in {took:.0f} s on {options.processes} processes: "
        f"{total.lost} contributions lost, {total.repeated} repeated, "
        f"{total.broken.get('no stuck worker', 0)} runs stuck",
        highlight=False,
    )
    found = {" ".join(pair): asdict(tally) for pair, tally in tallies.items()}
    for pair, tally in tallies.items():
        if tally.failed:
            print(
                f"error: {' and '.join(pair)}: runs {tally.failed[:10]} broke a rule; see one with "
                f"--pair {','.join(pair)} --number {tally.failed[0]}"
                f"{f' --racks {options.racks}' if options.racks else ''}",
                file=sys.stderr,
            )
    try:
        outputs.write_text(options.out, json.dumps({"seconds": round(took, 1), "pairs": found}, indent=2) + "\n")
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return int(any(tally.failed for tally in tallies.values()))


def _play_alone(pair: Pair, number: int, program: Program, racks: int) -> int:
    try:
        outcome = play(pair, number, program, racks)
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(outcome)
    return int(bool(outcome.balance.lost or outcome.balance.repeated))


if __name__ == "__main__":
    raise SystemExit(main())
