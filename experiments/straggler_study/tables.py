"""The map as a table, and the numbers of every run as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from serene.experiments.shared.machine import COLUMNS
from serene.experiments.straggler_study import names
from serene.experiments.straggler_study.grid import CHOOSING, REPORTED
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.names import straggler_name
from serene.experiments.straggler_study.study import Study

Row = list[str]


def map_rows(study: Study) -> tuple[Row, list[Row]]:
    """A table, head and rows, of the map: the strategy that is best by some seeds, and its change against BSP by the
    others."""
    head = ["workers", "straggler", "wanted share", "shortest median time", "against BSP, other seeds"]
    cases = dict.fromkeys((cell.workers, cell.straggler, cell.share) for cell in study.grid.map)
    rows = []
    for workers, straggler, share in cases:
        case = study.strategies(study.grid.map, workers, straggler, share)
        best, base = study.best(case, CHOOSING), next(cell for cell in case if cell.strategy == "bsp")
        gain = "-" if best == base else study.against(best, base, REPORTED).time.percent()
        rows.append([str(workers), straggler_name(straggler), names.percent(share), names.strategy(best), gain])
    return head, rows


def write_csv(path: Path, head: Row, rows: Sequence[Sequence[object]]) -> Path:
    """Writes a CSV file and returns its path."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def runs_csv(study: Study, path: Path) -> Path:
    """Writes a row for each run, with its settings and numbers."""
    head = [
        "engine", "way", "workers", "model", "dataset", "batch_size", "learning_rate", "straggler", "strategy", "seed",
        "link_mbit", "compute_ms", "wanted_share", "measured_share", "target_accuracy", "target_s", "target_steps",
        "step_s", "compute_s", "network_s", "waiting_s", "waited_s_sum", "computed_late", "final_accuracy",
        "retransmissions", "contributions_sent", "contributions_applied", "engine_s", *COLUMNS, "digest",
    ]  # fmt: skip
    rows = []
    for cell in study.grid.cells():
        if cell in study.missing:
            continue
        trace, found = study.trace(cell), study.numbers(cell)
        facts = trace.facts
        rows.append(
            [
                cell.engine, names.way(cell), cell.workers, cell.model, cell.dataset, cell.batch_size,
                cell.learning_rate or "", cell.straggler, cell.strategy, cell.seed, cell.link_mbit or "",
                cell.compute_ms, cell.share or "", found.share, study.grid.targets.get(cell.model, ""), found.target_s,
                found.target_steps, found.step_s, found.compute_s, found.network_s, found.waiting_s,
                found.waited_s.sum(), found.late, found.final_accuracy, facts["retransmissions"],
                facts["contributions_sent"], facts["contributions_applied"], round(facts["engine_s"], 2),
                *trace.conditions.columns(), cell.digest,
            ]
        )  # fmt: skip
    return write_csv(path, head, rows)


def curves_csv(study: Study, path: Path) -> Path:
    """Writes the accuracy curves of the emulated runs."""
    rows = []
    for cell in study.grid.headline:
        if cell in study.missing:
            continue
        found = curve(study.trace(cell))
        for t, steps, accuracy in zip(found.t, found.steps, found.accuracy, strict=True):
            rows.append(
                [names.way(cell), cell.model, cell.straggler, cell.strategy, cell.share, cell.seed, f"{t:.3f}",
                 f"{steps:.2f}", f"{accuracy:.4f}"]
            )  # fmt: skip
    head = ["way", "model", "straggler", "strategy", "share", "seed", "t_s", "steps", "accuracy"]
    return write_csv(path, head, rows)
