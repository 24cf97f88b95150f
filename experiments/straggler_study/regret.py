"""The regret of every strategy: ``python -m serene.experiments.straggler_study.regret``, or `make compare`.

Regret is a strategy's time to the accuracy over that of the best fixed strategy of the same cell in hindsight; 1.00 is
as good as if one had known. Runs are in virtual time, with real gradients and the compiled program. A run ends when it
has reached the accuracy. ``--mininet`` takes 16 cells in Mininet instead, through both switches. Runs are kept in
``--out``, so a command that was stopped resumes. Runs in ``--recorded`` need not run again, if one of them has the same
result here. ``--csv`` writes ``cell,strategy,regret``: the mean time of the seeds over the best fixed strategy's mean
time; ``--runs`` writes a row for each run (docs/results/README.md).
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from serene.arguments import Parser, whole
from serene.controller.automatic import AUTOMATIC as PREFIX
from serene.controller.automatic import SHIPPED, automatic_parts
from serene.errors import SereneError, choices, plural
from serene.experiments.run.launch import with_sudo
from serene.experiments.shared import page_tables, studies, terminal
from serene.experiments.straggler_study import grid, side_by_side
from serene.experiments.straggler_study.cases import (
    IN_MININET,
    OPTIMISERS,
    STEPS,
    STRAGGLERS,
    Case,
    cases,
    in_mininet,
    within,
)
from serene.experiments.straggler_study.cell import Cell, check_strategy
from serene.experiments.straggler_study.measures import curve, row
from serene.experiments.straggler_study.recorded import PUBLISHED, Recorded
from serene.experiments.straggler_study.study import Table
from serene.experiments.straggler_study.sweep import Parallel, expected_s, label, sweep
from serene.experiments.straggler_study.trace import Store, Trace
from serene.process import outputs
from serene.workers.stragglers import parse

NEVER = 2.0  # a run that does not reach the target counts as so many times its length
OF_A_CELL = ["engine", "target", "model", "learning_rate", "momentum", "share", "straggler", "workers"]
SEEDS, TARGET_SEEDS = (4, 5, 6), (101, 102)  # pacing was chosen by others than SEEDS
TARGET_AT = 0.6  # the target is what BSP without stragglers has after this part of its steps, with TARGET_SEEDS

# All with the same period, the virtual trainings being short. Sync-Switch: BSP for a quarter of the steps, as theirs.
BEST = "auto"
AUTOMATIC = {
    BEST: "auto:pacing",
    "dssp": "auto:dssp:period=0.1",
    "sync-switch": "auto:sync-switch:after={quarter},period=0.1",
    "saina": "auto:saina:period=0.1",
    "adsp": "auto:adsp:probe=1.5,epoch=30.0,period=0.1",
    "waiting": "auto:waiting:period=0.1",
}


def targets(chosen: Sequence[Case], store: Store, recorded: Recorded) -> dict[Case, float]:
    """The accuracy to reach in each of these cells, 0 to 1: the recorded one, or from runs that the store has."""
    found = {case.calm(): known for case in chosen if (known := recorded.until(case)) is not None}
    for calm in {case.calm() for case in chosen} - found.keys():
        learned = [curve(_trace(store, calm.cell("bsp", seed))) for seed in TARGET_SEEDS]
        reached = [float(each.accuracy[each.steps <= TARGET_AT * calm.steps].max()) for each in learned]
        found[calm] = round(float(np.mean(reached)), 4)
    return {case: found[case.calm()] for case in chosen}


def _trace(store: Store, cell: Cell) -> Trace:
    trace = store.get(cell)
    if trace is None:
        raise SereneError(f"{cell}: {store.why_missing(cell)}")
    return trace


def automatic_of(text: str, workers: int = 4, steps: int = STEPS) -> dict[str, str]:
    """The strategies beside the fixed ones, as cells name them, by the names that ``--strategies`` has, separated by
    commas: keys of AUTOMATIC, other automatic ones, fixed ones such as ssp:10, or FILE.py:NAME. workers: the fewest of
    a cell. steps: of a run. Raises BadStrategy or BadAutomatic."""
    found = {}
    # A comma before a number or KEY= is within a name, as in mixed:0,2 and FILE.py:NAME:low=1,high=2.
    for name in re.split(r",(?!\d+(?:[,:]|$)|\w+=)", text) if text else AUTOMATIC:
        known = AUTOMATIC.get(name.removeprefix(PREFIX), "").format(quarter=steps // 4)
        automatic = ".py:" in f"{name}:" or name.partition(":")[0] in SHIPPED
        strategy = known or (f"{PREFIX}{name.removeprefix(PREFIX)}" if automatic else name)
        check_strategy(strategy, workers)
        found[name] = strategy
    return found


def chosen_cases(
    text: str, names: str, straggler: str = "", steps: int = STEPS, *, mininet: bool = False
) -> list[Case]:
    """The cells of these models whose names have all settings of one of these selections. text: models, separated by
    ``,``. names: selections, separated by ``;``; their settings by ``,``. straggler: a profile in place of all others;
    empty for none. steps: of a run. mininet: those in Mininet. Raises SereneError if a selection has no cell, or if no
    such profile exists."""
    models = [each.strip() for each in text.split(",")]
    given = [[" ".join(setting.split()) for setting in each.split(",")] for each in names.split(";")]
    wanted = [settings for each in given if (settings := [setting for setting in each if setting])] or [[]]
    if straggler:
        parse(straggler)
    kinds = [straggler] if straggler else within(IN_MININET if mininet else STRAGGLERS, steps)
    every = list((in_mininet if mininet else cases)(kinds, steps))
    mine = [case for case in every if case.model in models]
    if strangers := [model for model in models if model not in OPTIMISERS]:
        raise SereneError(f"no model {choices(strangers)}: expected {choices(OPTIMISERS)}")
    for settings in wanted:
        if not any(_has(case, settings) for case in mine):
            having = f" has {', '.join(settings)!r} in its name" if settings else ""
            raise SereneError(f"no cell of the models {text}{having}; {_possible(mine or every)}")
    return [case for case in mine if any(_has(case, settings) for settings in wanted)]


def _possible(these: Iterable[Case]) -> str:
    """What the settings of these cells may be."""
    each = zip(*(case.name.split(", ") for case in these), strict=True)
    return "settings are " + "; ".join(choices(dict.fromkeys(settings)) for settings in each)


def _has(case: Case, settings: Iterable[str]) -> bool:
    """Whether a cell's name has all of these settings, or the words: "edge" is in "softmax edge", "5%" not in "65%"."""
    mine = [f" {setting.replace(',', ' ')} " for setting in case.name.split(", ")]
    return all(any(f" {each} " in setting for setting in mine) for each in settings)


def took_s(runs: pd.DataFrame) -> pd.Series:
    """Seconds of each run to the accuracy; NEVER times the run's length, if it is not reached."""
    return pd.to_numeric(runs["s_to_until"]).fillna(NEVER * runs["whole_s"])


def regrets(runs: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Columns ``cell``, ``strategy`` and ``regret``: each strategy's mean time over that of the best fixed strategy of
    the same cell. runs: with the columns ``cell``, the cell's name, and ``took_s``. names: of strategies, if they are
    called otherwise; k-of-n for k = 3/4 n is "quorum"."""
    means = runs.groupby(["cell", "workers", "strategy"], sort=False)["took_s"].mean().reset_index()
    is_fixed = [
        strategy in grid.fixed(workers) for workers, strategy in zip(means["workers"], means["strategy"], strict=True)
    ]
    best = means["cell"].map(means[is_fixed].groupby("cell")["took_s"].min())
    called = {text: name for name, text in names.items()}
    strategy = [
        called.get(text, "quorum" if text == f"quorum:{workers * 3 // 4}" else text)
        for workers, text in zip(means["workers"], means["strategy"], strict=True)
    ]
    return pd.DataFrame({"cell": means["cell"], "strategy": strategy, "regret": (means["took_s"] / best).round(3)})


def summary(found: pd.DataFrame) -> Table:
    """A table with a row for each strategy, the best mean first. Its last columns are means by straggler."""
    by = found.groupby("strategy", sort=False)["regret"]
    kinds = found.assign(kind=found["cell"].str.split(", ").str[2]).pivot_table("regret", "strategy", "kind")
    shown = kinds.reindex(columns=[kind for kind in STRAGGLERS if kind in kinds])
    rows = [
        [name, str(len(mine)), f"{mine.mean():.2f}", f"{mine.max():.2f}", f"{(mine <= 1.05).mean():.0%}",
         *(f"{mean:.2f}" if np.isfinite(mean) else "-" for mean in shown.loc[name])]
        for name, mine in sorted(by, key=lambda each: each[1].mean())
    ]  # fmt: skip
    return ["strategy", "cells", "mean", "worst", "at most 1.05", *shown], rows


def worth(runs: pd.DataFrame, strategy: str) -> Table:
    """A table of what an automatic strategy is worth in all cells together, beside its targets, and of what regret the
    seeds' scatter alone makes ("-": of one seed). strategy: as in ``runs``; cells that lack it do not count."""
    times, regret, scatter, changing = [], [], [], []
    for cell, mine in runs.assign(took_s=took_s(runs)).groupby(OF_A_CELL, sort=False):
        by = mine.pivot(index="seed", columns="strategy", values="took_s")
        if strategy not in by:
            continue
        others = by[[*grid.fixed(int(cell[-1]))]]
        own, means = by[strategy].mean(), others.mean()
        times.append([own, *means])
        regret.append(own / means.min())
        if len(others) > 1:
            # For each seed, the fixed strategy with the shortest time by the other seeds.
            chosen = (others.sum() - others).idxmin(axis=1)
            scatter.append(np.mean([others.at[seed, name] for seed, name in chosen.items()]) / means.min())
        if cell[-2] == STRAGGLERS["changing"]:
            changing.append(own < means.min())
    own_s, *fixed_s = np.sum(times, axis=0)
    head = [
        f"over {plural(len(regret), 'cell')}",
        strategy.partition(":")[2],
        "target",
        "a fixed strategy, chosen by the other seeds",
    ]
    rows = [
        ["regret, mean", f"{np.mean(regret):.2f}", "1.05", f"{np.mean(scatter):.2f}" if scatter else "-"],
        ["regret, worst cell", f"{max(regret):.2f}", "1.15", f"{max(scatter):.2f}" if scatter else "-"],
        ["time of all cells over that of the best single fixed strategy", f"{own_s / min(fixed_s):.2f}", "0.90", ""],
    ]
    if changing:
        faster = f"{sum(changing)} of {plural(len(changing), 'cell')}"
        rows.append(["faster than the best fixed strategy where the regime changes", faster, "90 %", ""])
    return head, rows


def write_page(page: Path, found: pd.DataFrame, runs: pd.DataFrame, strategy: str, part: str = "regret") -> None:
    """Writes the tables into this part of the page. Raises SereneError if there is none."""
    tables = [*([worth(runs, strategy)] if strategy in set(runs["strategy"]) else []), summary(found)]
    page_tables.write(page, {part: "\n\n".join(page_tables.markdown(*table) for table in tables)})


def run(options: argparse.Namespace, console: Console) -> None:
    """Runs what is missing, and prints the table. Raises SereneError."""
    chosen = chosen_cases(options.models, options.cells, options.straggler, options.steps, mininet=options.mininet)
    automatic = automatic_of(options.strategies, min(case.workers for case in chosen), options.steps)
    given = options.seeds.split(",")
    if not all(seed.isdecimal() and len(seed) < 10 for seed in given):
        raise SereneError(f"seeds {options.seeds}: expected whole numbers, 0 or more, separated by commas")
    seeds = [int(seed) for seed in given]
    files = [file for file in (options.csv, options.runs, options.page) if file]
    if len({file.resolve() for file in files}) < len(files):
        raise SereneError(f"{choices(map(str, files))}: expected a different file for each output")
    read = [options.straggler.partition("trace:")[2], *map(_program, automatic.values())]
    for file in files:
        if file.resolve() in [Path(each).resolve() for each in read if each]:
            raise SereneError(f"{file}: is read by this command: expected another file for its output")
        outputs.check_file(file, outputs.MB)
    recorded, store = Recorded(options.recorded), Store(options.out)
    with contextlib.nullcontext() if options.so_far else store.alone():
        _compare(chosen, automatic, seeds, recorded, store, options, console)


def _program(strategy: str) -> str:
    """The file of a user's own strategy, else empty."""
    return automatic_parts(strategy)[0].rpartition(":")[0] if strategy.startswith(PREFIX) else ""


def _compare(
    chosen: list[Case],
    automatic: Mapping[str, str],
    seeds: Sequence[int],
    recorded: Recorded,
    store: Store,
    options: argparse.Namespace,
    console: Console,
) -> None:
    parallel = Parallel(options.parallel)
    if options.mininet and not options.so_far:
        wanted = {case.share: grid.TOGETHER[case.share] for case in chosen}
        parallel = replace(parallel, emulated=side_by_side.agree(wanted, options.out, console))

    _confirm(recorded, chosen, seeds, store, console, None if options.so_far else parallel)

    calm = {
        case: [] if recorded.until(case) is not None else [case.calm().cell("bsp", seed) for seed in TARGET_SEEDS]
        for case in chosen
    }
    if not options.so_far:
        sweep([*dict.fromkeys(cell for pair in calm.values() for cell in pair)], store, console, parallel)
    chosen = [case for case in chosen if not store.missing(calm[case])]
    until = targets(chosen, store, recorded)
    fixed = {case: _runs(case, case.fixed(), seeds, until) for case in chosen}
    others = {(case, text): _runs(case, (text,), seeds, until) for case in chosen for text in automatic.values()}
    every = list(dict.fromkeys(cell for some in (fixed, others) for mine in some.values() for cell in mine))
    known = {cell: recorded.row(cell) for cell in every if cell in recorded}
    if not options.so_far:
        if known:
            console.print(f"{len(known):,} of {plural(len(every), 'run')} are in {recorded.file}")
        sweep([cell for cell in every if cell not in known], store, console, parallel)

    def done(cells: Iterable[Cell]) -> bool:
        return not store.missing(cell for cell in cells if cell not in known)

    rows = []
    for case in chosen:
        if done(fixed[case]):
            there = [others[case, text] for text in automatic.values() if done(others[case, text])]
            for cell in dict.fromkeys(cell for mine in (fixed[case], *there) for cell in mine):
                rows.append({**(known.get(cell) or row(_trace(store, cell))), "cell": case.name})
    if not rows:
        raise SereneError(f"{options.out}: no cell has been run with all fixed strategies yet")
    runs = pd.read_csv(StringIO(pd.DataFrame(rows).to_csv(index=False)))  # numbers, also of recorded rows
    found = regrets(runs.assign(took_s=took_s(runs)), automatic)
    head, lines = summary(found)
    console.print(terminal.table(head, lines, ["strategy"], f"regret in {plural(found['cell'].nunique(), 'cell')}"))
    for strategy in dict.fromkeys(automatic.values()) if options.strategies else (AUTOMATIC[BEST],):
        if strategy.startswith(PREFIX) and strategy in set(runs["strategy"]):
            head, lines = worth(runs, strategy)
            console.print(terminal.table(head, lines, head[:1]))
    if options.csv:
        outputs.write_text(options.csv, found.to_csv(index=False))
    if options.runs:
        outputs.write_text(options.runs, pd.DataFrame(rows).drop(columns="cell").to_csv(index=False))
    if options.page:
        part = options.part or ("mininet" if options.mininet else "regret")
        write_page(options.page, found, runs, AUTOMATIC[BEST], part)


def _confirm(
    recorded: Recorded,
    chosen: Sequence[Case],
    seeds: Sequence[int],
    store: Store,
    console: Console,
    parallel: Parallel | None,
) -> None:
    """Repeats one recorded run of each model, the one that takes the least time, and forgets the recorded runs and
    targets of a model if the result is another one here, or if no such run is recorded. parallel: None to make no run,
    but compare one that the store has; a model of which it has none is not checked."""
    until = {
        each: known
        for case in chosen
        if (known := recorded.until(case)) is not None
        # The second one is for a straggler of one's own, of which no run is recorded.
        for each in (case, replace(case, straggler="none", target=""))
    }
    possible: dict[str, list[Cell]] = {case.model: [] for case in chosen}
    for case in until:
        runs = _runs(case, case.fixed(), sorted({*seeds, *SEEDS}), until)
        possible[case.model] += [cell for cell in runs if cell in recorded]
    for model, runs in possible.items():
        if not runs:  # the records are of another program, say
            recorded.forget(model)
        elif parallel is None:
            runs[:] = [cell for cell in runs if store.get(cell) is not None]
    again = {model: min(runs, key=expected_s) for model, runs in possible.items() if runs}
    if parallel is not None:
        sweep([*again.values()], store, console, parallel)
    for model, cell in again.items():
        if differences := recorded.differences(cell, row(_trace(store, cell))):
            recorded.forget(model)
            console.print(
                f"{recorded.file}: its runs of the model {model} are not used, because one of them has another result "
                f"here ({label(cell)}: {differences[0]})"
            )


def _runs(case: Case, strategies: Iterable[str], seeds: Sequence[int], until: Mapping[Case, float]) -> list[Cell]:
    """The runs of a cell with each of these strategies, each once."""
    return [case.cell(strategy, seed, until[case]) for strategy in dict.fromkeys(strategies) for seed in seeds]


def main() -> int:
    parser = Parser("", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--strategies",
        default="",
        help=f"strategies beside the fixed ones: {choices(AUTOMATIC)}, a fixed one such as mixed:0, or FILE.py:NAME, "
        "separated by commas (default: all of these that have names)",
    )
    add("--models", default=",".join(OPTIMISERS), help=f"{choices(OPTIMISERS)}, separated by commas (default: all)")
    add(
        "--cells",
        default="",
        help="only cells with these settings, as in 'edge, 4 workers'; separate several such texts by ; (default: all)",
    )
    add(
        "--straggler",
        default="",
        help="a straggler profile in place of the cells' own, such as failure:iteration=20 or trace:FILE",
    )
    add(
        "--steps",
        type=whole(10),
        default=STEPS,
        help=f"iterations of a run (default: {STEPS}); the target is what BSP without stragglers has after "
        f"{100 * TARGET_AT:.0f} %% of them",
    )
    add("--mininet", action="store_true", help="run cells of the mlp in Mininet, instead of cells in virtual time")
    add("--seeds", default=",".join(map(str, SEEDS)), help="seeds of the runs, separated by commas (default: 4,5,6)")
    add("--out", type=Path, default=Path("runs/regret"), help="directory for the runs (default: runs/regret)")
    add("--so-far", action="store_true", help="run nothing; use the cells and strategies whose runs are finished")
    add(
        "--recorded",
        type=lambda text: Path(text) if text else None,
        default=PUBLISHED if PUBLISHED.exists() else None,
        help=f"CSV file that --runs wrote: these runs need not be made again; empty for none (default: {PUBLISHED})",
    )
    add("--csv", type=Path, help="CSV file for the regrets")
    add("--runs", type=Path, help="CSV file with a row for each run")
    add("--page", type=Path, help="page whose table is replaced")
    add("--part", default="", help="the part of the page, as its comments name it (default: regret, or mininet)")
    add(
        "--parallel",
        type=whole(1),
        default=os.cpu_count() or 1,
        help="runs at a time (default: one for each processor)",
    )
    options = parser.parse_args()
    if options.mininet and not options.so_far and os.geteuid() != 0:
        return with_sudo(terminal.console())
    return studies.main(options, run)


if __name__ == "__main__":
    raise SystemExit(ended(main))
