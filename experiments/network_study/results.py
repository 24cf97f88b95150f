"""The study's results as files in docs/results, and the tables of docs/network-study.md that follow from them.

python -m serene.experiments.network_study.results                        # the page, from the files
python -m serene.experiments.network_study.results --answers runs/network # the files from a study's answers, too
"""

from __future__ import annotations

from serene.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import csv
import io
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from serene import outputs
from serene.arguments import Parser
from serene.errors import SereneError
from serene.experiments.network_study import efficiency
from serene.experiments.network_study.cells import Answers, Cell, ExchangeCell, NetworkCell, TrainingCell
from serene.experiments.network_study.findings import Findings, Table
from serene.experiments.network_study.grid import GRIDS, Grid, ratio_name
from serene.experiments.network_study.thinness import Thinness, efficiency_table
from serene.experiments.shared import machine, page_tables, terminal

ROOT = Path(__file__).resolve().parents[2]
FOLDER, PAGE = ROOT / "docs" / "results", ROOT / "docs" / "network-study.md"
PICTURE = ROOT / "docs" / "images" / "network-thinness.png"
EXCHANGES, TRAININGS, EMULATED, ROUNDS = (
    f"network-{name}.csv" for name in ("exchanges", "trainings", "emulated", "rounds")
)
MADE = "network.json"  # with which command, from which commit, where and when the files were made
NETWORK = ("layers", "hosts", "ratio", "bandwidth_gb", "latency_us", "routing")
COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # by kind: of the cell, of its answer
    "exchange": (("method", "gradient_mb"), ("seconds", "closed_form_s")),
    "training": (
        ("how", "strategy", "straggler", "gradient_mb", "compute_ms", "iterations", "seed"),
        ("rounds_per_s", "computing", "waiting", "network", "ahead_max", "lateness"),
    ),
}
GRID = GRIDS["quick"]


class Recorded(Answers):
    """The answers in the files of a folder. Raises SereneError if a file is missing or something else."""

    def __init__(self, folder: Path) -> None:
        self._by_cell: dict[Cell, dict[str, Any]] = {}
        for kind, name in (("exchange", EXCHANGES), ("training", TRAININGS)):
            try:
                with (folder / name).open(newline="") as file:
                    for row in csv.DictReader(file):
                        self._by_cell[_cell(kind, row)] = {
                            column: float(row[column]) if row[column] else None for column in COLUMNS[kind][1]
                        }
            except (OSError, ValueError, KeyError) as error:
                raise SereneError(f"cannot read {folder / name}: {error!r}") from error

    def __getitem__(self, cell: Cell) -> dict[str, Any]:
        return self._by_cell[cell]


def _cell(kind: str, row: Mapping[str, str]) -> Cell:
    network = NetworkCell(
        int(row["layers"]), int(row["hosts"]), float(row["ratio"]), float(row["bandwidth_gb"]),
        float(row["latency_us"]), row["routing"],
    )  # fmt: skip
    if kind == "exchange":
        return ExchangeCell(network, row["method"], float(row["gradient_mb"]))
    return TrainingCell(
        network, row["how"], row["strategy"], row["straggler"], float(row["gradient_mb"]), float(row["compute_ms"]),
        int(row["iterations"]), int(row["seed"]),
    )  # fmt: skip


def of_answers(grid: Grid, answers: Answers, kind: str) -> str:
    """The CSV file of a study's exchanges or trainings, a row for each cell that is answered."""
    text = io.StringIO()
    own, found = COLUMNS[kind]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*NETWORK, *own, *found))
    for cell in dict.fromkeys(grid.cells()):
        if cell.kind == kind and not answers.missing([cell]):
            values = (answers[cell][name] for name in found)
            writer.writerow(
                [
                    *(getattr(cell.network, name) for name in NETWORK), *(getattr(cell, name) for name in own),
                    *("" if value is None else f"{value:.9g}" for value in values),
                ]
            )  # fmt: skip
    return text.getvalue()


def write(answers: Answers, command: str, folder: Path = FOLDER, grid: Grid = GRID) -> None:
    """Writes the files of a study's answers. Raises CannotWrite."""
    outputs.write_text(folder / EXCHANGES, of_answers(grid, answers, "exchange"))
    outputs.write_text(folder / TRAININGS, of_answers(grid, answers, "training"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    made = {"command": command, "commit": commit, "machine": machine.here(), "date": time.strftime("%Y-%m-%d")}
    outputs.write_text(folder / MADE, json.dumps(made, indent=1) + "\n")


def emulated(folder: Path) -> list[dict[str, str]]:
    """What was measured on emulated networks: a row for each network and method."""
    with (folder / EMULATED).open(newline="") as file:
        return list(csv.DictReader(file))


def parts(folder: Path = FOLDER) -> dict[str, str]:
    """The parts of the page that follow from a folder's files, by name. Raises SereneError."""
    answers = Recorded(folder)
    found, costs = Findings(answers, GRID), efficiency.costs(efficiency.from_csv((folder / ROUNDS).read_text()))
    thin = Thinness(answers, GRID, costs)
    measured = emulated(folder)
    tables = {
        "trainings": found.training(GRID.compared[-1][1]),
        "thinness": thin.table(),
        "rounds": efficiency_table(costs),
        **{f"emulated-{name}": _emulated([row for row in measured if row["network"] == name])
           for name in dict.fromkeys(row["network"] for row in measured)},
    }  # fmt: skip
    made = json.loads((folder / MADE).read_text())
    return {
        **{name: page_tables.markdown(*table) for name, table in tables.items()},
        "verdict": thin.verdict(),
        "made": f"    {made['command']}    # {made['date']}, commit {made['commit']}, {made['machine']}",
    }


def _emulated(rows: Sequence[Mapping[str, str]]) -> Table:
    head = ["hosts", "r", "method", "simulated", "emulated", "spread", "emulated / simulated", "measured"]
    return head, [
        [
            row["hosts"], ratio_name(float(row["ratio"])), row["method"], _s(row["simulated_s"]), _s(row["emulated_s"]),
            f"{_s(row['least_s'])} to {_s(row['most_s'])}",
            f"{float(row['emulated_s']) / float(row['simulated_s']):.2f}", row["measured"],
        ]
        for row in rows
    ]  # fmt: skip


def _s(seconds: str) -> str:
    return f"{float(seconds):.2f} s" if float(seconds) >= 1 else f"{1e3 * float(seconds):.0f} ms"


def main() -> int:
    parser = Parser(prog="python -m serene.experiments.network_study.results", description=__doc__)
    parser.add_argument("--answers", type=Path, help="a study's folder, from which the files are written")
    options = parser.parse_args()
    if options.answers:
        write(Answers(options.answers / "answers.jsonl"), f"make network-study OUT={options.answers}")
    page_tables.write(PAGE, parts())
    if options.answers:
        costs = efficiency.costs(efficiency.from_csv((FOLDER / ROUNDS).read_text()))
        Thinness(Recorded(FOLDER), GRID, costs).picture(PICTURE)
    terminal.console().print(f"{PAGE}", highlight=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
