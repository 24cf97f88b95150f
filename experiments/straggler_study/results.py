"""The study's emulated runs as a file in docs/results; the tables and the first picture of docs/straggler-study.md that
follow from it.

python -m serene.experiments.straggler_study.results                        # the page, from the file
python -m serene.experiments.straggler_study.results --study runs/straggler # also the file, with a study's runs
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from serene.arguments import Parser, command
from serene.errors import SereneError, choices
from serene.experiments.shared import page_tables, terminal
from serene.experiments.shared.machine import ROOT
from serene.experiments.straggler_study import grid, names, pictures
from serene.experiments.straggler_study.headline import SLOW, needed
from serene.experiments.straggler_study.names import SWITCHES, percent
from serene.experiments.straggler_study.study import Spread, Study, Table
from serene.experiments.straggler_study.trace import Store
from serene.palette import look
from serene.process import outputs

FILE, PAGE = ROOT / "docs" / "results" / "straggler.csv", ROOT / "docs" / "straggler-study.md"
PICTURE = ROOT / "docs" / "images" / "straggler-answer.png"
WHICH = ["model", "workers", "steps", "way", "strategy", "straggler", "share", "seed"]  # of a run
COLUMNS = [
    *WHICH, "target_s", "target_steps", "final_accuracy", "measured_share",
    "step_s", "compute_s", "network_s", "waiting_s", "late", "stalled", "swaps", "contributions_sent",
    "contributions_applied", "retransmissions", "load_before", "machine",
]  # fmt: skip
TEXTS = {"model", "way", "strategy", "straggler", "machine"}
MAY_LACK = {"target_s", "target_steps", "stalled", "load_before", "contributions_applied", "retransmissions"}
BASELINES = (names.SERVER, names.RPC, names.SHARDED, names.GLOO)
WAYS = (*SWITCHES, *BASELINES, names.SCAPY)
FASTER = ("ssp:10", "asp", f"quorum:{grid.WORKERS * 3 // 4}", grid.AUTOMATIC, grid.PACING)


def read(path: Path = FILE) -> pd.DataFrame:
    """The emulated runs in this file, or in a study's ``runs.csv``. Raises SereneError if the file is missing or
    something else."""
    runs = page_tables.read(path)
    if lacking := [name for name in COLUMNS if name not in runs]:
        raise SereneError(f"cannot read {path}: it has no column {choices(lacking)}")
    emulated = runs[runs["engine"] == "emulated"] if "engine" in runs else runs
    for name in COLUMNS:
        _check(path, emulated[name])
    return emulated


def _check(path: Path, column: pd.Series) -> None:
    """Raises SereneError if a run lacks its value, or has one that it cannot have: a file may be truncated or edited,
    and a missing time would silently become a missed target."""
    name = str(column.name)
    wrong = column.isna()
    if name not in TEXTS:
        numbers = pd.to_numeric(column, errors="coerce")
        least = -1 if name == "late" else 0
        wrong = ~(np.isfinite(numbers) & (numbers >= least)) & ~(wrong & (name in MAY_LACK))
    if wrong.any():
        line, value = next(iter(column[wrong].items()))
        expected = "a text" if name in TEXTS else "a number, 0 or more"
        raise SereneError(f"cannot read {path}: line {int(str(line)) + 2} has {name} {value}: expected {expected}")


def whole_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of those seeds that have as many runs as any other."""
    count = runs.groupby("seed")["way"].transform("size")
    return runs[count == count.max()]


def times(runs: Mapping[str, pd.DataFrame]) -> Table:
    """Mean seconds to the target by way and strategy, and the measured share. runs: by the column's title."""
    rows = []
    for way in WAYS:
        shown = way
        for strategy in ("bsp", *FASTER):
            chosen = [each[(each["way"] == way) & (each["strategy"] == strategy)] for each in runs.values()]
            if any(map(len, chosen)):
                rows.append([shown, look(strategy).name, *map(_time, chosen)])
                shown = ""
    return ["", "strategy", *runs], rows


def by_share(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The runs of each wanted share."""
    return {f"wanted {percent(share)}": runs[runs["share"] == share] for share in grid.SHARES}


def _time(runs: pd.DataFrame) -> str:
    if runs.empty:
        return ""
    missed = int(runs["target_s"].isna().sum())
    if missed:
        return f"missed by {missed} of {len(runs)} seeds"
    return f"{runs['target_s'].mean():.1f} ({percent(runs['measured_share'].mean())})"


def against(runs: Mapping[str, pd.DataFrame]) -> Table:
    """The change of the time to the target under BSP, from each baseline to each switch. runs: as for `times`."""
    return _changes(runs, [((way, "bsp"), (other, "bsp"), f"{other}, {SWITCHES[way]}")
                           for way in SWITCHES for other in BASELINES], "against")  # fmt: skip


def strategies(runs: Mapping[str, pd.DataFrame]) -> Table:
    """The change of the time to the target, from BSP to each other strategy, on each switch. runs: as for `times`."""
    return _changes(runs, [((way, strategy), (way, "bsp"), f"{look(strategy).name}, {SWITCHES[way]}")
                           for way in SWITCHES for strategy in FASTER], "strategy")  # fmt: skip


def _changes(
    runs: Mapping[str, pd.DataFrame], pairs: list[tuple[tuple[str, str], tuple[str, str], str]], title: str
) -> Table:
    took = [{key: mine.set_index("seed")["target_s"] for key, mine in each.groupby(["way", "strategy"])}
            for each in runs.values()]  # fmt: skip
    rows = []
    for one, other, shown in pairs:
        cells = [_change(each.get(one), each.get(other)) for each in took]
        if any(cells):
            rows.append([shown, *cells])
    return [title, *runs], rows


def _change(one: pd.Series | None, other: pd.Series | None) -> str:
    if one is None or other is None:
        return ""
    for each in (one, other):
        if missed := int(each.isna().sum()):
            return f"missed by {missed} of {len(each)} seeds"
    return Spread.of((one / other - 1).tolist()).percent()


def others(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The runs of the full grid's trainings beside the first one, without those that have no straggler."""
    found = {
        names.Training(*each): mine
        for each, mine in runs[runs["straggler"] != grid.NONE].groupby(["model", "straggler", "workers"], sort=False)
    }
    return {
        f"{training.title}, wanted {percent(mine['share'].iloc[0])}": whole_seeds(mine)
        for training, mine in found.items() if training != SLOW
    }  # fmt: skip


def counted(runs: pd.DataFrame) -> str:
    """In how many runs through a switch every contribution was added once."""
    switch = runs[runs["way"].isin([*SWITCHES, names.SCAPY])]
    once = int((switch["contributions_sent"] == switch["contributions_applied"]).sum())
    return (
        f"- **Exactly once.** In {once} of {len(switch)} runs of both grids through a switch, with "
        f"{int(switch['swaps'].sum()):,} live\n  swaps, each contribution was added once (sums over the workers)."
    )


def scapy(runs: pd.DataFrame) -> str:
    """What scapy costs: a step's time, and packets that a worker sends and receives in a second of the exchange."""
    same = runs[(runs["strategy"] == "bsp") & runs["share"].isin(runs.loc[runs["way"] == names.SCAPY, "share"])]
    ours, its = (same[same["way"] == way] for way in (names.EMBEDDED, names.SCAPY))
    packets = 2 * (its["contributions_sent"] / its["workers"] / its["steps"]).mean()  # each is answered
    share, longer = percent(its["share"].mean()), its["step_s"].mean() / ours["step_s"].mean()
    return (
        "- **scapy** builds, sends and receives all packets of its workers. It makes a step "
        f"{longer:.1f} times as long at {share}:\n  {1e3 * its['step_s'].mean():.0f} instead of "
        f"{1e3 * ours['step_s'].mean():.0f} ms. A worker then sends and receives "
        f"{packets / its['network_s'].mean():,.0f} packets a second in an exchange."
    )


def first(runs: pd.DataFrame) -> pd.DataFrame:
    """The whole seeds of the full grid's first training."""
    its = (runs[["model", "straggler", "workers", "steps"]] == [*SLOW, grid.LONG.steps]).all(axis=1)
    return whole_seeds(runs[its])


def recorded(runs: pd.DataFrame) -> Study:
    """The full grid with the results of these runs of its first training."""
    full = grid.full()
    cells = [
        {"model": cell.model, "workers": cell.workers, "steps": cell.steps, "way": names.way(cell),
         "strategy": cell.strategy, "straggler": cell.straggler, "share": cell.share, "seed": cell.seed,
         "cell": cell, "group": replace(cell, seed=0)} for cell in full.headline
    ]  # fmt: skip
    study = Study(full, Store(FILE.parent))  # no result is read from there
    study.runs = pd.DataFrame(cells).merge(first(runs), on=WHICH)
    return study


def parts(runs: pd.DataFrame) -> dict[str, str]:
    """The parts of the page that follow from the runs, by name."""
    quick, full = (runs[(runs["steps"] == grid.QUICK.steps) == which] for which in (True, False))
    quick, mine = whole_seeds(quick[quick["straggler"] == grid.SLOW]), first(runs)
    shares, beside, of_quick = by_share(mine), others(full), by_share(quick)
    tables = {
        "times": times(shares), "against": against(shares), "strategies": strategies(shares),
        "others": times(beside), "others' strategies": strategies(beside), "needed": needed(),
        "quick": times(of_quick), "quick strategies": strategies(of_quick),
    }  # fmt: skip
    sentences = {"counted": counted(runs), "scapy": scapy(mine)}
    return {**{name: page_tables.markdown(*table) for name, table in tables.items()}, **sentences}


@command
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument(
        "--study", type=Path, help="folder of a study; its runs are added to the file, or replace those that are there"
    )
    options = parser.parse_args()
    if options.study:
        runs = pd.concat([read(), read(options.study / "runs.csv")[COLUMNS].round(4)])
        outputs.write_text(FILE, runs.drop_duplicates(WHICH, keep="last").sort_values(WHICH).to_csv(index=False))
        pictures.answer(recorded(read()), SLOW, grid.SHARES, PICTURE, wide=True)
    page_tables.write(PAGE, parts(read()))
    terminal.console().print(f"{PAGE}", highlight=False)


if __name__ == "__main__":
    raise SystemExit(ended(main))
