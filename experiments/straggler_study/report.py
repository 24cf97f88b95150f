"""Writes the report: one HTML file that needs no others, and its pictures as PNG and numbers as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from serene.experiments.shared import studies
from serene.experiments.shared.machine import NOT_RECORDED, summary
from serene.experiments.shared.measurements import read
from serene.experiments.straggler_study import agreement, grid, headline, names, pictures, side_by_side
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.measures import curve, row
from serene.experiments.straggler_study.names import Training, percent
from serene.experiments.straggler_study.study import Study, Table
from serene.workers import data

TIMELINE_STEPS = 25  # that a timeline shows, of BSP
BUSY = 0.05  # a run with workers that computed longer than they should have, by this share, shows a busy machine


@dataclass
class Section:
    """The report's section on one training. answer: its first picture. pictures: names of the others, by what they
    show."""

    title: str
    answer: str
    pictures: dict[str, list[str]]
    table: Table


@dataclass
class Drawn:
    """Draws pictures into a directory, and keeps their paths by name."""

    out: Path
    paths: dict[str, Path] = field(default_factory=dict)

    def __call__(self, name: str, how: Callable[[Path], Path]) -> str:
        self.paths[name] = how(self.out / f"{name}.png")
        return name


def write(study: Study, out: Path) -> Path:
    """Writes report.html, pictures and CSV files into ``out``; returns the report's path. Raises Incomplete or
    CannotWrite."""
    study.check()
    drawn, pairs = Drawn(out), agreement.pairs(study)
    cases: dict[Training, dict[float, None]] = {}
    for cell in study.grid.headline:
        cases.setdefault(Training.of(cell), {})[cell.share] = None
    sections = [_section(study, drawn, training, list(shares)) for training, shares in cases.items()]
    counts = sorted({cell.workers for cell in study.grid.map})
    maps = [drawn(f"map-{workers}", partial(pictures.strategy_map, study, workers)) for workers in counts]
    if study.grid.scale:
        maps.append(drawn("scale", partial(pictures.scale, study)))
    agrees = [drawn(f"agreement-{name}", partial(agreement.draw, pairs, name))
              for name in agreement.MEASURES if len(pairs)]  # fmt: skip
    tables = {
        "claims": headline.claims(study), "map": pictures.map_rows(study), "agreement": agreement.rows(pairs),
    }  # fmt: skip
    _write_csv(study, tables, out)
    done = study.runs[study.runs["cell"].isin(study.grid.headline)]
    late = done["late"] > BUSY
    simulated = [cell for cell in study.grid.cells() if cell.engine == "simulated"]
    settings = dict.fromkeys((cell.model, cell.batch_size, cell.learning_rate) for cell in study.grid.headline)
    return studies.write_report(
        Path(__file__).with_name("report.html"), out, drawn.paths,
        grid=study.grid.name,
        answer=headline.answer(study),
        target=study.grid.targets["mlp"],
        emulated=len(done),
        wanted=len(study.grid.headline),
        simulated=len(simulated),
        seeds=", ".join(str(seed) for seed in sorted({cell.seed for cell in study.grid.headline})),
        missing=headline.missing_rows(study),
        data=_data(grid.DATASET),
        lengths={cell.model: cell.steps for cell in study.grid.headline},
        parameters=grid.PARAMETERS,
        targets=study.grid.targets,
        paces=_paces(study),
        recipes=settings,
        conditions=_conditions(study, done["cell"]),
        conditions_simulated=_conditions(study, simulated),
        late=f"{late.sum()} of {len(late)}",
        busy=late.sum() > len(late) / 4,
        late_by=percent(BUSY),
        scapy=headline.scapy_rows(study),
        sections=sections,
        maps=maps,
        agreement_summary=agreement.summary(pairs),
        agrees=agrees,
        together=side_by_side.rows(read(out / side_by_side.FILE)),
        **tables,
    )  # fmt: skip


def _section(study: Study, drawn: Drawn, training: Training, shares: list[float]) -> Section:
    key = training.key
    found: dict[str, list[str]] = {}
    if training.straggler != grid.NONE:
        for wide, name in ((True, f"answer-{key}"), (False, f"answer-{key}-narrow")):
            drawn(name, partial(pictures.answer, study, training, shares, wide=wide))
        for share in shares:
            cells, title = study.headline(training, share), f"exchange {percent(share)} of a step"
            waits = [cell for cell in cells if names.way(cell) in (names.EMBEDDED, names.SERVER)]
            for what, name, how in (
                ("time", "accuracy-time", partial(pictures.accuracy, study, _curves(cells), "t", title)),
                ("steps", "accuracy-steps", partial(pictures.accuracy, study, _curves(cells), "steps", title)),
                ("split", "split", partial(pictures.split, study, cells, title)),
                ("waiting", "waiting", partial(pictures.cumulative, study, waits, title)),
            ):
                found.setdefault(what, []).append(drawn(f"{name}-{key}-{100 * share:.0f}", how))
        if shown := _compared(study, training, shares):
            until_s = TIMELINE_STEPS * study.of(shown[0])["step_s"][shown[0].seed]
            line = partial(pictures.timeline, study, shown, until_s=until_s)
            found["timeline"] = [drawn(f"timeline-{key}", line)]
    return Section(training.title, f"answer-{key}", found, headline.rows(study, training, shares))


def _curves(cells: Sequence[Cell]) -> list[Cell]:
    """The cells whose curves are drawn, few enough to distinguish: those through the embedded switch, and BSP by the
    baselines."""
    bases = (names.SERVER, names.SHARDED, names.GLOO)
    return [
        cell for cell in cells
        if names.way(cell) == names.EMBEDDED or (names.way(cell) in bases and cell.strategy == "bsp")
    ]  # fmt: skip


def _compared(study: Study, training: Training, shares: Sequence[float]) -> list[Cell]:
    """BSP, SSP(10) and an automatic strategy for the same seed, at the middle one of the shares."""
    wanted = training, sorted(shares)[len(shares) // 2], names.EMBEDDED
    cells = [
        cell for cell in study.grid.headline
        if (Training.of(cell), cell.share, names.way(cell)) == wanted
        and cell.strategy in ("bsp", "ssp:10", grid.PACING) and cell not in study.missing
    ]  # fmt: skip
    return [cell for cell in cells if cell.seed == cells[0].seed]


def _paces(study: Study) -> Table:
    """A table of the compute times by which the exchange is a share of a step."""
    head = ["wanted share", "model", "links [Mbit/s]", "an iteration computes [ms]", "exchange at the link's rate [ms]"]
    paces = dict.fromkeys((cell.share, cell.model, cell.link_mbit, cell.compute_ms) for cell in study.grid.headline)
    return head, [
        [percent(share), model, f"{link:g}", f"{computing:.1f}", f"{computing * share / (1 - share):.1f}"]
        for share, model, link, computing in sorted(paces)
    ]


def _conditions(study: Study, cells: Iterable[Cell]) -> str:
    return summary([study.trace(cell).conditions for cell in cells])


def _data(dataset: str) -> str:
    whole = data.load(dataset)
    channels, height, width = whole.shape
    size = f"{len(whole.train_labels):,} images to train and {len(whole.test_labels):,} to test"
    return f"{dataset} ({size}, {channels}x{height}x{width})"


# -- numbers as CSV --------------------------------------------------------------------------------------------


def _write_csv(study: Study, tables: Mapping[str, Table], out: Path) -> None:
    for name, (head, lines) in tables.items():
        pd.DataFrame(lines, columns=head).to_csv(out / f"{name}.csv", index=False)
    measured = study.runs.drop(columns=["cell", "group", "seed", "waited_s", "final_accuracy"])
    found, curves = [], []
    for cell, (_, its) in zip(study.runs["cell"], measured.iterrows(), strict=True):
        trace = study.trace(cell)
        found.append({
            **row(trace), "way": names.way(cell), **its.rename({"share": "measured_share"}),
            "engine_s": round(trace.facts["engine_s"], 2), **asdict(trace.conditions),
        })  # fmt: skip
        if cell.engine == "emulated":
            learned = pd.DataFrame(vars(curve(trace))).rename(columns={"t": "t_s"}).round(4)
            curves.append(learned.assign(run=cell.digest))
    pd.DataFrame(found).fillna({"machine": NOT_RECORDED}).to_csv(out / "runs.csv", index=False)
    pd.concat(curves).to_csv(out / "accuracy.csv", index=False)
