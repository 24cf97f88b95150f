"""One look for all figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

GRID = "#dddddd"
DPI = 110


def panels(rows: int, columns: int, width: float = 5.2, height: float = 3.2, **options: Any) -> tuple[Any, Any]:
    """A figure with rows x columns axes, always as a two-dimensional array."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained", **options
    )
    for each in axes.flat:
        each.grid(color=GRID, linewidth=0.6)
        each.set_axisbelow(True)
        for side in ("top", "right"):
            each.spines[side].set_visible(False)
    return figure, axes


def one_legend(figure: Any, axes: Any) -> None:
    """Below the figure, each label once."""
    columns = max(int(figure.get_figwidth() / 1.5), 2)
    found: dict[str, Any] = {}
    for each in axes.flat:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def save(figure: Any, path: Path, dpi: int = DPI) -> Path:
    figure.savefig(path, dpi=dpi)
    plt.close(figure)
    return path
