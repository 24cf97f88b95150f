"""A study's runs as one table, a row each, with every setting and count as a plain value (docs/results/README.md)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from serene.experiments.run.results import ACCURACIES
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.trace import Trace

SETTINGS = (
    "engine", "exchange", "target", "packets", "workers", "model", "dataset", "batch_size", "learning_rate", "momentum",
    "strategy", "straggler", "share", "compute_ms", "link_mbit", "steps", "until", "seed",
)  # fmt: skip
COUNTS = ("contributions_sent", "contributions_applied", "retransmissions")


def of_trace(trace: Trace) -> dict[str, object]:
    """A run's row. Empty where a time or a count is not known; `strategy` is the cell's text, one word."""
    cell, learned = trace.cell, curve(trace)
    reached = {target: learned.reaches(target) for target in ACCURACIES if not cell.until or target <= cell.until}
    times = {f"s_to_{target:.2f}": round(found[0], 3) for target, found in reached.items() if found is not None}
    end = learned.reaches(cell.until) if cell.until else None
    return {
        "run": cell.digest,
        **{name: getattr(cell, name) for name in SETTINGS},
        "s_to_until": round(end[0], 3) if end else "",
        "iterations_to_until": round(end[1], 1) if end else "",
        **{f"s_to_{target:.2f}": times.get(f"s_to_{target:.2f}", "") for target in ACCURACIES},
        "whole_s": round(float(learned.t[-1]), 3),
        "final_accuracy": round(float(learned.accuracy[-1]), 4),
        "swaps": len(trace.swaps) - 1,
        **{name: int(trace.facts[name]) if name in trace.facts else "" for name in COUNTS},
    }


def to_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """The table, with the rows' columns in the order of the first one's."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["run"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
