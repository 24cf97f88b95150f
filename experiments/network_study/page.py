"""Writes the report: one HTML file that needs no others, and its pictures as PNG and numbers as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from rich.console import Console

from serene.errors import SereneError
from serene.experiments.network_study import cost, drawings, emulation, figures, findings, reference, scaling
from serene.experiments.network_study.cells import MB, Answers, our_switch
from serene.experiments.network_study.conclusions import RULES, Times
from serene.experiments.network_study.emulated.plan import FOLDER, NETWORKS
from serene.experiments.network_study.exchange import VALUE_BYTES
from serene.experiments.network_study.findings import Findings
from serene.experiments.network_study.flows import simgrid_engine
from serene.experiments.network_study.grid import Grid, ratio_name
from serene.experiments.shared import studies
from serene.experiments.shared.machine import CONDITIONS, NOT_RECORDED, Conditions, summary
from serene.experiments.shared.measurements import Row, complete, read


def write(grid: Grid, answers: Answers, out: Path, console: Console, *, emulate: bool) -> Path:
    """Writes report.html, pictures and CSV files into ``out``; returns the report's path. Measures what belongs to it
    and is missing: the simulator's time and memory, and, if ``emulate``, the emulated star. Raises SereneError."""
    on = {name: read(out / FOLDER / file) for name, file in NETWORKS.items()}
    star, why_no_star = _star(out, console, emulate)
    scaled = complete(out / "scaling.json", scaling.cases(), scaling.measure,
                      lambda case: console.print(f"measuring the simulator: {case}", highlight=False))  # fmt: skip
    pairs = reference.recorded()
    if simgrid_engine.installed():
        pairs = reference.simulate([pair.cell for pair in pairs if pair.cell.network.hosts <= 128])
    found, switch = Findings(answers, grid), our_switch()
    tables = {
        "times": found.times(), "networks": findings.networks(), "agreement": findings.agreement(pairs),
        **{name: findings.emulated(rows) for name, rows in on.items()},
    }  # fmt: skip
    for name, (head, lines) in tables.items():
        if lines:
            pd.DataFrame(lines, columns=head).to_csv(out / f"{name}.csv", index=False)
    runs = _runs(grid, answers, out)
    return studies.write_report(
        Path(__file__).with_name("report.html"), out, _pictures(grid, answers, out, scaled, star, on["clos"]),
        grid=grid.name,
        count=len(runs),
        worst=max(pair.error() for pair in pairs),
        pairs=len(pairs),
        source="SimGrid on this machine" if simgrid_engine.installed() else "SimGrid 3.32's recorded answers",
        answer=found.answer(),
        paper=found.of_the_paper(),
        conclusions=[(rule, [*rule.cases(Times(found.seconds, grid))]) for rule in RULES],
        conditions=summary(runs),
        conditions_of={name: _conditions(kept) for name, kept in {**on, "star": star, "scaling": scaled}.items()},
        comparison=findings.comparison(),
        break_even_nodes=[f"{cost.break_even(ratio):.0f} (r = {ratio_name(ratio)})" for ratio in (1.0, 0.125)],
        on_clos=on["clos"],
        clos_kb=on["clos"][0]["values"] * VALUE_BYTES / 1e3 if on["clos"] else 0,
        linearity=found.linearity(),
        routing=found.routing(),
        savings=found.savings(),
        break_even=found.break_even(),
        small=findings.small(),
        switch=switch,
        switch_mb=switch.lanes * switch.slots * VALUE_BYTES / MB,
        iterations=grid.iterations[0],
        seeds=len(grid.seeds),
        trainings=[(hosts, found.training(hosts)) for _, hosts in grid.compared],
        star=findings.emulated(star),
        why_no_star=why_no_star,
        scaling=findings.scaled(scaled),
        **tables,
    )  # fmt: skip


def _star(out: Path, console: Console, wanted: bool) -> tuple[list[Row], str]:
    """What was measured on the emulated star, and why nothing was."""
    reason = emulation.why_not() if wanted else "left out by --no-emulation"
    path = out / "emulation.json"
    try:
        cases = [] if reason else [emulation.Case(workers) for workers in emulation.WORKERS]
        kept = complete(path, cases, emulation.measure, lambda case: console.print(f"measuring: {case}"))
        return emulation.rows(kept), reason
    except SereneError as error:
        return [], str(error)


def _pictures(
    grid: Grid, answers: Answers, out: Path, scaled: list[Row], star: list[Row], on_clos: list[Row]
) -> dict[str, Path]:
    drawn = {
        "exchange": figures.exchange(answers, out / "exchange.png"),
        "bandwidth": figures.bandwidth(answers, grid, out / "bandwidth.png"),
        "figure-1": drawings.servers(out / "figure-1.png"),
        "figure-2": drawings.butterflies(out / "figure-2.png"),
        "figure-3": drawings.placement(out / "figure-3.png"),
        "figure-4": drawings.network(drawings.FIGURE_4, out / "figure-4.png"),
        "figure-5": drawings.network(drawings.FIGURE_5, out / "figure-5.png"),
        "figure-6": figures.worth(out / "figure-6.png"),
        "figures-7-10": figures.exchanges(answers, out / "figures-7-10.png"),
        "value": figures.value(answers, out / "value.png"),
        "gradients": figures.gradients(answers, out / "gradients.png"),
        "scaling": figures.scaling(scaled, out / "scaling.png"),
    }
    for _, hosts in grid.compared:
        drawn[f"training-{hosts}"] = figures.training(answers, grid, hosts, out / f"training-{hosts}.png")
    if star:
        text = "Mininet and the embedded switch"
        drawn["emulation"] = figures.emulated(star, "hosts", "{} hosts", text, out / "emulation.png")
    if on_clos:
        text = "Mininet, TCP and the embedded switch"
        drawn["clos"] = figures.emulated(on_clos, "ratio", "r = {}", text, out / "clos.png")
    return drawn


def _runs(grid: Grid, answers: Answers, out: Path) -> list[Conditions]:
    """Writes exchange.csv and training.csv, with a row for every simulation; returns the conditions of all."""
    rows: dict[str, list[Row]] = {}
    for cell in dict.fromkeys(grid.cells()):
        found = dict(answers[cell])
        conditions = Conditions.of(found.pop(CONDITIONS, None))
        settings = {name: value for name, value in asdict(cell).items() if name != "network"}
        rows.setdefault(cell.kind, []).append({**asdict(cell.network), **settings, **found, **asdict(conditions)})
    for kind, mine in rows.items():
        pd.DataFrame(mine).fillna({"machine": NOT_RECORDED}).to_csv(out / f"{kind}.csv", index=False)
    return [Conditions.of(answers[cell].get(CONDITIONS)) for cell in dict.fromkeys(grid.cells())]


def _conditions(rows: Sequence[Row]) -> str:
    """A sentence on the conditions in which rows were measured; empty if there are none."""
    return summary([Conditions.of(row.get(CONDITIONS)) for row in rows]) if rows else ""
