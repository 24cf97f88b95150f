"""The headline's results: time to accuracy by strategy and by what gradients go through, at each share of the
exchange; and the paper's claims beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from serene.experiments.straggler_study import grid, names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.names import BMV2, EMBEDDED, GLOO, SCAPY, SERVER, SWITCHES, Training, percent
from serene.experiments.straggler_study.study import SAME, Spread, Study, Table
from serene.workers.stragglers import parse

Way = tuple[str, str]  # what the gradients go through, as `names.way` calls it, and the strategy


SLOW = Training("mlp", grid.SLOW, grid.WORKERS)  # the training of the claims


def find(study: Study, way: Way, share: float, training: Training = SLOW) -> Cell | None:
    """The headline's cell, of any seed; None if the grid has none."""
    mine = study.headline(training, share)
    return next((cell for cell in mine if (names.way(cell), cell.strategy) == way), None)


def changes(
    study: Study, one: Way, other: Way, what: str = "target_s", straggler: str = grid.SLOW, base: str | None = None
) -> dict[float, Spread]:
    """The changes of a number from ``other`` to ``one``, by the exchange's share, where the grid has both. base: the
    straggler of ``other``, if it is not the same."""
    ours, base_training = (SLOW._replace(straggler=each) for each in (straggler, base or straggler))
    cells = {share: (find(study, one, share, ours), find(study, other, share, base_training)) for share in grid.SHARES}
    return {share: study.change(mine, theirs, what) for share, (mine, theirs) in cells.items() if mine and theirs}


def answer(study: Study) -> Table:
    """A table of the time to the target: what each switch saves, what the strategy saves on it, and which saves
    more."""
    head = [
        "switch", "exchange of a step", "BSP against one parameter server", "BSP against gloo",
        "SSP(10) against BSP, same switch", "saves more",
    ]  # fmt: skip
    rows = []
    for way, switch in SWITCHES.items():
        bsp = (way, "bsp")
        found = [changes(study, bsp, (SERVER, "bsp")), changes(study, bsp, (GLOO, "bsp")),
                 changes(study, (way, "ssp:10"), bsp)]  # fmt: skip
        for share in sorted({share for each in found for share in each}, reverse=True):
            server, gloo, strategy = (each.get(share, Spread.of(())) for each in found)
            cells = [spread.percent() for spread in (server, gloo, strategy)]
            rows.append([switch, percent(share), *cells, saves_more(server, strategy)])
    return head, rows


def saves_more(switch: Spread, strategy: Spread) -> str:
    """Which change saves time with all seeds, and by SAME more than the other."""
    if not (switch.count and strategy.count):
        return "not measured"
    for one, other, name in ((switch, strategy, "the switch"), (strategy, switch, "the strategy")):
        if one.less and not other.bounds and (not other.less or one.middle < other.middle - SAME):
            return name
    return "neither, clearly"


PARTS = ("step_s", "compute_s", "network_s", "waiting_s")
SHOWN = ("share", "target_steps", *PARTS, "late", "stalled")
HEAD = [
    "gradients go through", "strategy", "wanted share", "measured share", "time to the target [s]",
    "against Serene's BSP", "steps to it", "step [ms]", "computing", "network", "waiting", "computed late", "stalled",
    "runs",
]  # fmt: skip


def rows(study: Study, training: Training, shares: Iterable[float]) -> Table:
    """A table for each way, strategy and share: medians over the seeds, with the lowest and the highest."""
    found = []
    for share in shares:
        base = find(study, (EMBEDDED, "bsp"), share, training)
        for cell in study.headline(training, share):
            runs = study.of(cell)
            row, count = [names.way(cell), names.strategy(cell), percent(share)], f"{len(runs)} of {study.wanted(cell)}"
            if runs.empty:
                found.append([*row, *["-"] * (len(HEAD) - 4), count])
                continue
            middle = {name: study.spread(cell, name).middle for name in SHOWN}
            compared = base is not None and cell != base and not study.of(base).empty
            found.append([
                *row, percent(middle["share"]), study.spread(cell, "target_s").text(),
                study.change(cell, base).percent() if base is not None and compared else "",
                f"{middle['target_steps']:.0f}" if np.isfinite(middle["target_steps"]) else "-",
                *(f"{1e3 * middle[name]:.0f}" for name in PARTS),
                f"{100 * middle['late']:+.0f} %",
                percent(middle["stalled"]) if np.isfinite(middle["stalled"]) else "-", count,
            ])  # fmt: skip
    return HEAD, found


def missing_rows(study: Study) -> Table:
    """A table of the emulated cells without a result, and why."""
    return ["cell", "share", "why"], [
        [f"{names.label(cell)}; {Training.of(cell).title}, seed {cell.seed}",
         percent(cell.share), study.store.why_missing(cell).splitlines()[0]]
        for cell in study.missing if cell.engine == "emulated"
    ]  # fmt: skip


def scapy_rows(study: Study) -> Table:
    """A table of what PACKETS=scapy costs: BSP through the same switch, with packets by scapy and by the C code."""
    head = ["wanted share", "packets by", "time to the target [s]", "step [ms]", "network [ms]", "measured share"]
    found = []
    for share in grid.SHARES:
        cells = {name: find(study, (way, "bsp"), share) for name, way in (("C", EMBEDDED), ("scapy", SCAPY))}
        for name, cell in cells.items() if cells["scapy"] else ():
            if cell is not None and not study.of(cell).empty:
                step, network = (1e3 * study.spread(cell, each).middle for each in ("step_s", "network_s"))
                found.append([
                    percent(share), name, study.spread(cell, "target_s").text(), f"{step:.0f}", f"{network:.0f}",
                    percent(study.spread(cell, "share").middle),
                ])  # fmt: skip
    return head, found


# -- the paper's claims ----------------------------------------------------------------------------------------

# Claims that a number becomes less. theirs: in the authors' words. ours: what is compared here. against: a way; empty:
# the same switch. amount: the change that they claim; empty: they name none. "Drastically" names none; we take half.
CLAIMS = Path(__file__).with_name("claims.csv")
STRAGGLERS = {"slow": grid.SLOW, "none": grid.NONE}


def claims(study: Study) -> Table:
    """A table of the claims, for each switch that the grid has: the changes by share, at how many the claim holds, and
    at how many by as much as claimed."""
    there = [way for way in SWITCHES if any(names.way(cell) == way for cell in study.grid.headline)]
    found = []
    for claim in pd.read_csv(CLAIMS, keep_default_na=False, dtype=str).itertuples():
        for way in there if claim.switch == "each" else (EMBEDDED,):
            one, other = (way, claim.strategy), (claim.against or way, claim.against_strategy)
            stragglers = STRAGGLERS[claim.straggler], STRAGGLERS[claim.against_straggler]
            spreads = changes(study, one, other, claim.what, *stragglers)
            cells = [spreads[share].percent() if share in spreads else "" for share in grid.SHARES]
            engine = f"emulated, {SWITCHES[way].removeprefix('the ')}"
            held = verdict(spreads, float(claim.amount) if claim.amount else None)
            found.append([claim.theirs, claim.where, claim.ours, engine, *cells, *held])
    nothing = [""] * len(grid.SHARES)
    for theirs, ours, counted in _counts(study):
        found.append([theirs, "abstract", ours, "emulated", *nothing, counted, "-"])
    return ["theirs", "where", "ours", "engine", *map(percent, grid.SHARES), "holds", "as claimed"], found


CLAIMED = 0.4  # "up to 40 %"
STEPS = 1_000  # over which delays are averaged


def saving(share: float, delays: np.ndarray) -> float:
    """The part of BSP's time for a step that is saved if nobody ever waits for another worker. share: of the exchange
    in a step without delays. delays: float64[steps, workers], in compute times."""
    step = 1 + share / (1 - share)
    alone = np.mean(1 / (step + delays.mean(axis=0)))  # steps in a compute time, mean of the workers
    return float(1 - 1 / alone / (step + delays.max(axis=1).mean()))


def needed(workers: Iterable[int] = (4, 8, 16)) -> Table:
    """A table of the largest share of the exchange at which a strategy can save as much time as claimed, by straggler
    and workers; if there is none, what it saves without any exchange. That late gradients cost steps is left out."""
    rows = []
    for straggler in (*(each for some in grid.STRENGTHS.values() for each in some), grid.PAUSES):
        profile = parse(straggler)
        cells = []
        for count in workers:
            steps = range(1, STEPS + 1)
            delays = np.array([[profile.delay(worker, step, 1.0, 1) for worker in range(count)] for step in steps])
            enough = [share for share in range(100) if saving(share / 100, delays) >= CLAIMED]
            cells.append(percent(enough[-1] / 100) if enough else f"none (saves {percent(saving(0.0, delays))})")
        rows.append([names.straggler_name(straggler), *cells])
    return ["straggler", *(f"{count} workers" for count in workers)], rows


def verdict(found: Mapping[float, Spread], amount: float | None = None) -> tuple[str, str]:
    """At how many shares a number becomes less, and at how many by as much as claimed. found: changes by the exchange's
    share."""
    measured = [spread for spread in found.values() if spread.count]
    less = [spread for spread in measured if spread.less]
    enough = sum(amount is not None and spread.middle <= amount for spread in less)
    of = f"of {len(measured)} shares"
    return f"{len(less)} {of}", "-" if amount is None else f"{100 * amount:+.0f} %: {enough} {of}"


def _counts(study: Study) -> Iterator[tuple[str, str, str]]:
    """Claims that are checked by counting: theirs, ours, and in how many runs they hold."""
    wanted = [cell for cell in study.grid.headline if cell.exchange == "switch"]
    traces = {cell: study.trace(cell) for cell in wanted if cell not in study.missing}
    swaps = sum(len(trace.swaps) - 1 for cell, trace in traces.items() if cell.automatic)
    right = sum(
        trace.facts["contributions_sent"] == trace.facts["contributions_applied"] and not trace.facts["miscounted"]
        for trace in traces.values()
    )
    yield (
        "A hot-swapping mechanism changes consistently from one synchronisation strategy to another.",
        f"the switch counted for every worker as many contributions as that worker sent; {swaps} swaps while training "
        "ran", f"{right} of {len(traces)} runs, of {len(wanted)} wanted",
    )  # fmt: skip
    prototype = [cell for cell in wanted if names.way(cell) == BMV2]
    yield (
        "A prototype on BMv2, and a proof of concept in a Tofino ASIC.",
        "trainings through BMv2; the Tofino program compiles (docs/tofino.md), nothing here has run on a chip",
        f"{sum(cell not in study.missing for cell in prototype)} of {len(prototype)} runs",
    )  # fmt: skip
