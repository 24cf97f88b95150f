"""The study's results as files in docs/results, and the tables of docs/network-study.md that follow from them.

python -m serene.experiments.network_study.results                        # the page, from the files
python -m serene.experiments.network_study.results --answers runs/network # the files from a study's answers, too
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import json
from dataclasses import fields
from pathlib import Path

import pandas as pd

from serene.arguments import Parser, command
from serene.errors import SereneError
from serene.experiments.network_study import efficiency
from serene.experiments.network_study.cells import (
    ANSWERS,
    Answers,
    Cell,
    ExchangeCell,
    NetworkCell,
    Store,
    TrainingCell,
)
from serene.experiments.network_study.findings import Findings, emulated
from serene.experiments.network_study.grid import GRIDS, Grid
from serene.experiments.network_study.thinness import Thinness, efficiency_table
from serene.experiments.shared import machine, page_tables, terminal
from serene.experiments.shared.machine import ROOT
from serene.process import outputs

FOLDER, PAGE = ROOT / "docs" / "results", ROOT / "docs" / "network-study.md"
PICTURE = ROOT / "docs" / "images" / "network-thinness.png"
EMULATED, ROUNDS = "network-emulated.csv", "network-rounds.csv"
MADE = "network.json"  # with which command, from which commit, where and when the files were made
NETWORK = [field.name for field in fields(NetworkCell)]
FILES: dict[str, tuple[type[ExchangeCell | TrainingCell], list[str], list[str]]] = {  # columns: of the cell, answer
    "network-exchanges.csv": (ExchangeCell, ["method", "gradient_mb"], ["seconds", "closed_form_s"]),
    "network-trainings.csv": (
        TrainingCell, ["how", "strategy", "straggler", "gradient_mb", "compute_ms", "iterations", "seed"],
        ["rounds_per_s", "computing", "waiting", "network", "ahead_max", "lateness"],
    ),
}  # fmt: skip
GRID = GRIDS["quick"]


def recorded(folder: Path) -> Answers:
    """The answers in the files of a folder. Raises SereneError if a file is missing or something else."""
    answers: dict[Cell, dict[str, float | None]] = {}
    for name, (kind, own, found) in FILES.items():
        try:
            for row in page_tables.read(folder / name).to_dict("records"):
                cell = kind(NetworkCell(*(row[each] for each in NETWORK)), **{each: row[each] for each in own})
                answers[cell] = {each: None if pd.isna(row[each]) else row[each] for each in found}
        except (KeyError, TypeError) as error:
            raise SereneError(f"cannot read {folder / name}: {error!r}") from error
    return answers


def write(answers: Answers, command: str, folder: Path = FOLDER, grid: Grid = GRID) -> None:
    """Writes the files of a study's answers, a row for each cell that is answered. Raises CannotWrite."""
    for name, (kind, own, found) in FILES.items():
        rows = [
            {**{each: getattr(cell.network, each) for each in NETWORK}, **{each: getattr(cell, each) for each in own},
             **{each: "" if answers[cell][each] is None else f"{answers[cell][each]:.9g}" for each in found}}
            for cell in dict.fromkeys(grid.cells()) if isinstance(cell, kind) and cell in answers
        ]  # fmt: skip
        outputs.write_text(folder / name, pd.DataFrame(rows).to_csv(index=False))
    outputs.write_text(folder / MADE, json.dumps(machine.made(command), indent=1) + "\n")


def thinness(folder: Path, answers: Answers) -> Thinness:
    """What each strategy needs, by the files of a folder. Raises SereneError."""
    return Thinness(answers, GRID, efficiency.costs(page_tables.read(folder / ROUNDS)))


def parts(folder: Path = FOLDER) -> dict[str, str]:
    """The parts of the page that follow from a folder's files, by name. Raises SereneError."""
    answers = recorded(folder)
    thin, made = thinness(folder, answers), json.loads((folder / MADE).read_text())
    tables = {
        "trainings": Findings(answers, GRID).training(GRID.compared[-1][1]),
        "verdict": thin.verdict(),
        "speeds": thin.speeds(),
        "thinness": thin.table(),
        "rounds": efficiency_table(thin.costs),
        **{f"emulated-{name}": emulated(mine.to_dict("records"))
           for name, mine in page_tables.read(folder / EMULATED).groupby("network")},
    }  # fmt: skip
    return {
        **{name: page_tables.markdown(*table) for name, table in tables.items()},
        "made": f"    {made['command']}    # {made['date']}, commit {made['commit']}, {made['machine']}",
    }


@command
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--answers", type=Path, help="folder of a study; its results are written into the files")
    options = parser.parse_args()
    if options.answers:
        store = Store(options.answers / ANSWERS)
        found = {cell: result for cell in GRID.cells() if (result := store.get(cell)) is not None}
        write(found, f"make network-study OUT={options.answers}")
        thinness(FOLDER, recorded(FOLDER)).picture(PICTURE)
    page_tables.write(PAGE, parts())
    terminal.console().print(f"{PAGE}", highlight=False)


if __name__ == "__main__":
    raise SystemExit(ended(main))
