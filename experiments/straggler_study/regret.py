"""The regret of every strategy: ``python -m serene.experiments.straggler_study.regret``, or `make compare`.

Regret is a strategy's time to the accuracy over that of the best fixed strategy of the same cell in hindsight; 1.00 is
as good as if one had known. Everything runs in virtual time, with real gradients and the compiled program. Runs are
kept in ``--out``, so a command that was stopped goes on. ``--csv`` writes ``cell,strategy,regret``: the mean time of
the seeds over the best fixed strategy's mean time.
"""

from __future__ import annotations

from serene.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from serene import outputs
from serene.arguments import Parser
from serene.errors import SereneError, choices
from serene.experiments.shared import studies
from serene.experiments.straggler_study.cell import SOFTMAX, Cell, Network
from serene.experiments.straggler_study.grid import LINKS, PARAMETERS, SHARES, computing, fixed, frame_bits
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.sweep import Parallel, sweep
from serene.experiments.straggler_study.trace import Trace

STEPS = 100
STRAGGLERS = {
    "none": "none",
    "always": "heterogeneous:factor=3.0,workers=0",
    "heterogeneous": "heterogeneous:factor=1.5,workers=0+1",
    "random": "slow_worker:probability=0.15,low=0.5,high=2.0",
    "pauses": "slow_worker:probability=0.02,low=10.0,high=20.0",
    "changing": "heterogeneous:factor=3.0,workers=0,first=34,last=66",
}
# A mild rate and one near the edge, where staleness costs accuracy.
RATES = {SOFTMAX: {"mild": 0.5, "edge": 3.0}, "mlp": {"mild": 0.05, "edge": 0.3}}
SIZES = {SOFTMAX: (4, 8, 16), "mlp": (4,)}
SEEDS, TARGET_SEEDS = (1, 2, 3), (101, 102)
TARGET_AT = 0.6  # the target is what BSP without stragglers has after this part of its steps, with TARGET_SEEDS

# All with the same period, the virtual trainings being short. Sync-Switch: BSP for a quarter of the steps, as theirs.
AUTOMATIC = {
    "auto": "auto:pacing",
    "dssp": "auto:dssp:period=0.1",
    "sync-switch": f"auto:sync-switch:after={STEPS // 4},period=0.1",
    "waiting": "auto:waiting:period=0.1",
}
MARKS = ("<!-- regret: begin -->", "<!-- regret: end -->")
NEVER = 2.0  # a run that does not reach the target counts as so many times its length


@dataclass(frozen=True)
class Case:
    """A cell without strategy and seed."""

    model: str
    rate: str
    share: float
    straggler: str
    workers: int

    @property
    def name(self) -> str:
        """The cell in results' files."""
        return f"{self.model} {self.rate}, share {self.share:.0%}, {self.straggler}, {self.workers} workers"

    def cell(self, strategy: str, seed: int) -> Cell:
        """One run."""
        network = Network(worker_pps=LINKS[self.share] * 1e6 / frame_bits(), switch_pps=0, latency_us=50)
        return Cell(
            workers=self.workers, model=self.model, straggler=STRAGGLERS[self.straggler], strategy=strategy, seed=seed,
            steps=STEPS, compute_ms=round(computing(self.share, "mlp"), 3), eval_every=2, share=self.share,
            learning_rate=RATES[self.model][self.rate], stands_for=PARAMETERS["mlp"], network=network,
        )  # fmt: skip

    def fixed(self) -> tuple[str, ...]:
        """The fixed strategies, of which the best one in hindsight is the measure."""
        return fixed(self.workers)

    def calm(self) -> Case:
        """The case by which the target is chosen."""
        return replace(self, straggler="none", share=SHARES[1])


def cases() -> Iterator[Case]:
    """All cases."""
    for model, sizes in SIZES.items():
        for workers in sizes:
            for rate in RATES[model]:
                for share in SHARES:
                    for straggler in STRAGGLERS:
                        yield Case(model, rate, share, straggler, workers)


def cells(chosen: Sequence[Case], automatic: Mapping[str, str]) -> list[Cell]:
    """All runs, each once."""
    targets = (case.calm().cell("bsp", seed) for case in chosen for seed in TARGET_SEEDS)
    judged = (
        case.cell(strategy, seed)
        for case in chosen
        for strategy in (*case.fixed(), *automatic.values())
        for seed in SEEDS
    )
    return list(dict.fromkeys((*targets, *judged)))


def target(case: Case, store: Store) -> float:
    """The accuracy to reach, 0 to 1."""
    reached = []
    for seed in TARGET_SEEDS:
        learned = curve(_trace(store, case.calm().cell("bsp", seed)))
        reached.append(float(learned.accuracy[learned.steps <= TARGET_AT * STEPS].max()))
    return float(np.mean(reached))


def seconds(cell: Cell, wanted: float, store: Store) -> float:
    """Virtual seconds to the accuracy ``wanted``; NEVER times the run's length, if it is not reached."""
    learned = curve(_trace(store, cell))
    reached = learned.reaches(wanted)
    return reached[0] if reached else NEVER * float(learned.t[-1])


def regrets(case: Case, automatic: Mapping[str, str], store: Store) -> dict[str, float]:
    """Each strategy's mean time over that of the best fixed strategy, by the strategy's name; k-of-n for k = 3/4 n is
    "quorum"."""
    wanted = target(case, store)
    means = {
        name: float(np.mean([seconds(case.cell(strategy, seed), wanted, store) for seed in SEEDS]))
        for name, strategy in {**{each: each for each in case.fixed()}, **automatic}.items()
    }
    best = min(means[each] for each in case.fixed())
    return {name.partition(":")[0] if name.startswith("quorum") else name: mean / best for name, mean in means.items()}


def _trace(store: Store, cell: Cell) -> Trace:
    trace = store.get(cell)
    if trace is None:
        raise SereneError(f"{cell}: {store.why_missing(cell)}")
    return trace


def run(options: argparse.Namespace, console: Console) -> None:
    """Runs what is missing, and prints the table. Raises SereneError."""
    chosen = [case for case in cases() if case.model in options.models.split(",")]
    if not chosen:
        raise SereneError(f"--models {options.models}: expected {choices(RATES)}, separated by commas")
    automatic = dict(AUTOMATIC)
    if options.strategies:
        automatic = {name: AUTOMATIC.get(name, name) for name in options.strategies.split(",")}
    store = Store(options.out)
    sweep(cells(chosen, automatic), store, console, Parallel(options.parallel))
    found = [
        Regret(case.name, name, round(value, 3))
        for case in chosen
        for name, value in regrets(case, automatic, store).items()
    ]
    console.print(_table(found))
    if options.csv:
        outputs.write_text(options.csv, to_csv(found))
    if options.page:
        write_page(options.page, found)


@dataclass(frozen=True)
class Regret:
    """A row of the results."""

    cell: str
    strategy: str
    regret: float

    @property
    def straggler(self) -> str:
        """The key in STRAGGLERS."""
        return self.cell.split(", ")[2]


COLUMNS = ("strategy", "mean", "worst", "at most 1.05", *STRAGGLERS)


def summary(found: Sequence[Regret]) -> list[tuple[str, ...]]:
    """The table's rows, the best mean first. Its last columns are means by straggler."""
    by: dict[str, list[Regret]] = {}
    for each in found:
        by.setdefault(each.strategy, []).append(each)
    rows = []
    for name, mine in sorted(by.items(), key=lambda item: np.mean([each.regret for each in item[1]])):
        values = np.array([each.regret for each in mine])
        kinds = [np.mean([each.regret for each in mine if each.straggler == kind]) for kind in STRAGGLERS]
        numbers = (f"{number:.2f}" for number in (values.mean(), values.max()))
        rows.append((name, *numbers, f"{np.mean(values <= 1.05):.0%}", *(f"{mean:.2f}" for mean in kinds)))
    return rows


def _table(found: Sequence[Regret]) -> Table:
    shown = Table(title=f"regret in {len({each.cell for each in found})} cells", box=None)
    for column in COLUMNS:
        shown.add_column(column, justify="left" if column == "strategy" else "right")
    for row in summary(found):
        shown.add_row(*row)
    return shown


def to_csv(found: Iterable[Regret]) -> str:
    """``cell,strategy,regret``, a row each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Regret))
    writer.writerows(astuple(each) for each in found)
    return text.getvalue()


def from_csv(text: str) -> list[Regret]:
    """What ``to_csv`` wrote."""
    return [Regret(row["cell"], row["strategy"], float(row["regret"])) for row in csv.DictReader(io.StringIO(text))]


def write_page(page: Path, found: Sequence[Regret]) -> None:
    """Writes the table into a page, between the lines of MARKS. Raises SereneError if the page lacks them."""
    text = page.read_text()
    first, last = (text.find(mark) for mark in MARKS)
    if not 0 <= first < last:
        raise SereneError(f"{page} has no line {MARKS[0]} with a line {MARKS[1]} after it")
    lines = [COLUMNS, ("---",) * len(COLUMNS), *summary(found)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    outputs.write_text(page, f"{text[:first]}{MARKS[0]}\n{table}\n{text[last:]}")


def main() -> int:
    parser = Parser(prog="python -m serene.experiments.straggler_study.regret", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add = parser.add_argument
    add(
        "--strategies",
        default="",
        help=f"beside the fixed ones: {choices(AUTOMATIC)}, or a strategy (default: all of these)",
    )
    add("--models", default=",".join(RATES), help=f"{choices(RATES)}, separated by commas (default both)")
    add("--out", type=Path, default=Path("runs/regret"), help="directory for the runs (default runs/regret)")
    add("--csv", type=Path, help="file for the regrets")
    add("--page", type=Path, help="a page that has the table, which is written anew")
    add("--parallel", type=int, default=os.cpu_count() or 1, help="runs at a time (default: one for each processor)")
    return studies.main(parser.parse_args(), run)


if __name__ == "__main__":
    raise SystemExit(ended(main))
