"""The picture of a run, accuracy.png: every worker's accuracy and its waiting over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from serene.palette import COLOURS, colour_of

if TYPE_CHECKING:
    from serene.experiments.run.results import Results


def draw(results: Results, path: Path) -> None:
    """Draws a run's results into an image file."""
    from serene.experiments.shared.style import (  # matplotlib takes a second to import
        fit_names,
        panels,
        save,
        strategy_band,
    )

    summary = results.summary
    figure, axes = panels(2, 1, width=9, height=3.25, height_ratios=(2, 1), sharex=True)
    above, below = axes[:, 0]
    figure.suptitle(
        f"{summary['model']} on {summary['dataset']}, {summary['workers']} workers, {summary['target']} switch, "
        f"straggler {summary['straggler']}",
        fontsize=11,
    )
    for worker in range(summary["workers"]):
        colour = COLOURS[worker % len(COLOURS)]
        rows = [row for row in results.rows if int(row["worker"]) == worker]
        tested = [(row["t"], float(row["accuracy"])) for row in rows if row["accuracy"]]
        above.plot(
            [0.0, *(t for t, _ in tested)], [summary["initial_accuracy"], *(value for _, value in tested)],
            color=colour, linewidth=1.4, label=f"worker {worker}",
        )  # fmt: skip
        waited, total = [0.0], 0.0
        for row in rows:
            total += float(row["waiting_s"])
            waited.append(total)
        below.plot([0.0, *(row["t"] for row in rows)], waited, color=colour, linewidth=1.4)
    end = max([row["t"] for row in results.rows], default=1.0)
    changes = [change for change in summary["changes"] if change["t"] < end]
    for change in changes[1:]:
        for each in (above, below):
            each.axvline(change["t"], color=colour_of(change["strategy"]), linewidth=0.8, linestyle="--")
    names = strategy_band(above, [(change["t"], change["strategy"]) for change in changes], end)
    above.set_ylabel("test accuracy")
    above.set_ylim(0, 1.05)
    below.set_ylabel("waited at the barrier [s]")
    below.set_xlabel("time since the start of training [s]")
    below.set_xlim(0, end * 1.02)
    below.set_ylim(bottom=0)
    for name in fit_names(figure, names, end):
        above.plot([], [], color=colour_of(name), linewidth=5, label=name)
    above.legend(
        loc="lower right", fontsize=8, ncols=2 if len(above.get_legend_handles_labels()[0]) > 4 else 1, frameon=False
    )
    save(figure, path, dpi=130)
