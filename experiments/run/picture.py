"""The picture of a run: accuracy over time, and who waited how long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from serene.palette import COLOURS

if TYPE_CHECKING:
    from experiments.run.results import Results


def draw(results: Results, path: Path) -> None:
    from experiments.shared.style import panels, save  # matplotlib takes a second to import

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
    changes = [change for change in summary["strategy"] if change["t"] < end]
    for number, change in enumerate(changes):
        for each in (above, below):
            each.axvline(change["t"], color="#888888", linewidth=0.8, linestyle="--" if number else "-")
        above.annotate(
            change["strategy"], (change["t"], 1.0), xycoords=("data", "axes fraction"),
            xytext=(4, -4 - 11 * (number % 2)), textcoords="offset points", va="top", fontsize=8, color="#444444",
        )  # fmt: skip
    above.set_ylabel("test accuracy")
    above.set_ylim(0, 1.05)
    above.legend(loc="lower right", fontsize=8, ncols=2 if summary["workers"] > 4 else 1, frameon=False)
    below.set_ylabel("waited at the barrier [s]")
    below.set_xlabel("time since the start of training [s]")
    below.set_xlim(0, end * 1.02)
    below.set_ylim(bottom=0)
    save(figure, path, dpi=130)
