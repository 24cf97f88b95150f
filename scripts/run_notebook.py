"""Runs a notebook's cells in this process and stores their texts and figures.

python scripts/run_notebook.py examples/stragglers.ipynb

The cells are plain Python without magics, so neither this script nor its test needs Jupyter.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def run(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Runs the code cells in their order. Yields each cell with its outputs: the printed text, and the open figures. A
    cell's exceptions are not caught."""
    names: dict[str, Any] = {"__name__": "__main__"}
    open_before = set(plt.get_fignums())
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), "<cell>", "exec"), names)
        outputs: list[dict[str, Any]] = []
        if printed.getvalue():
            text = printed.getvalue().splitlines(keepends=True)
            outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        for number in sorted(set(plt.get_fignums()) - open_before):
            image = io.BytesIO()
            plt.figure(number).savefig(image, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None})
            data = {"image/png": base64.b64encode(image.getvalue()).decode(), "text/plain": ["<Figure>"]}
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
            plt.close(number)
        yield cell, outputs


def main() -> None:
    path = Path(sys.argv[1])
    notebook = json.loads(path.read_text())
    for number, (cell, outputs) in enumerate(run(notebook), 1):
        cell["outputs"], cell["execution_count"] = outputs, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
