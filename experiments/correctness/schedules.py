"""Random runs in one process and in virtual time, with swaps between each pair of strategies: ``make schedules``.

A run has the workers' real code and the P4 program, with a network between them that loses, duplicates, reorders and
delays packets. Workers pause, die, join twice and are evicted; the controller dies and comes back with another clock;
the switch, or one of a tree's, restarts without its state; jobs are deleted and their ids used again; and a hostile
host sends forged packets. Each run is checked for contributions that are missing from the sums or in them twice, for
stuck workers, for workers beyond their staleness bound, and for workers that read another BSP sum than the others. Its
pair and its number determine a run, which can be played again alone.

``make schedules RACKS=3 FIRST=2000 RUNS=1000 OUT=part.json`` plays some of them, on a tree of switches;
`serene.experiments.correctness.tallies` adds up parts.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from functools import cache, partial
from pathlib import Path

from rich.progress import Progress

from serene.arguments import Parser, command, probability, usage, whole
from serene.errors import BadUsage, choices
from serene.experiments.correctness import tallies as parts
from serene.experiments.correctness.tallies import Pair, Part, Tally
from serene.experiments.correctness.virtual.plan import Outcome
from serene.experiments.correctness.virtual.random_plans import RESTARTS, TAKE_OVERS, random_plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.correctness.virtual.tree import TreeSchedule, TreeSwitch
from serene.experiments.shared import terminal
from serene.experiments.shared.pool import Processes
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.process import outputs
from serene.program import Program
from serene.racks import MAX_RACKS

PAIRS: tuple[Pair, ...] = tuple(itertools.product(FAMILIES, FAMILIES))
NUMBERS = 10**9  # runs of each pair that there are, numbered from 0
AT_ONCE = 100  # runs that a process is given at a time
OUTPUT = Path("build/schedules.json")


@cache
def _switch(program: Program) -> P4Switch:
    """Cached for each process, because loading a program takes longer than a run."""
    return P4Switch(program)


@cache
def _tree(racks: int) -> TreeSwitch:
    return TreeSwitch(*Program.tree(), racks)


def play(pair: Pair, number: int, program: Program, racks: int = 0, take_overs: float = TAKE_OVERS) -> Outcome:
    """One run, through one switch or through a tree of so many racks. take_overs: as of `random_plan`. Raises
    Violation."""
    seed = PAIRS.index(pair) * NUMBERS + number
    plan = random_plan(seed, take_overs=take_overs, restarts=RESTARTS)
    strategies = alternating(pair, seed, plan.workers)
    if racks:
        return TreeSchedule(_tree(racks), plan, strategies).run()
    return Schedule(_switch(program), plan, strategies).run()


def play_many(
    pair: Pair, numbers: Sequence[int], program: Program, racks: int = 0, take_overs: float = TAKE_OVERS
) -> Tally:
    """Plays the runs of a pair that have these numbers. A violation is counted, not raised."""
    tally, began = Tally(), time.process_time()
    for number in numbers:
        tally.note(number, partial(play, pair, number, program, racks, take_overs))
    tally.cpu_s = time.process_time() - began
    return tally


def play_all(
    numbers: range, processes: int, program: Program, pairs: Iterable[Pair], racks: int, take_overs: float
) -> Iterator[tuple[Pair, Tally]]:
    """Plays the runs of each pair that have these numbers, in several processes; yields tallies as they come. Raises
    SereneError, WorkerLost, and what loading a program raises."""
    with Processes(processes, (P4Switch.__module__, TreeSwitch.__module__)) as pool:
        played = {
            pool.submit(play_many, pair, numbers[start : start + AT_ONCE], program, racks, take_overs): pair
            for start in range(0, len(numbers), AT_ONCE)
            for pair in pairs
        }
        for some in as_completed(played):
            yield played[some], some.result()


def _pair(text: str) -> Pair:
    first, _, second = text.partition(",")
    if (first, second) not in PAIRS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected two of {choices(FAMILIES)}, as bsp,ssp")
    return first, second


def _parser() -> Parser:
    parser = Parser("Plays random runs with faults and swaps, for each pair of strategies.")
    add = parser.add_argument
    add("--runs", type=whole(1), default=10_000, help="runs of each pair (default 10000)")
    add("--first", type=whole(0, NUMBERS - 1), default=0, help="number of the first run (default 0)")
    add(
        "--processes",
        type=whole(1),
        default=os.cpu_count() or 1,
        help="number of processes (default: one for each processor)",
    )
    add("--pair", type=_pair, action="append", help="run only this pair, as bsp,ssp; repeatable")
    add("--number", type=whole(0, NUMBERS - 1), help="play one run and print its events; needs one --pair")
    add("--racks", type=whole(1, MAX_RACKS), default=0, help=f"number of racks of a tree of switches, 1 to {MAX_RACKS}")
    add(
        "--take-overs", type=probability, default=TAKE_OVERS,
        help=f"probability that two processes of one worker compete for its place (default {TAKE_OVERS})",
    )  # fmt: skip
    add("--program", default="serene", help="serene, serene_jumbo, or a path to a .json")
    add("--out", type=Path, default=OUTPUT, help=f"the numbers as JSON (default {OUTPUT})")
    return parser


@command
def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    # The matrices of a run are small: NumPy's threads would only slow one another down.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    console = terminal.console(140)
    pairs = tuple(options.pair or PAIRS)
    with usage():
        program = Program.load(options.program)
        if options.number is None:
            outputs.check_file(options.out, outputs.MB)
    if options.number is not None:
        if len(pairs) != 1:
            raise BadUsage("--number needs one --pair")
        outcome = play(pairs[0], options.number, program, options.racks, options.take_overs)
        print(outcome)
        return int(bool(outcome.balance.lost or outcome.balance.repeated))
    built, began, tallies = parts.build(), time.monotonic(), {pair: Tally() for pair in pairs}
    numbers = range(options.first, options.first + options.runs)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("runs", total=options.runs * len(pairs))
        for pair, tally in play_all(numbers, options.processes, program, pairs, options.racks, options.take_overs):
            tallies[pair].add(tally)
            progress.advance(task, tally.runs)
    took = time.monotonic() - began
    total = parts.show(console, tallies)
    console.print(
        f"{total.runs:,} runs from {options.first:,} on with {total.swaps:,} swaps in {took:.0f} s on "
        f"{options.processes} processes: {parts.summary(total)}",
        highlight=False,
    )
    given = [(name, getattr(options, name)) for name in ("racks", "take_overs")]
    same = "".join(f" --{name.replace('_', '-')} {value}" for name, value in given if value != parser.get_default(name))
    for pair, tally in tallies.items():
        if tally.failed:
            print(
                f"error: {' and '.join(pair)}: runs {tally.failed[:10]} broke a rule; see one with "
                f"--pair {','.join(pair)} --number {tally.failed[0]}{same}",
                file=sys.stderr,
            )
    part = Part(
        built, options.program, options.racks, options.take_overs, options.first, options.runs, round(took, 1), tallies
    )
    part.write(options.out)
    return int(any(tally.failed for tally in tallies.values()))


if __name__ == "__main__":
    raise SystemExit(ended(main))
