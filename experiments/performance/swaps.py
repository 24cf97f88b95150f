"""Measures how long live swaps take, many in one training run: ``make swaps``.

A swap's latency is the time from the command to the moment at which the last worker computes under the new epoch. It is
also given in iterations: how many a worker still finished under an older epoch, at most. Results are in swaps.csv and
swaps.png, beside the run's own.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import math
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from serene.arguments import Parser, command, usage
from serene.clock import unix_s
from serene.controller.http.client import ControllerClient, NoController, Rejected
from serene.controller.jobs.job import JobState
from serene.controller.status.model import JobStatus
from serene.errors import SereneError
from serene.experiments.run.launch import Companion, launch
from serene.experiments.run.results import Results
from serene.experiments.run.settings import BadSetting, check
from serene.experiments.shared import terminal
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.palette import COLOURS
from serene.strategy import Strategy

Json = dict[str, Any]

FIRST = "bsp"  # the family of the strategy that a run begins with
FIRST_AT_STEP = 3  # which every worker has done before the first swap
LONGER = 1.3  # by what factor the run has more steps than the swaps need on average


@dataclass(frozen=True)
class Commanded:
    """A swap as the controller did it. t_unix: when it was commanded. epoch: that it began. before, strategy: the old
    and the new one. write_ms: what the writes to the switch took."""

    t_unix: float
    epoch: int
    before: str
    strategy: str
    write_ms: float


class Swapper(Companion):
    """The companion of a run that commands so many swaps, ``every_s`` apart on average, each to another family of
    strategies."""

    def __init__(self, count: int, every_s: float, seed: int, workers: int) -> None:
        self._left = count
        self._every_s = every_s
        self._random = random.Random(seed)
        self._next_at = 0.0
        self._strategies = alternating(walk(self._random), seed, workers)
        self.commanded: list[Commanded] = []
        self.failed: list[str] = []  # swaps that were refused, or whose command got no answer
        self.swaps = pd.DataFrame()  # as `latencies` returns it

    def look(self, job: JobStatus, controller: ControllerClient) -> None:
        """Commands a swap, if it is time for one."""
        begun = min(worker.iteration for worker in job.workers) >= FIRST_AT_STEP
        if not begun or not self._left or time.monotonic() < self._next_at or job.state is not JobState.RUNNING:
            return
        self._next_at = time.monotonic() + self._every_s * self._random.uniform(0.5, 1.5)
        self._left -= 1
        before = str(job.strategy)  # by the status, not by our own account: a swap without an answer may be in force
        asked, strategy = unix_s(), self._another(before)
        try:
            swap = controller.set_strategy(job.job, strategy)
        except (NoController, Rejected) as error:
            self.failed.append(f"{before} to {strategy}: {error}")
            return
        self.commanded.append(Commanded(asked, swap.epoch, before, str(strategy), swap.write_ms))

    def _another(self, than: str) -> Strategy:
        return next(strategy for strategy in self._strategies if str(strategy) != than)

    def keep(self, results: Results, directory: Path) -> None:
        """Writes swaps.csv and swaps.png, if there were swaps."""
        self.swaps = latencies(self.commanded, results.rows)
        if self.swaps.empty:
            return
        self.swaps.to_csv(directory / "swaps.csv", index=False)
        draw(self.swaps, results.summary, directory / "swaps.png")

    def report_lines(self) -> list[str]:
        """Lines on the distribution of the latencies. Raises SereneError if there was no swap."""
        failed = [f"not done, or without an answer: {line}" for line in self.failed]
        if self.swaps.empty:
            why = "the run ended before the first swap: give it more --swaps, or a longer --compute-ms"
            raise SereneError("\n".join([*failed, why]))
        late, finished = self.swaps["latency_ms"], self.swaps["iterations"]
        counts = ", ".join(f"{(finished == number).sum()} after {number}" for number in range(finished.max() + 1))
        written = self.swaps["write_ms"].median()
        return [
            f"{len(self.swaps)} swaps, from the command to the last worker under the new epoch: "
            f"median {late.median():.0f} ms, 95 % within {late.quantile(0.95):.0f} ms, "
            f"longest {late.max():.0f} ms",
            f"in iterations that a worker still finished under the old epoch: {counts}",
            f"the controller's writes to its switch or switches: median {written:.1f} ms",
            *failed,
        ]


def walk(rng: random.Random) -> tuple[str, ...]:
    """The families that strategies are swapped for, in turn: a closed walk from FIRST, without it at the beginning, in
    which every family follows every other exactly once. Repeating it covers all pairs again."""
    left = {family: [other for other in FAMILIES if other != family] for family in FAMILIES}
    for others in left.values():
        rng.shuffle(others)
    # Hierholzer's algorithm: walk while a pair is left, then insert the detours where the walk ended early.
    way, found = [FIRST], []
    while way:
        if left[way[-1]]:
            way.append(left[way[-1]].pop())
        else:
            found.append(way.pop())
    return tuple(reversed(found[:-1]))


def latencies(commanded: Iterable[Commanded], rows: Sequence[Json]) -> pd.DataFrame:
    """The swaps as the workers saw them: ``t``, seconds since the start of training, ``epoch``, ``before``,
    ``strategy`` and ``write_ms``; ``latency_ms`` from the command to the last worker under the new epoch; and
    ``iterations``, how many a worker still finished under an older epoch, at most. rows: of metrics.csv. A swap is left
    out if a worker ended before it adopted the epoch.

    A worker adopts an epoch at the end of an iteration, so it computes under it from the end of the last older one.
    """
    steps = pd.DataFrame(rows).astype({"t_unix": float, "epoch": int})
    start = (steps["t_unix"] - steps["t"]).min()
    found = []
    for swap in commanded:
        older = steps["epoch"] < swap.epoch
        if steps[~older]["worker"].nunique() == steps["worker"].nunique():
            after = steps[older & (steps["t_unix"] > swap.t_unix)]
            adopted = max([swap.t_unix, *after["t_unix"]])
            found.append({
                "t": round(swap.t_unix - start, 3), "epoch": swap.epoch, "before": swap.before,
                "strategy": swap.strategy, "write_ms": round(swap.write_ms, 3),
                "latency_ms": round((adopted - swap.t_unix) * 1e3, 3),
                "iterations": max(after["worker"].value_counts(), default=0),
            })  # fmt: skip
    return pd.DataFrame(found)


def draw(swaps: pd.DataFrame, summary: Json, path: Path) -> None:
    """Draws the distribution of the latencies, and of the iterations, into an image file."""
    from serene.experiments.shared.style import panels, save  # matplotlib takes a second to import

    figure, axes = panels(1, 2, width=4.5, height=3.6, width_ratios=(3, 2))
    left, right = axes[0]
    figure.suptitle(
        f"{len(swaps)} live swaps in one run: {summary['workers']} workers, {summary['target']} switch, "
        f"straggler {summary['straggler']}",
        fontsize=11,
    )
    late = np.sort(swaps["latency_ms"])
    left.step([0, *late], np.arange(len(late) + 1) / len(late) * 100, where="post", color=COLOURS[0], linewidth=1.6)
    left.set_xlabel("command to the last worker under the new epoch [ms]")
    left.set_ylabel("swaps [%]")
    left.set_xlim(0, late[-1] * 1.03)
    left.set_ylim(0, 101)
    numbers, counts = np.unique(swaps["iterations"], return_counts=True)
    right.bar(numbers, counts, color=COLOURS[0], width=0.6)
    right.set_xticks(range(numbers.max() + 1))
    right.set_xlabel("iterations finished under the old epoch")
    right.set_ylabel("swaps")
    save(figure, path, dpi=130)


def _parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument("--swaps", type=int, default=200, help="number of swaps (default 200)")
    parser.add_argument("--every-ms", type=float, default=400, help="mean time between two swaps (default 400)")
    parser.add_argument("--workers", default="4", help="number of workers (default 4)")
    parser.add_argument("--racks", default="1", help="number of racks; several use a tree of switches")
    parser.add_argument("--target", default="auto", help="auto, embedded or bmv2")
    parser.add_argument("--compute-ms", type=float, default=100, help="mean compute time of an iteration (default 100)")
    parser.add_argument("--straggler", default="slow_worker:probability=0.2", help="straggler profile (%(default)s)")
    parser.add_argument("--seed", default="1", help="random seed")
    parser.add_argument("--out", type=Path, help="directory for the results (default runs/DATE-swaps)")
    return parser


@command
def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    if options.swaps < 1 or not 0 < options.every_ms < math.inf or not 0 < options.compute_ms < math.inf:
        parser.error("--swaps: expected 1 or more; --every-ms and --compute-ms: expected more than 0")
    console = terminal.console()
    with usage():
        settings = check(
            workers=options.workers,
            racks=options.racks,
            strategy=FIRST,
            straggler=options.straggler,
            steps=str(math.ceil(LONGER * options.swaps * options.every_ms / options.compute_ms) + 10 * FIRST_AT_STEP),
            target=options.target,
            seed=options.seed,
            compute_ms=options.compute_ms,
            out=options.out or Path("runs", f"{time.strftime('%Y%m%d-%H%M%S')}-swaps"),
        )
        if settings.workers < 2:
            raise BadSetting("--workers 1: expected 2 or more, as mixed strategies need")
    swapper = Swapper(options.swaps, options.every_ms / 1e3, settings.seed, settings.workers)
    return launch(settings, console, swapper)


if __name__ == "__main__":
    raise SystemExit(ended(main))
