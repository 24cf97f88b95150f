"""Random runs of jobs whose workers come and go, on the compiled P4 program, in virtual time.

python -m serene.experiments.correctness.elastic [--runs 1000] [--first 0]
"""

from __future__ import annotations

from serene.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import sys
import time
from collections import Counter

from serene.experiments.correctness.virtual.checks import Balance, Violation
from serene.experiments.correctness.virtual.elastic import ElasticSchedule, random_changes
from serene.experiments.correctness.virtual.plan import Outcome
from serene.experiments.correctness.virtual.switch import P4Switch, Plane
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.program import Program


def play(switch: Plane, seed: int, often: float = 0.125) -> Outcome:
    """One run. Raises Violation."""
    plan, changes = random_changes(seed, often)
    return ElasticSchedule(switch, plan, alternating(FAMILIES, seed, plan.workers), changes).run()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m serene.experiments.correctness.elastic", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--runs", type=int, default=1000, help="number of runs (default 1000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first run (default 0)")
    options = parser.parse_args()
    switch, began = P4Switch(Program.load()), time.monotonic()
    broken, happened, contributions, swaps = Counter[str](), Counter[str](), 0, 0
    lost = repeated = 0
    for seed in range(options.first, options.first + options.runs):
        try:
            outcome = play(switch, seed)
        except Violation as violation:
            broken[violation.broken] += 1
            print(f"seed {seed}: {violation}", file=sys.stderr)
            switch = P4Switch(Program.load())
            continue
        if outcome.balance != Balance():
            print(f"seed {seed}: {outcome.balance}", file=sys.stderr)
        lost += outcome.balance.lost
        repeated += outcome.balance.repeated
        contributions, swaps = contributions + outcome.contributions, swaps + outcome.swaps
        happened.update(outcome.happened)
    print(
        f"{options.runs} runs, {contributions:,} contributions, {swaps:,} swaps, {time.monotonic() - began:.0f} s: "
        f"lost {lost}, repeated {repeated}, stuck {broken['no stuck worker']}, other violations "
        f"{broken.total() - broken['no stuck worker']}"
    )
    print(", ".join(f"{what} {often:,}" for what, often in sorted(happened.items())))
    return 1 if lost or repeated or broken else 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
