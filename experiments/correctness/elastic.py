"""Random runs of jobs whose workers come and go, on the compiled P4 program, in virtual time.

python -m serene.experiments.correctness.elastic [--runs 1000] [--first 0]
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import sys
import time
from functools import partial

from serene.arguments import Parser, whole
from serene.experiments.correctness.tallies import Tally, happenings, summary
from serene.experiments.correctness.virtual.elastic import ElasticSchedule, random_changes
from serene.experiments.correctness.virtual.plan import Outcome
from serene.experiments.correctness.virtual.switch import P4Switch, Plane
from serene.experiments.shared import terminal
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.program import Program


def play(switch: Plane, seed: int, often: float = 0.125) -> Outcome:
    """One run. Raises Violation."""
    plan, changes = random_changes(seed, often)
    return ElasticSchedule(switch, plan, alternating(FAMILIES, seed, plan.workers), changes).run()


def main() -> int:
    parser = Parser(__doc__)
    parser.add_argument("--runs", type=whole(1), default=1000, help="number of runs (default 1000)")
    parser.add_argument("--first", type=whole(0), default=0, help="number of the first run (default 0)")
    options = parser.parse_args()
    switch, began, total = P4Switch(Program.load()), time.monotonic(), Tally()
    for seed in range(options.first, options.first + options.runs):
        if (violation := total.note(seed, partial(play, switch, seed))) is not None:
            print(f"seed {seed}: {violation}", file=sys.stderr)
            switch = P4Switch(Program.load())
    console = terminal.console(140, highlight=False)
    console.print(happenings(total))
    console.print(
        f"{total.runs:,} runs, {total.contributions:,} contributions, {total.swaps:,} swaps, "
        f"{time.monotonic() - began:.0f} s: {summary(total)}"
    )
    if total.failed:
        print(f"error: seeds {total.failed[:10]} broke a rule", file=sys.stderr)
    return int(bool(total.failed))


if __name__ == "__main__":
    raise SystemExit(ended(main))
