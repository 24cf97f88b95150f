"""Recomputes the figures of the paper's authors from their logs.

    python -m serene.experiments.straggler_study.authors DIRECTORY
    python -m serene.experiments.straggler_study.authors DIRECTORY/RUN --trace authors.csv

DIRECTORY is a copy of the public repository RicardoParizotto/serener, whose logs are below workers/agents/notebooks.
They are no part of this repository. A run is a directory with settings.json and a worker-N-stats.csv for each worker: a
row for each evaluation, one in 10 steps; and at the end a row with the worker's seconds, in all, and in READ and CLOCK
packets with their round trips. A run is over when one worker's accuracy is above 0.91.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import json
from pathlib import Path

import numpy as np
import pandas as pd
from rich.table import Table

from serene.arguments import Parser, command
from serene.errors import BadUsage
from serene.experiments.shared import terminal
from serene.process import outputs

TARGET = 0.91
STEPS_PER_EVALUATION = 10
WRONG = (OSError, ValueError, KeyError, TypeError, AttributeError)  # what reading something else raises


def _worker(path: Path) -> tuple[pd.DataFrame, float] | None:
    """A worker's evaluations and the share of its time in the exchange; None if its log has no times, or does not reach
    the end of the run. Raises ValueError."""
    log = pd.read_csv(path, header=0, index_col=False)
    if "time_refs" not in log or len(log) < 2 or not log.iloc[-1, 2:].isna().all():
        return None
    total_s, exchange_s = log.iloc[-1, :2].astype(float)
    return log.iloc[:-1][["time_refs", "val_acc"]].astype(float), exchange_s / total_s


def _workers(directory: Path) -> list[tuple[pd.DataFrame, float]]:
    """The workers of a run whose logs `_worker` can use."""
    return [found for path in sorted(directory.glob("worker-*-stats.csv")) if (found := _worker(path)) is not None]


def _run(directory: Path) -> dict[str, object] | None:
    """The run in a directory, as a row of `read`; None if it did not reach the target, or its logs have no times."""
    settings = json.loads((directory / "settings.json").read_text())
    workers = _workers(directory)
    ends = []
    for log, _ in workers:
        reached = np.flatnonzero(log["val_acc"] > TARGET)
        if len(reached) and reached[0]:
            ends.append((log["time_refs"][reached[0]], int(reached[0]), log["time_refs"][0]))
    if not ends:
        return None
    ended, evaluations, began = min(ends)
    pattern = settings.get("straggling_pattern")
    return {
        "workers": settings["workers"], "straggler": str(pattern["args"]["pattern"]) if pattern else "none",
        "s": int(settings["stale"]), "evaluations": evaluations,
        "step_s": (ended - began) / (evaluations * STEPS_PER_EVALUATION), "seconds": ended - began,
        "exchanging": np.mean([exchanging for _, exchanging in workers]),
    }  # fmt: skip


def read(root: Path) -> pd.DataFrame:
    """A row for every run below a directory, copies of the same run only once. series: the directory above the run's.
    s: the staleness bound, 0 for BSP. evaluations: how many the worker that was first above the target did until then.
    seconds: from the first of these to the last. exchanging: the share of their time, 0 to 1, that the workers spent in
    READ and CLOCK, on average. Raises BadUsage."""
    rows, seen = [], set()
    for settings in sorted(root.rglob("settings.json")):
        directory = settings.parent
        try:
            logs = b"".join(path.read_bytes() for path in sorted(directory.glob("worker-*-stats.csv")))
            if not logs or logs in seen or ".ipynb_checkpoints" in directory.parts:
                continue
            seen.add(logs)
            if (run := _run(directory)) is not None:
                rows.append({"series": str(directory.relative_to(root).parent), **run})
        except WRONG as error:
            raise BadUsage(f"{directory}: not a run of the authors' ({type(error).__name__}: {error})") from None
    if not rows:
        raise BadUsage(f"{root}: no settings.json with worker-N-stats.csv beside it; expected the authors' logs")
    return pd.DataFrame(rows).sort_values(["series", "s"], kind="stable")


def table(runs: pd.DataFrame) -> Table:
    """The table to print, with a row for each run. Runs with a staleness bound are compared with the BSP run of the
    same series."""
    compared = ["evaluations", "step_s", "seconds"]
    changes = 100 * (runs[compared] / runs.groupby("series")[compared].transform("first") - 1)
    bsp = runs.groupby("series")["s"].transform("first") == 0
    rows = []
    for run, change in zip(runs.itertuples(), changes.where(bsp & (runs["s"] != 0)).to_numpy(), strict=True):
        rows.append([
            run.series, str(run.workers), run.straggler, str(run.s), str(run.evaluations), f"{run.step_s:.1f}",
            f"{run.seconds / 3600:.2f}", f"{100 * run.exchanging:.0f} %",
            *("" if np.isnan(value) else f"{value:+.1f} %" for value in change),
        ])  # fmt: skip
    head = ["series", "workers", "straggler", "s", "evaluations", "s a step", "hours", "in READ and CLOCK"]
    return terminal.table([*head, "evaluations", "a step", "time"], rows, ["series", "straggler"])


def delays(run: Path) -> pd.DataFrame:
    """A run's delays for ``STRAGGLER=trace:FILE`` (`serene.workers.stragglers.Recorded`): columns ``worker``,
    ``iteration`` and ``factor``.

    The logs have a time for every ten steps. A factor is these seconds over the fewest of any worker of the run, so the
    exchange counts as computing. Choose a run in which nobody waits: one with a large bound. Raises BadUsage.
    """
    try:
        took = [np.diff(log["time_refs"]) for log, _ in _workers(run)]
    except WRONG as error:
        raise BadUsage(f"{run}: not a run of the authors' ({type(error).__name__}: {error})") from None
    if not took or not all(len(each) and 0 < each.min() <= each.max() < np.inf for each in took):  # NaN is refused, too
        raise BadUsage(f"{run}: no worker-N-stats.csv with the time of each evaluation; expected a run of the authors'")
    fewest = min(each.min() for each in took)
    rows = [
        (worker, STEPS_PER_EVALUATION * evaluation + 1, round(seconds / fewest, 4))
        for worker, each in enumerate(took)
        for evaluation, seconds in enumerate(each)
    ]
    return pd.DataFrame(rows, columns=["worker", "iteration", "factor"])


@command
def main() -> None:
    parser = Parser("The paper's authors' figures from a copy of their logs (github.com/RicardoParizotto/serener).")
    parser.add_argument("directory", type=Path, help="a copy of that repository, or of a part of it")
    parser.add_argument("--trace", type=Path, help="write the delays of the run in the directory to this file")
    options = parser.parse_args()
    root = options.directory
    if options.trace is not None:
        outputs.write_text(options.trace, delays(root).to_csv(index=False))
        return
    terminal.console(200, highlight=False).print(table(read(root)))
    print("The last three columns: against s = 0 (BSP) in the same series. One run each: no spread is known.")


if __name__ == "__main__":
    raise SystemExit(ended(main))
