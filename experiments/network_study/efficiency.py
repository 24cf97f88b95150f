"""How many rounds training needs: a model of gradients' lateness and the number of workers, fitted to real trainings.

    python -m serene.experiments.network_study.efficiency --runs runs/regret --csv docs/results/network-rounds.csv

A round is one contribution of every worker in the mean. With n workers and gradients that are late by d rounds beyond
those of BSP (`training.lateness`), an optimiser needs exp(c + b / n + a d) rounds to the accuracy. b / n is the noise
of a mean over n batches (McCandlish et al., An Empirical Model of Large-Batch Training, 2018). In theory, too, the mean
delay decides, not the longest one (Koloskova, Stich and Jaggi, Sharper Convergence Guarantees for Asynchronous SGD,
NeurIPS 2022). a, b and c are fitted to the straggler study's runs, with 4 and 8 workers. To judge them on more workers
than that, real gradients are computed in the order in which the network study's workers read and send.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from serene.arguments import Parser, command
from serene.errors import SereneError
from serene.experiments.network_study.cells import MB, NetworkCell, our_switch
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows.solver import LV08
from serene.experiments.network_study.training import SWITCH, Training, lateness, simulated
from serene.experiments.shared import terminal
from serene.experiments.straggler_study.cases import OPTIMISERS, STEPS, STRAGGLERS
from serene.experiments.straggler_study.cell import SOFTMAX, Cell
from serene.experiments.straggler_study.grid import DATASET
from serene.experiments.straggler_study.learners import learner
from serene.experiments.straggler_study.measures import SMOOTHING, Curve, curve
from serene.experiments.straggler_study.trace import Trace
from serene.process import outputs
from serene.strategy import parse
from serene.workers import stragglers

SEEDS = (1, 2, 3)  # of the runs that are judged; others chose targets and defaults
BOUNDED = ("bsp", "ssp:1", "ssp:3", "ssp:10", "asp")
TARGET = 0.975  # of the accuracy at which the earliest of an optimiser's runs ended: all of them get there
MEASURED, REPLAYED = "straggler study", "replayed"

LARGE = NetworkCell(2, 128, 0.25)  # on which gradients are replayed
REPLAYS = tuple((strategy, straggler) for straggler in ("none", "random") for strategy in ("bsp", "ssp:3", "asp"))
ROUNDS, EVERY, EVALUATED = 100, 4, 8  # at most; between evaluations; workers that are evaluated


COLUMNS = ["engine", "optimiser", "target", "workers", "strategy", "straggler", "share", "lateness", "rounds"]


def of_folder(folder: Path) -> pd.DataFrame:
    """The straggler study's runs in a folder, under BSP, SSP and ASP: a row with COLUMNS for each setting, the mean
    over seeds. engine: MEASURED. share: of the exchange in a step. lateness: as in `training.lateness`. rounds: to the
    optimiser's ``target``, an accuracy. Raises SereneError where there are none."""
    names = {
        (model, each.rate, each.momentum): f"{model} {name}"
        for model, rates in OPTIMISERS.items()
        for name, each in rates.items()
    }
    kinds = {text: name for name, text in STRAGGLERS.items()}
    found = []
    for path in sorted(folder.glob("*.npz")):
        trace = Trace.load(path)
        cell = trace.cell
        name = names.get((cell.model, cell.learning_rate or 0.0, cell.momentum))
        # Others are of make compare with STRAGGLER=, STEPS= or MININET=1.
        ours = cell.straggler in kinds and cell.steps == STEPS and cell.engine == "simulated"
        if name and ours and cell.strategy in BOUNDED and cell.seed in SEEDS and cell.until:
            late = 0.0 if cell.strategy == "bsp" else lateness(contributions(trace), cell.workers)
            setting = (name, cell.workers, cell.strategy, kinds[cell.straggler], cell.share)
            found.append((*setting, late, cell.until, curve(trace)))
    if not found:
        raise SereneError(f"{folder} has no runs of the straggler study: `make compare SEEDS=1,2,3` makes them")
    settings = ["optimiser", "workers", "strategy", "straggler", "share"]
    runs = pd.DataFrame(found, columns=[*settings, "lateness", "until", "curve"])
    runs["target"] = (TARGET * runs.groupby("optimiser")["until"].transform("min")).round(4)
    reached = [learned.reaches(target) for learned, target in zip(runs["curve"], runs["target"], strict=True)]
    runs["rounds"] = [each[1] if each else np.nan for each in reached]
    by = runs.groupby([*settings, "target"])
    means = by[["lateness", "rounds"]].mean().round({"lateness": 4, "rounds": 2})
    return means[by["rounds"].count() == len(SEEDS)].reset_index().assign(engine=MEASURED)[COLUMNS].sort_values(COLUMNS)


def contributions(trace: Trace) -> list[tuple[int, int]]:
    """In the order in which they were added up, (worker, how many its sender had read)."""
    steps = trace.steps
    sent = np.round(steps["ended"] - steps["waited"], 9)
    order = np.argsort(sent, kind="stable")
    read, found = [0] * trace.cell.workers, []
    for place, row in enumerate(order.tolist()):
        worker = int(steps["worker"][row])
        found.append((worker, read[worker]))
        by_release = int(np.searchsorted(sent[order], round(float(steps["ended"][row]), 9), side="right"))
        read[worker] = max(place + 1, by_release) if steps["waited"][row] > 1e-6 else place + 1
    return found


def replay(order: Sequence[tuple[int, int]], cell: Cell, target: float) -> float:
    """The rounds to the target, with real gradients that are read and added up in this order; NaN if it is not
    reached. The accuracy is smoothed as in the straggler study."""
    learners = [learner(cell, worker) for worker in range(cell.workers)]
    total = np.zeros(learners[0].size)
    last = [total] * cell.workers
    readers = defaultdict(list)
    for worker, read in order:
        readers[read].append(worker)
    done = [0] * cell.workers
    shown = range(0, cell.workers, max(cell.workers // EVALUATED, 1))
    recent = {worker: [learners[worker].accuracy()] * SMOOTHING for worker in shown}
    reads, rounds, accuracies = 0, [0.0], [learners[0].accuracy()]
    for place, (worker, _) in enumerate(order):
        for reader in readers[place]:
            learners[reader].apply(total - last[reader])
            last[reader] = total
            reads += done[reader] > 0
            if reader in recent and done[reader] and done[reader] % EVERY == 0:
                recent[reader] = [*recent[reader][1:], learners[reader].accuracy()]
                rounds.append(reads / cell.workers)
                accuracies.append(float(np.mean(list(recent.values()))))
        if accuracies[-1] >= target:
            break
        done[worker] += 1
        total = total + learners[worker].gradient(done[worker])[0]
    reached = Curve(np.array(rounds), np.array(rounds), np.array(accuracies)).reaches(target)
    return reached[1] if reached else float("nan")


def replayed(
    optimiser: str, target: float, strategy: str, straggler: str, network: NetworkCell = LARGE
) -> dict[str, object]:
    """A row with COLUMNS: training by aggregation in the switches on a large network, in the order that the simulation
    of it gives."""
    exchange = Exchange(network.clos(), 100 * MB, our_switch())
    model, _, rate = optimiser.partition(" ")
    chosen, workers = OPTIMISERS[model][rate], exchange.network.hosts
    training = Training(exchange, SWITCH, parse(strategy), stragglers.parse(STRAGGLERS[straggler]), iterations=ROUNDS)
    order = simulated(training, LV08)
    cell = Cell(workers=workers, model=model, dataset=DATASET, learning_rate=chosen.rate, momentum=chosen.momentum)
    late = 0.0 if strategy == "bsp" else lateness(order, workers)
    rounds = replay(order, cell, target)
    values = REPLAYED, optimiser, target, workers, strategy, straggler, 0.2, round(late, 4), round(rounds, 2)
    return dict(zip(COLUMNS, values, strict=True))


@dataclass(frozen=True)
class Cost:
    """What lateness costs an optimiser. slope: a, of the logarithm of the rounds. error: of that logarithm, root mean
    square, for runs that were left out when a was fitted: the worst of leaving out each strategy, straggler and number
    of workers in turn. constant, noise: c and b. far: the error, if known, for the replayed runs of more workers."""

    slope: float
    error: float
    constant: float
    noise: float
    far: float

    def factor(self, late: float, sigmas: float = 0.0) -> float:
        """How many times as many rounds as BSP. sigmas: so many errors more than expected."""
        return float(np.exp(self.slope * late + sigmas * max(self.error, 0 if np.isnan(self.far) else self.far)))


def _excess(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs without BSP, with ``excess``, the logarithm of their rounds over those of BSP in the same setting."""
    setting = ["engine", "workers", "straggler", "share"]
    bsp = runs[runs["strategy"] == "bsp"].set_index(setting)["rounds"].rename("bsp")
    others = runs[runs["strategy"] != "bsp"].join(bsp, on=setting)
    return others.assign(excess=np.log(others["rounds"] / others["bsp"]))


def _slope(runs: pd.DataFrame) -> float:
    return float(runs["lateness"] @ runs["excess"] / (runs["lateness"] @ runs["lateness"]))


def _off(runs: pd.DataFrame, slope: float) -> pd.Series:
    return runs["excess"] - slope * runs["lateness"]


def costs(runs: pd.DataFrame) -> dict[str, Cost]:
    """The fitted model of each optimiser. runs: with COLUMNS."""
    found = {}
    for name, mine in runs[np.isfinite(runs["rounds"])].groupby("optimiser", sort=False):
        measured = mine[mine["engine"] == MEASURED]
        near, errors = _excess(measured), []
        for kind in ("strategy", "straggler", "workers"):
            off = [
                _off(out, _slope(near.drop(out.index))) for _, out in near.groupby(kind) if len(out) < len(near)
            ]  # fmt: skip
            errors.append(_rms(pd.concat(off)) if off else np.nan)
        slope, bsp = _slope(near), measured[measured["strategy"] == "bsp"]
        terms = np.array([np.ones(len(bsp)), 1 / bsp["workers"]]).T[:, : bsp["workers"].nunique()]
        fitted, *_ = np.linalg.lstsq(terms, np.log(bsp["rounds"]), rcond=None)
        far = _rms(_off(_excess(mine[mine["engine"] == REPLAYED]), slope))
        found[name] = Cost(slope, float(np.nanmax(errors)), float(fitted[0]), float([*fitted, 0.0][1]), far)
    return found


def _rms(values: pd.Series) -> float:
    return float(np.sqrt((values**2).mean()))


@command
def main() -> None:
    parser = Parser("Writes the number of rounds that training needs, from the runs of make compare.")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/regret"), help="folder of make compare (default %(default)s)"
    )
    parser.add_argument("--csv", type=Path, required=True, help="output file; replayed rows in it are kept")
    options = parser.parse_args()
    console = terminal.console()
    runs = of_folder(options.runs)
    if options.csv.exists():
        before = pd.read_csv(options.csv)
        runs = pd.concat([runs, before[before["engine"] == REPLAYED]])
    kept = {
        (row.optimiser, row.target, row.strategy, row.straggler)
        for row in runs[runs["engine"] == REPLAYED].itertuples()
    }
    measured = runs[(runs["engine"] == MEASURED) & runs["optimiser"].str.startswith(SOFTMAX)]
    for target, name in dict.fromkeys(zip(measured["target"], measured["optimiser"], strict=True)):
        for strategy, straggler in REPLAYS:
            if (name, target, strategy, straggler) not in kept:
                row = replayed(name, target, strategy, straggler)
                console.print(f"{row}", highlight=False)
                runs = pd.concat([runs, pd.DataFrame([row])])
                outputs.write_text(options.csv, runs.to_csv(index=False))
    outputs.write_text(options.csv, runs.to_csv(index=False))
    for name, cost in costs(runs.reset_index(drop=True)).items():
        console.print(f"{name}: {cost}", highlight=False)


if __name__ == "__main__":
    raise SystemExit(ended(main))
