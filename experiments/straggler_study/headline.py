"""The headline's results: time to accuracy by strategy and by what gradients go through, at each share of the
exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from serene.experiments.straggler_study import grid, names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.names import percent
from serene.experiments.straggler_study.study import Changes, Spread, Study
from serene.experiments.straggler_study.words import Answer, Through

Row = list[str]
NOT_RUN = Spread.of(())


def find(study: Study, way: str, strategy: str, share: float, model: str, straggler: str) -> Cell | None:
    """The headline's cell, of any seed; None if the grid has none. way: as `names.way` calls it."""
    for cell in study.headline(model, straggler, share):
        if (names.way(cell), cell.strategy) == (way, strategy):
            return cell
    return None


def against(
    study: Study,
    share: float,
    one: tuple[str, str],
    other: tuple[str, str],
    *,
    model: str = "mlp",
    straggler: str = grid.SLOW,
    base: str | None = None,
) -> Changes | None:
    """The changes from ``other`` to ``one``, both as (way, strategy), seed by seed; None if the grid has no such cells.
    base: the straggler of ``other``, if it is not the same."""
    mine = find(study, *one, share, model, straggler)
    theirs = find(study, *other, share, model, base or straggler)
    return None if mine is None or theirs is None else study.against(mine, theirs)


def answer(study: Study) -> Answer:
    """The study's answer, by the cells of the mlp with slow workers."""

    def by_share(one: tuple[str, str], other: tuple[str, str]) -> dict[float, Spread]:
        found = {share: against(study, share, one, other) for share in grid.SHARES}
        return {share: NOT_RUN if changes is None else changes.time for share, changes in found.items()}

    def through(way: str, switch: str) -> Through:
        bsp = (way, "bsp")
        return Through(
            switch,
            server=by_share(bsp, (names.SERVER, "bsp")),
            gloo=by_share(bsp, (names.GLOO, "bsp")),
            hybrid=by_share((way, "ssp:10"), bsp),
        )

    return Answer(study.grid.targets["mlp"], [through(way, switch) for way, switch in names.SWITCHES.items()])


HEAD = [
    "gradients go through", "strategy", "wanted share", "measured share", "time to the target [s]",
    "against Serene's BSP", "steps to it", "step [ms]", "computing", "network", "waiting", "computed late", "stalled",
    "runs",
]  # fmt: skip


def rows(study: Study, model: str, straggler: str, shares: Iterable[float]) -> tuple[Row, list[Row]]:
    """A table, head and rows, for each way, strategy and share: medians over the seeds, with the lowest and the
    highest."""
    found = []
    for share in shares:
        base = find(study, names.EMBEDDED, "bsp", share, model, straggler)
        for cell in study.headline(model, straggler, share):
            found.append(_row(study, cell, base))
    return HEAD, found


def _row(study: Study, cell: Cell, base: Cell | None) -> Row:
    done = study.seeds(cell)
    row = [names.way(cell), names.strategy(cell), percent(cell.share)]
    count = f"{len(done)} of {len(study.wanted(cell))}"
    if not done:
        return [*row, *["-"] * (len(HEAD) - 4), count]

    def middle(what: str, form: Callable[[float], str]) -> str:
        return form(study.spread(cell, what).middle)

    changed = "" if base is None or cell == base or not study.seeds(base) else study.against(cell, base).time.percent()
    parts = [
        middle(name, lambda value: f"{1e3 * value:.0f}") for name in ("step_s", "compute_s", "network_s", "waiting_s")
    ]
    return [
        *row, middle("share", percent), study.spread(cell, "target_s").text(), changed,
        middle("target_steps", lambda value: f"{value:.0f}" if value < float("inf") else "-"), *parts,
        middle("late", lambda value: f"{100 * value:+.0f} %"),
        middle("stalled", lambda value: percent(value) if np.isfinite(value) else "-"), count,
    ]  # fmt: skip


def missing_rows(study: Study) -> tuple[Row, list[Row]]:
    """A table of the emulated cells without a result, and why."""
    found = [cell for cell in study.missing if cell.engine == "emulated"]
    return ["cell", "share", "why"], [
        [f"{names.label(cell)}, {names.straggler_name(cell.straggler)}, {cell.model}, seed {cell.seed}",
         percent(cell.share), study.store.why_missing(cell).splitlines()[0]]
        for cell in found
    ]  # fmt: skip


def scapy_rows(study: Study) -> tuple[Row, list[Row]]:
    """A table of what PACKETS=scapy costs: BSP through the same switch, with packets by scapy and by the C code."""
    head = ["wanted share", "packets by", "time to the target [s]", "step [ms]", "network [ms]", "measured share"]
    found = []
    for share in grid.SHARES:
        for way in (names.EMBEDDED, names.SCAPY):
            cell = find(study, way, "bsp", share, "mlp", grid.SLOW)
            if (
                cell is None
                or find(study, names.SCAPY, "bsp", share, "mlp", grid.SLOW) is None
                or not study.seeds(cell)
            ):
                continue
            step, network = (1e3 * study.spread(cell, name).middle for name in ("step_s", "network_s"))
            found.append([
                percent(share), "scapy" if way == names.SCAPY else "C", study.spread(cell, "target_s").text(),
                f"{step:.0f}", f"{network:.0f}", percent(study.spread(cell, "share").middle),
            ])  # fmt: skip
    return head, found
