"""The report: one HTML page that stands alone, its pictures as PNG, its numbers as CSV."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from experiments.shared import studies
from experiments.straggler_study import agreement, distortion, grid, tables
from experiments.straggler_study.pictures import choice, learning, waiting
from experiments.straggler_study.study import Study
from serene import outputs
from workers import data

TIMELINE = ("bsp", "ssp:3", "auto:waiting")


def write(study: Study, out: Path) -> Path:
    """report.html, and what it shows, into ``out``. Raises Incomplete. Every file appears whole."""
    study.check()
    drawn = _pictures(study, out)
    _csv(study, out)
    page = _page(study, drawn, out)
    outputs.write_text(out / "report.html", page)
    return out / "report.html"


def _pictures(study: Study, out: Path) -> dict[str, Path]:
    cells = study.grid.study
    models = list(dict.fromkeys(cell.model for cell in cells))
    drawn: dict[str, Path] = {}

    def draw(name: str, how: Callable[[Path], Path]) -> None:
        drawn[name] = how(out / f"{name}.png")

    for model in models:
        draw(f"accuracy-time-{model}", partial(learning.accuracy, study, cells, model, "t"))
        draw(f"accuracy-steps-{model}", partial(learning.accuracy, study, cells, model, "steps"))
        draw(f"target-{model}", partial(learning.target_time, study, cells, model))
    draw("split-mlp", partial(waiting.split, study, cells, "mlp"))
    draw("waiting-mlp", partial(waiting.waiting, study, cells, "mlp"))
    shown = [grid.cell(4, "mlp", grid.SLOW, strategy, 1) for strategy in TIMELINE]
    draw("timeline", partial(waiting.timeline, study, shown))
    mlp = [cell for cell in cells if cell.model == "mlp"]
    for workers in sorted({cell.workers for cell in mlp}):
        draw(f"staleness-{workers}", partial(waiting.staleness, study, mlp, "mlp", workers))
    draw("tuning", partial(choice.tuning, study))
    draw("map", partial(choice.strategy_map, study))
    draw("scale", partial(choice.scale, study))
    draw("automatic", partial(choice.automatic, study, cells))
    found = agreement.pairs(study)
    if found:
        draw("agreement", partial(agreement.draw, found))
    return drawn


def _csv(study: Study, out: Path) -> None:
    tables.runs_csv(study, out / "runs.csv")
    tables.curves_csv(study, out / "accuracy.csv")
    tables.write_csv(out / "parts.csv", *tables.parts(study, "mlp"))
    tables.write_csv(out / "tuned.csv", *tables.against_tuned(study))
    tables.write_csv(out / "map.csv", *tables.map_rows(study))
    tables.write_csv(out / "agreement.csv", *tables.agreement_rows(agreement.pairs(study)))


def _page(study: Study, drawn: dict[str, Path], out: Path) -> str:
    cells = study.grid.cells()
    found = agreement.pairs(study)
    models = list(dict.fromkeys(cell.model for cell in study.grid.study))
    network = grid.LOOPBACK
    return studies.template(Path(__file__).with_name("report.html")).render(
        made=time.strftime("%Y-%m-%d"),
        grid=study.grid.name,
        runs=len(cells),
        simulated=sum(cell.engine == "simulated" for cell in cells),
        emulated=sum(cell.engine == "emulated" for cell in cells),
        data=_data(cells[0].dataset),
        targets=", ".join(f"{grid.TARGETS[model]:.2f} ({model})" for model in models),
        network=(
            f"its packets pass links of {network.worker_pps:,.0f} and a switch of {network.switch_pps:,.0f} packets of "
            f"320 values a second, with {network.latency_us:g} µs of delay each way"
        ),
        rates=", ".join(f"{rate:g}" for rate in grid.RATES),
        paper=tables.against_the_paper(study),
        parts=tables.parts(study, "mlp"),
        parts_cnn=tables.parts(study, "cnn") if "cnn" in models else None,
        tuned=tables.against_tuned(study),
        map=tables.map_rows(study),
        nearness=tables.nearness(study),
        agreement=tables.agreement_rows(found),
        agreement_text=agreement.text(found),
        distortion=distortion.rows(distortion.known(out)),
        pictures={name: base64.b64encode(path.read_bytes()).decode() for name, path in drawn.items()},
        files=", ".join(sorted(path.name for path in out.iterdir() if path.suffix in (".csv", ".png"))),
    )


def _data(dataset: str) -> str:
    whole = data.load(dataset)
    channels, height, width = whole.shape
    size = f"{len(whole.train_labels):,} images to train and {len(whole.test_labels)} to test"
    origin = ", the scanned digits of the UCI repository as scikit-learn ships them, scaled up" * (dataset == "digits")
    return f"{dataset} ({size}, {channels}x{height}x{width}{origin}; not MNIST)" if origin else f"{dataset} ({size})"
