"""Writes the report: one HTML file that needs no others, and its pictures as PNG and numbers as CSV."""

from __future__ import annotations

import base64
import csv
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from serene import outputs
from serene.errors import SereneError
from serene.experiments.network_study import (
    answer,
    cost,
    drawings,
    emulation,
    figures,
    findings,
    paper_figures,
    reference,
    scaling,
)
from serene.experiments.network_study.cells import CONDITIONS, MB, Answers, our_switch
from serene.experiments.network_study.conclusions import Conclusions
from serene.experiments.network_study.emulated import rows as measured
from serene.experiments.network_study.findings import Findings, Table
from serene.experiments.network_study.flows import simgrid_engine
from serene.experiments.network_study.grid import Grid, ratio_name
from serene.experiments.network_study.switch import VALUE_BYTES
from serene.experiments.shared import studies
from serene.experiments.shared.machine import COLUMNS, Conditions, summary

Rows = list[dict[str, Any]]


def write(grid: Grid, answers: Answers, out: Path, console: Console, *, emulate: bool) -> Path:
    """Writes report.html, pictures and CSV files into ``out``; returns the report's path. Measures what belongs to it
    and is missing: the simulator's time and memory, and, if ``emulate``, the emulated star. Raises SereneError."""
    on_clos = measured.kept(out / measured.CLOS)
    emulated, emulation_text = _emulated(out, console, emulate)
    scaled = _kept(out / "scaling.json", scaling.measure, console, "time and memory of the simulator")
    pairs = reference.recorded()
    if simgrid_engine.installed():
        pairs = reference.simulate([pair.cell for pair in pairs if pair.cell.network.hosts <= 128])
    drawn = {
        "exchange": figures.exchange(answers, out / "exchange.png"),
        "bandwidth": figures.bandwidth(answers, grid, out / "bandwidth.png"),
        "figure-1": drawings.servers(out / "figure-1.png"),
        "figure-2": drawings.butterflies(out / "figure-2.png"),
        "figure-3": drawings.placement(out / "figure-3.png"),
        "figure-4": drawings.network(drawings.FIGURE_4, out / "figure-4.png"),
        "figure-5": drawings.network(drawings.FIGURE_5, out / "figure-5.png"),
        "figure-6": paper_figures.worth(out / "figure-6.png"),
        "figures-7-10": paper_figures.exchanges(answers, out / "figures-7-10.png"),
        "value": figures.value(answers, out / "value.png"),
        "gradients": figures.gradients(answers, out / "gradients.png"),
        "scaling": figures.scaling(scaled, out / "scaling.png"),
    }
    for _, hosts in grid.compared:
        drawn[f"training-{hosts}"] = figures.training(answers, grid, hosts, out / f"training-{hosts}.png")
    if emulated:
        drawn["emulation"] = figures.emulation(emulated, out / "emulation.png")
    if on_clos:
        drawn["clos"] = figures.on_clos(on_clos, out / "clos.png")
    _csv(grid, answers, out)
    tables = {
        "times": Findings(answers, grid).times(),
        "networks": findings.networks(),
        "agreement": findings.agreement(pairs),
    }
    if on_clos:
        tables["clos"] = findings.on_clos(on_clos)
    on_racks = measured.read(out / measured.CLOS / measured.RACK_ROWS)
    if on_racks:
        tables["racks"] = findings.on_racks(on_racks)
    for name, table in tables.items():
        _write_csv(out / f"{name}.csv", *table)
    page = _page(
        grid, answers, tables, drawn, out, _agreement_text(pairs), emulated, emulation_text, scaled, on_clos, on_racks
    )
    outputs.write_text(out / "report.html", page)
    return out / "report.html"


def _emulated(out: Path, console: Console, wanted: bool) -> tuple[Rows, str]:
    reason = emulation.why_not() if wanted else "left out by --no-emulation"
    path = out / "emulation.json"
    if path.exists() or not reason:
        try:
            rows = _kept(path, emulation.measure, console, "4, 8 and 16 emulated hosts")
        except SereneError as error:
            return [], f"Not measured: {error}."
        return rows, "The simulator gets the links and the headers, and no constant fitted to the emulation."
    return [], f"Not measured here: {reason}."


def _kept(path: Path, measure: Callable[[], Rows], console: Console, what: str) -> Rows:
    """The rows in a file, or, if it is not there or cannot be read, of a measurement now, which is written to it."""
    if path.exists():
        try:
            return list(json.loads(path.read_text()))
        except ValueError:
            console.print(f"{path} cannot be read; measuring again", highlight=False)
    console.print(f"measuring: {what}", highlight=False)
    rows = measure()
    outputs.write_text(path, json.dumps(rows, indent=1))
    return rows


def _agreement_text(pairs: Sequence[reference.Pair]) -> str:
    worst = max(pair.error() for pair in pairs)
    source = "SimGrid on this machine" if simgrid_engine.installed() else "SimGrid 3.32's recorded answers"
    return (
        f"The engine is a solver on NumPy; in {len(pairs)} exchanges it differs from {source} by at most {worst:.0e}."
    )


def _csv(grid: Grid, answers: Answers, out: Path) -> None:
    """Writes exchange.csv and training.csv, with a row for every simulation."""
    for kind in ("exchange", "training"):
        rows = [
            {
                **asdict(cell.network), **asdict(cell), **answers[cell],
                **dict(zip(COLUMNS, answers.conditions(cell).columns(), strict=True)),
            }
            for cell in dict.fromkeys(grid.cells())
            if cell.kind == kind
        ]  # fmt: skip
        head = [name for name in rows[0] if name not in ("network", CONDITIONS)]
        _write_csv(out / f"{kind}.csv", head, [[row[name] for name in head] for row in rows])


def _write_csv(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def _page(
    grid: Grid, answers: Answers, tables: dict[str, Table], drawn: dict[str, Path], out: Path, agreement_text: str,
    emulated: Rows, emulation_text: str, scaled: Rows, on_clos: Rows, on_racks: Rows,
) -> str:  # fmt: skip
    switch, found = our_switch(), Findings(answers, grid)
    concluded = Conclusions(found.seconds, grid)
    return studies.template(Path(__file__).with_name("report.html")).render(
        made=time.strftime("%Y-%m-%d"),
        grid=grid.name,
        count=len(set(grid.cells())),
        agreement_text=agreement_text,
        paper=found.of_the_paper(),
        answer=answer.sentences(found, on_clos),
        conditions=summary([answers.conditions(cell) for cell in dict.fromkeys(grid.cells())]),
        conditions_emulated=_of_rows(emulated),
        conditions_clos=_of_rows(on_clos),
        conditions_scaling=_of_rows(scaled),
        conclusions=concluded.all(),
        others=concluded.others(),
        comparison=findings.comparison(),
        break_even_nodes=[f"{cost.break_even(ratio):.0f} (r = {ratio_name(ratio)})" for ratio in (1.0, 0.125)],
        on_clos=on_clos,
        clos=tables.get("clos"),
        racks=tables.get("racks"),
        conditions_racks=_of_rows(on_racks),
        clos_mbit=on_clos[0]["link_mbit"] if on_clos else 0,
        clos_kb=on_clos[0]["values"] * VALUE_BYTES / 1e3 if on_clos else 0,
        linearity=found.linearity(),
        routing=found.routing(),
        savings=found.savings(),
        break_even=found.break_even(),
        small=findings.small(),
        switch_mb=f"{switch.lanes * switch.slots * VALUE_BYTES / MB:.1f}",
        switch=(
            f"{switch.lanes} values of 32 bits in a packet of {switch.packet} bytes, {switch.slots} slots, at most "
            f"{switch.window} packets of a worker in flight, every link at line rate"
        ),
        training_text=(
            f"Iterations of 100 ms (lognormal, sigma 5 %) and a gradient of 100 MB, r = 1/4, {grid.iterations[0]} "
            f"iterations a worker, {len(grid.seeds)} seed(s). slow_worker: each iteration of any worker takes 0.5 to 2 "
            "times longer with probability 0.15; heterogeneous: one worker is twice as slow for good; failure: one "
            "worker stops for 5 s. Through the switch, values stream out and back over the worker's own link; servers "
            "are an eighth of the hosts. A job of our program has at most 32 workers: beyond that, leaves that add up "
            "are the workers of the next layer's job."
        ),
        trainings=[(hosts, found.training(hosts)) for _, hosts in grid.compared],
        emulation=findings.emulated(emulated) if emulated else None,
        emulation_text=emulation_text,
        scaling=findings.scaled(scaled),
        times=tables["times"],
        networks=tables["networks"],
        agreement=tables["agreement"],
        pictures={name: base64.b64encode(path.read_bytes()).decode() for name, path in drawn.items()},
        files=", ".join(sorted(path.name for path in out.iterdir() if path.suffix in (".csv", ".png"))),
    )


def _of_rows(rows: Rows) -> str:
    """A sentence on the conditions in which rows were measured; empty if there are none."""
    return summary([Conditions.of(row.get(CONDITIONS)) for row in rows]) if rows else ""
