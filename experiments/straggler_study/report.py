"""The report: one HTML page that stands alone, its pictures as PNG, its numbers as CSV."""

from __future__ import annotations

import base64
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from experiments.run.rerun import machine
from experiments.run.settings import BMV2
from experiments.shared import studies
from experiments.straggler_study import agreement, claims, grid, headline, names, side_by_side, tables
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.names import percent, straggler_name
from experiments.straggler_study.pictures import answer, choice, learning, waiting
from experiments.straggler_study.study import Study
from serene import outputs
from workers import data

TIMELINE_STEPS = 25  # of BSP, that a time line shows
BUSY = 0.05  # computed later than asked for


@dataclass
class Section:
    """Of one model and straggler: pictures by name, and a table."""

    title: str
    pictures: dict[str, list[str]]
    table: tuple[list[str], list[list[str]]]


@dataclass
class Drawn:
    """Pictures by name, as they are drawn."""

    out: Path
    paths: dict[str, Path] = field(default_factory=dict)

    def __call__(self, name: str, how: Callable[[Path], Path]) -> str:
        self.paths[name] = how(self.out / f"{name}.png")
        return name


def write(study: Study, out: Path) -> Path:
    """report.html, and what it shows, into ``out``. Raises Incomplete. Every file appears whole."""
    study.check()
    drawn = Drawn(out)
    sections = [_section(study, drawn, *case) for case in study.cases()]
    maps = _maps(study, drawn)
    found = agreement.pairs(study)
    agrees = [
        drawn(f"agreement-{measure[0]}", partial(agreement.draw, found, measure))
        for measure in agreement.MEASURES
        if found
    ]
    _csv(study, out)
    page = _page(study, drawn, out, sections=sections, maps=maps, agrees=agrees)
    outputs.write_text(out / "report.html", page)
    return out / "report.html"


def _section(study: Study, drawn: Drawn, model: str, straggler: str, shares: list[float]) -> Section:
    key = f"{model}-{straggler.partition(':')[0]}"
    pictures: dict[str, list[str]] = {}
    if straggler != grid.NONE:
        for wide, name in ((True, f"answer-{key}"), (False, f"answer-{key}-narrow")):
            drawn(name, partial(answer.answer, study, model, straggler, shares, wide=wide))
        for what in ("time", "steps", "split", "waiting"):
            pictures[what] = []
        for share in shares:
            cells = study.headline(model, straggler, share)
            title = f"exchange {percent(share)} of a step"
            drawn_of = _curves(cells)
            for what, over in (("time", "t"), ("steps", "steps")):
                how = partial(learning.accuracy, study, drawn_of, over, title)
                pictures[what].append(drawn(f"accuracy-{what}-{key}-{100 * share:.0f}", how))
            name = f"split-{key}-{100 * share:.0f}"
            pictures["split"].append(drawn(name, partial(waiting.split, study, cells, title)))
            waits = [cell for cell in cells if names.way(cell) in (names.EMBEDDED, names.SERVER)]
            name = f"waiting-{key}-{100 * share:.0f}"
            pictures["waiting"].append(drawn(name, partial(waiting.cumulative, study, waits, title)))
        line = _timeline(study, drawn, key, model, straggler, shares)
        if line is not None:
            pictures["timeline"] = [line]
    title = f"{model}, {straggler_name(straggler)}"
    return Section(title, pictures, headline.rows(study, model, straggler, shares))


def _curves(cells: Sequence[Cell]) -> list[Cell]:
    """Few enough to be told apart: Serene on the embedded switch, and BSP of the others."""
    return [
        cell for cell in cells
        if names.way(cell) == names.EMBEDDED
        or (names.way(cell) in (names.SERVER, names.SHARDED, names.GLOO) and cell.strategy == "bsp")
    ]  # fmt: skip


def _timeline(study: Study, drawn: Drawn, key: str, model: str, straggler: str, shares: Sequence[float]) -> str | None:
    """At a middle share: BSP, SSP(10) and the automatic strategy in the same seed."""
    share = sorted(shares)[len(shares) // 2]
    cells = [
        cell
        for cell in study.grid.headline
        if (cell.model, cell.straggler, cell.share, names.way(cell)) == (model, straggler, share, names.EMBEDDED)
        and cell.strategy in ("bsp", "ssp:10", grid.AUTOMATIC)
        and cell not in study.missing
    ]
    if not cells:
        return None
    seed = cells[0].seed
    shown = [cell for cell in cells if cell.seed == seed]
    until = TIMELINE_STEPS * study.numbers(shown[0]).step_s
    return drawn(f"timeline-{key}", partial(waiting.timeline, study, shown, until_s=until))


def _maps(study: Study, drawn: Drawn) -> list[str]:
    counts = sorted({cell.workers for cell in study.grid.map})
    maps = [drawn(f"map-{workers}", partial(choice.strategy_map, study, workers)) for workers in counts]
    return [*maps, drawn("scale", partial(choice.scale, study))] if study.grid.scale else maps


def _csv(study: Study, out: Path) -> None:
    tables.runs_csv(study, out / "runs.csv")
    tables.curves_csv(study, out / "accuracy.csv")
    tables.write_csv(out / "map.csv", *tables.map_rows(study))
    tables.write_csv(out / "claims.csv", *claims.rows(claims.claims(study)))
    tables.write_csv(out / "agreement.csv", *agreement.rows(agreement.pairs(study)))


def _page(study: Study, drawn: Drawn, out: Path, *, sections: list[Section], maps: list[str], agrees: list[str]) -> str:
    cells, found = study.grid.cells(), agreement.pairs(study)
    emulated = [cell for cell in study.grid.headline if cell not in study.missing]
    loads = [study.trace(cell).facts.get("load", float("nan")) for cell in emulated]
    late = [study.numbers(cell).late for cell in emulated]
    return studies.template(Path(__file__).with_name("report.html")).render(
        made=time.strftime("%Y-%m-%d"),
        grid=study.grid.name,
        sentences=headline.answer(study).sentences(),
        emulated=len(emulated),
        wanted=len(study.grid.headline),
        simulated=sum(cell.engine == "simulated" for cell in cells),
        seeds=", ".join(str(seed) for seed in sorted({cell.seed for cell in study.grid.headline})),
        missing=headline.missing_rows(study),
        has_bmv2=any(cell.target == "bmv2" for cell in study.grid.headline),
        data=_data(grid.DATASET),
        lengths=_lengths(study),
        targets=", ".join(
            f"{study.grid.targets[model]:.2f} ({model})" for model in grid.PARAMETERS if model in study.grid.targets
        ),
        paces=_paces(study),
        recipes=_recipes(study),
        machine=_machine(),
        load=f"{np.nanmedian(loads):.1f} (at most {np.nanmax(loads):.1f})",
        late=f"{sum(value > BUSY for value in late)} of {len(late)}",
        busy=sum(value > BUSY for value in late) > len(late) / 4,
        late_by=f"{100 * BUSY:.0f} %",
        claims=claims.rows(claims.claims(study)),
        scapy=headline.scapy_rows(study),
        sections=sections,
        maps=maps,
        map=tables.map_rows(study),
        agreement=agreement.rows(found),
        agreement_text=agreement.text(found),
        agrees=agrees,
        together=side_by_side.rows(side_by_side.known(out)),
        pictures={name: base64.b64encode(path.read_bytes()).decode() for name, path in drawn.paths.items()},
        files=", ".join(sorted(path.name for path in out.iterdir() if path.suffix in (".csv", ".png"))),
    )


def _recipes(study: Study) -> str:
    found = dict.fromkeys((cell.model, cell.batch_size, cell.learning_rate) for cell in study.grid.headline)
    return ", ".join(
        f"{batch_size} at the rate {rate}{' as the authors do' if model == 'mlp' else ''} ({model})"
        for model, batch_size, rate in found
    )


def _lengths(study: Study) -> str:
    found = {cell.model: cell.steps for cell in study.grid.headline}
    return ", ".join(f"{steps} ({model}, {grid.PARAMETERS[model]:,} parameters)" for model, steps in found.items())


def _paces(study: Study) -> tuple[list[str], list[list[str]]]:
    """What makes the exchange a share of a step."""
    head = ["wanted share", "model", "links [Mbit/s]", "an iteration computes [ms]", "exchange at the link's rate [ms]"]
    told = dict.fromkeys((cell.share, cell.model, cell.link_mbit, cell.compute_ms) for cell in study.grid.headline)
    return head, [
        [percent(share), model, f"{link:g}", f"{computing:.1f}", f"{computing * share / (1 - share):.1f}"]
        for share, model, link, computing in sorted(told)
    ]


def _machine() -> str:
    told = machine()
    versions = [f"Linux {platform.release()}", f"Python {told['python']}", f"PyTorch {told.get('torch', '-')}"]
    return f"{told['processor']}, {os.cpu_count()} processors; {', '.join([*versions, *_bmv2_version()])}"


def _bmv2_version() -> list[str]:
    path = shutil.which(BMV2)
    if path is None:
        return []
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [f"simple_switch_grpc {said.strip().splitlines()[-1]}"] if said.strip() else []


def _data(dataset: str) -> str:
    whole = data.load(dataset)
    channels, height, width = whole.shape
    size = f"{len(whole.train_labels):,} images to train and {len(whole.test_labels):,} to test"
    return f"{dataset} ({size}, {channels}x{height}x{width})"
