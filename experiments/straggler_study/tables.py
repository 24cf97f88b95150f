"""The report's tables, as lists of rows; the CSV files have the same numbers unformatted."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.straggler_study import grid
from experiments.straggler_study.agreement import MEASURES, Pair
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.measures import curve
from experiments.straggler_study.names import straggler_name
from experiments.straggler_study.study import Study
from serene.palette import look

Row = list[str]


@dataclass(frozen=True)
class Claim:
    """What the paper's authors' logs say of s = 10 (`authors.py`): change of the time to their
    target against their own BSP. Their failure is another one than ours, and so is their waiting."""

    what: str
    theirs: str
    workers: int
    straggler: str


CLAIMS = (
    Claim("4 workers, slow_worker, s = 10", "-39.7 %, -42.3 %, -27.9 %", 4, grid.SLOW),
    Claim("8 workers, slow_worker", "-46.4 %", 8, grid.SLOW),
    Claim("4 workers, no straggler", "-11.6 %", 4, grid.NONE),
)


def against_the_paper(study: Study) -> tuple[Row, list[Row]]:
    """Their numbers and ours: SSP(10), the best strategy there is, and the best automatic one."""
    head = ["", "the paper's authors", "SSP(10)", "best strategy", "best automatic one"]
    rows = []
    for claim in CLAIMS:
        cells = study.strategies(study.grid.study, "mlp", claim.workers, claim.straggler)
        if not cells:
            continue
        base, ten = _one(cells, "bsp"), _one(cells, "ssp:10")
        row = [claim.what, claim.theirs, study.against(ten, base).time.percent()]
        for chosen in ([cell for cell in cells if not cell.automatic], [cell for cell in cells if cell.automatic]):
            best = study.best(chosen)
            row.append(f"{look(best.strategy).name}: {study.against(best, base).time.percent()}")
        rows.append(row)
    return head, rows


def _one(cells: Sequence[Cell], strategy: str) -> Cell:
    return next(cell for cell in cells if cell.strategy == strategy)


def parts(study: Study, model: str) -> tuple[Row, list[Row]]:
    """Every strategy in every case: time to the target and its two factors, against BSP at the same learning rate."""
    head = [
        "workers", "straggler", "strategy", "time to the target [s]", "change of it", "time per step",
        "steps to the target", "cumulative waiting",
    ]  # fmt: skip
    rows = []
    for _, workers, straggler in [case for case in study.cases(study.grid.study) if case[0] == model]:
        cells = study.strategies(study.grid.study, model, workers, straggler)
        base = _one(cells, "bsp")
        for cell in cells:
            changes = study.against(cell, base)
            shown = [changes.time, changes.step, changes.steps, changes.waiting]
            rows.append(
                [
                    str(workers), straggler_name(straggler), look(cell.strategy).name,
                    study.spread(cell, "target_s").text(),
                    *(["-"] * 4 if cell.strategy == "bsp" else [spread.percent() for spread in shown]),
                ]
            )  # fmt: skip
    return head, rows


def against_tuned(study: Study) -> tuple[Row, list[Row]]:
    """The same with a BSP whose learning rate was chosen, and with the strategy's own chosen by the same effort."""
    head = [
        "workers", "straggler", "strategy", "against BSP, same rate", "tuned BSP's rate", "against tuned BSP",
        "its time per step", "its steps", "own tuned rate", "tuned against tuned BSP",
    ]  # fmt: skip
    rows = []
    for _, workers, straggler in study.cases(study.grid.tuning):
        cells = study.strategies(study.grid.study, "mlp", workers, straggler)
        base = _one(cells, "bsp")
        tuned = study.tuned(base)
        for cell in cells:
            same, other = study.against(cell, base), study.against(cell, tuned)
            row = [
                str(workers), straggler_name(straggler), look(cell.strategy).name,
                "-" if cell.strategy == "bsp" else same.time.percent(), f"{_rate(tuned):g}", other.time.percent(),
                other.step.percent(), other.steps.percent(),
            ]  # fmt: skip
            has_rates = any(
                each.strategy == cell.strategy and each.learning_rate is not None
                for each in study.grid.tuning
                if (each.workers, each.straggler) == (workers, straggler)
            )
            mine = study.tuned(cell) if has_rates else None
            row += [f"{_rate(mine):g}", study.against(mine, tuned).time.percent()] if mine is not None else ["", ""]
            rows.append(row)
    return head, rows


def _rate(cell: Cell) -> float:
    return cell.learning_rate or grid.OWN_RATE[cell.model]


def map_rows(study: Study) -> tuple[Row, list[Row]]:
    """The map's cells: best fixed strategy, its gain, and how near each automatic strategy comes to it."""
    cells = study.grid.map
    names = list(dict.fromkeys(cell.strategy for cell in cells if cell.automatic))
    head = ["straggler", "workers", "best fixed strategy", "gain over BSP"]
    head += [f"{look(name).name} / best" for name in names]
    rows = []
    for model, workers, straggler in study.cases(cells):
        case = study.strategies(cells, model, workers, straggler)
        best = study.best([cell for cell in case if not cell.automatic])
        gain = study.against(best, _one(case, "bsp")).time
        row = [straggler_name(straggler), str(workers), look(best.strategy).name, gain.percent()]
        shortest = study.spread(best, "target_s").middle
        row += [f"{study.spread(_one(case, name), 'target_s').middle / shortest:.2f}" for name in names]
        rows.append(row)
    return head, rows


def nearness(study: Study) -> tuple[Row, list[Row]]:
    """For each automatic strategy: its time over the best fixed strategy's, over all cases of study and map."""
    head = ["automatic strategy", "cases", "median", "worst", "BSP in the same cases, median", "worst"]
    found: dict[str, list[tuple[float, float]]] = {}
    for cells in (study.grid.study, study.grid.map):
        for case in study.cases(cells):
            strategies = study.strategies(cells, *case)
            best = study.spread(study.best([cell for cell in strategies if not cell.automatic]), "target_s").middle
            base = study.spread(_one(strategies, "bsp"), "target_s").middle / best
            for cell in strategies:
                if cell.automatic:
                    mine = study.spread(cell, "target_s").middle / best
                    found.setdefault(cell.strategy, []).append((mine, base))
    rows = []
    for name, values in found.items():
        mine, base = np.array(values).T
        shown = [f"{function(column):.2f}" for column in (mine, base) for function in (np.median, np.max)]
        rows.append([look(name).name, str(len(values)), *shown])
    return head, rows


def agreement_rows(found: list[Pair]) -> tuple[Row, list[Row]]:
    """Both engines' numbers, cell by cell."""
    head = ["workers", "straggler", "strategy", "seed"]
    head += [f"{title}: {engine}" for _, title in MEASURES for engine in ("emulated", "simulated")]
    rows = []
    for pair in found:
        cell = pair.cell
        row = [str(cell.workers), cell.straggler.partition(":")[0], look(cell.strategy).name, str(cell.seed)]
        row += [f"{values[name]:.3f}" for name, _ in MEASURES for values in (pair.emulated, pair.simulated)]
        rows.append(row)
    return head, rows


# -- CSV -----------------------------------------------------------------------------------------------------


def write_csv(path: Path, head: Row, rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def runs_csv(study: Study, path: Path) -> Path:
    """One row a run: settings, and all numbers."""
    head = [
        "engine", "workers", "model", "straggler", "strategy", "learning_rate", "seed", "target_accuracy",
        "target_s", "target_steps", "step_s", "compute_s", "network_s", "waiting_s", "waited_s_sum",
        "final_accuracy", "retransmissions", "contributions_sent", "contributions_applied", "engine_s", "digest",
    ]  # fmt: skip
    rows = []
    for cell in study.grid.cells():
        trace = study.store.get(cell)
        if trace is None:
            continue
        found = study.numbers(cell)
        rows.append(
            [
                cell.engine, cell.workers, cell.model, cell.straggler, cell.strategy, cell.learning_rate or "",
                cell.seed,
                grid.TARGETS.get(cell.model, ""), found.target_s, found.target_steps, found.step_s, found.compute_s,
                found.network_s, found.waiting_s, found.waited_s.sum(), found.final_accuracy,
                trace.facts["retransmissions"], trace.facts["contributions_sent"],
                trace.facts["contributions_applied"], round(trace.facts["engine_s"], 2), cell.digest,
            ]
        )  # fmt: skip
    return write_csv(path, head, rows)


def curves_csv(study: Study, path: Path) -> Path:
    """The study's accuracy curves, as drawn."""
    rows = []
    for cell in study.grid.study:
        found = curve(study.trace(cell))
        for t, steps, accuracy in zip(found.t, found.steps, found.accuracy, strict=True):
            rows.append(
                [cell.workers, cell.model, cell.straggler, cell.strategy, cell.seed, f"{t:.3f}", f"{steps:.2f}",
                 f"{accuracy:.4f}"]
            )  # fmt: skip
    head = ["workers", "model", "straggler", "strategy", "seed", "t_s", "steps", "accuracy"]
    return write_csv(path, head, rows)
