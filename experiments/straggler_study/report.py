"""Writes the report: one HTML file that needs no others, and its pictures as PNG and numbers as CSV."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from serene import outputs
from serene.experiments.shared import studies
from serene.experiments.shared.machine import summary
from serene.experiments.straggler_study import agreement, claims, grid, headline, names, side_by_side, tables
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.names import percent, straggler_name
from serene.experiments.straggler_study.pictures import answer, choice, learning, waiting
from serene.experiments.straggler_study.study import Study
from serene.workers import data

Table = tuple[list[str], list[list[str]]]
TIMELINE_STEPS = 25  # that a timeline shows, of BSP
BUSY = 0.05  # a run with workers that computed longer than they should have, by this share, shows a busy machine


@dataclass
class Section:
    """The report's section on one model and straggler. pictures: names of pictures, by what they show."""

    title: str
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
    drawn = Drawn(out)
    sections = [_section(study, drawn, *case) for case in study.cases()]
    maps = _maps(study, drawn)
    pairs, claimed = agreement.pairs(study), claims.rows(claims.claims(study))
    agrees = [
        drawn(f"agreement-{measure[0]}", partial(agreement.draw, pairs, measure))
        for measure in agreement.MEASURES
        if pairs
    ]
    tables.runs_csv(study, out / "runs.csv")
    tables.curves_csv(study, out / "accuracy.csv")
    tables.write_csv(out / "map.csv", *tables.map_rows(study))
    tables.write_csv(out / "claims.csv", *claimed)
    tables.write_csv(out / "agreement.csv", *agreement.rows(pairs))
    page = _page(study, drawn, out, sections=sections, maps=maps, agrees=agrees, pairs=pairs, claimed=claimed)
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
    """The cells whose curves are drawn, few enough to be told apart: those through the embedded switch, and BSP by the
    baselines."""
    return [
        cell for cell in cells
        if names.way(cell) == names.EMBEDDED
        or (names.way(cell) in (names.SERVER, names.SHARDED, names.GLOO) and cell.strategy == "bsp")
    ]  # fmt: skip


def _timeline(study: Study, drawn: Drawn, key: str, model: str, straggler: str, shares: Sequence[float]) -> str | None:
    """Draws the timelines of BSP, SSP(10) and the automatic strategy for the same seed, at the middle one of the
    shares."""
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


def _page(
    study: Study, drawn: Drawn, out: Path, *, sections: list[Section], maps: list[str], agrees: list[str],
    pairs: list[agreement.Pair], claimed: Table,
) -> str:  # fmt: skip
    cells = study.grid.cells()
    emulated = [cell for cell in study.grid.headline if cell not in study.missing]
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
        data=_data(grid.DATASET),
        lengths=_lengths(study),
        targets=", ".join(
            f"{study.grid.targets[model]:.2f} ({model})" for model in grid.PARAMETERS if model in study.grid.targets
        ),
        paces=_paces(study),
        recipes=_recipes(study),
        conditions=_conditions(study, emulated),
        conditions_simulated=_conditions(study, [cell for cell in cells if cell.engine == "simulated"]),
        late=f"{sum(value > BUSY for value in late)} of {len(late)}",
        busy=sum(value > BUSY for value in late) > len(late) / 4,
        late_by=percent(BUSY),
        claims=claimed,
        scapy=headline.scapy_rows(study),
        sections=sections,
        maps=maps,
        map=tables.map_rows(study),
        agreement=agreement.rows(pairs),
        agreement_text=agreement.text(pairs),
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
    """A table of the compute times by which the exchange is a share of a step."""
    head = ["wanted share", "model", "links [Mbit/s]", "an iteration computes [ms]", "exchange at the link's rate [ms]"]
    told = dict.fromkeys((cell.share, cell.model, cell.link_mbit, cell.compute_ms) for cell in study.grid.headline)
    return head, [
        [percent(share), model, f"{link:g}", f"{computing:.1f}", f"{computing * share / (1 - share):.1f}"]
        for share, model, link, computing in sorted(told)
    ]


def _conditions(study: Study, cells: Sequence[Cell]) -> str:
    return summary([study.trace(cell).conditions for cell in cells])


def _data(dataset: str) -> str:
    whole = data.load(dataset)
    channels, height, width = whole.shape
    size = f"{len(whole.train_labels):,} images to train and {len(whole.test_labels):,} to test"
    return f"{dataset} ({size}, {channels}x{height}x{width})"
