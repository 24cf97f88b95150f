"""The paper's claims: what they say, what was measured here, and a verdict that is computed from the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serene.experiments.straggler_study import grid, names
from serene.experiments.straggler_study.headline import against
from serene.experiments.straggler_study.names import percent
from serene.experiments.straggler_study.study import Changes, Spread, Study
from serene.experiments.straggler_study.words import less

FASTER = -0.40  # the paper's "up to 40 %", as a change
DRASTICALLY = -0.50  # what we take "drastically" for; the paper does not say

ABSTRACT = "abstract"
LOGS = "their logs, by experiments/straggler_study/authors.py"


@dataclass(frozen=True)
class Claim:
    """theirs: the claim in the authors' words. source: where it is. ours: what was measured here. engine: by which."""

    theirs: str
    source: str
    ours: str
    engine: str
    verdict: str


def verdict(found: Mapping[float, Spread], wanted: float | None = None) -> str:
    """Whether a time decreases, at which shares, and by as much as claimed. found: changes by the exchange's share.
    wanted: the change that is claimed, None if it is not said. Shares without results, or with seeds missing, are
    named."""
    measured = {share: spread for share, spread in found.items() if spread.count}
    if not measured:
        return "not measured"
    unknown = [share for share in sorted(found) if share not in measured]
    part = [share for share, spread in sorted(measured.items()) if spread.count < spread.wanted]
    return "; ".join(
        [
            _of_measured(measured, wanted),
            *([f"no result at {_list(unknown)}"] if unknown else []),
            *([f"seeds are missing at {_list(part)}"] if part else []),
        ]
    )


def _of_measured(measured: Mapping[float, Spread], wanted: float | None) -> str:
    holds = [share for share, spread in sorted(measured.items()) if less(spread)]
    if not holds:
        return "does not hold here"
    where = "holds" if len(holds) == len(measured) else f"holds at {_list(holds)}, not elsewhere"
    if wanted is None:
        return where
    most = min(measured[share].middle for share in holds)
    if most <= wanted:
        enough = [share for share in holds if measured[share].middle <= wanted]
        at = "" if len(enough) == len(measured) else f" at {_list(enough)}, not elsewhere"
        return f"{where}; the amount too{at}: {_signed(most)}"
    return f"the direction {where}; the amount does not: at most {_signed(most)}"


def _list(shares: Sequence[float]) -> str:
    return ", ".join(map(percent, shares))


def _signed(value: float) -> str:
    return f"{100 * value:+.0f} %"


def _shown(found: Mapping[float, Spread]) -> str:
    return "; ".join(f"{percent(share)}: {spread.percent()}" for share, spread in sorted(found.items()))


def claims(study: Study) -> list[Claim]:
    """The claims of the abstract, in its order, and that of the authors' logs; for each switch that the grid has."""
    ways = [way for way in names.SWITCHES if any(names.way(cell) == way for cell in study.grid.headline)]
    found = [
        *(_accelerates(study, way) for way in ways), _stragglers(study), *(_hybrid(study, way) for way in ways),
        *(_waiting(study, way) for way in ways), _swaps(study), _prototype(study), _no_straggler(study),
    ]  # fmt: skip
    return [claim for claim in found if claim is not None]


def _changes(study: Study, one: tuple[str, str], other: tuple[str, str], **further: str) -> dict[float, Changes]:
    found = {share: against(study, share, one, other, **further) for share in grid.SHARES}
    return {share: changes for share, changes in found.items() if changes is not None}


def _time(changes: Mapping[float, Changes]) -> dict[float, Spread]:
    return {share: each.time for share, each in changes.items()}


def _emulated(way: str) -> str:
    return f"emulated, {names.SWITCHES[way].removeprefix('the ')}"


EMULATED = _emulated(names.EMBEDDED)


def _accelerates(study: Study, way: str) -> Claim:
    found = _time(_changes(study, (way, "bsp"), (names.SERVER, "bsp")))
    return Claim(
        "Aggregation in the network data plane can accelerate the aggregation compared to server-only approaches.",
        ABSTRACT,
        f"BSP through the switch against one parameter server, time to the target: {_shown(found)}",
        _emulated(way),
        verdict(found),
    )


def _stragglers(study: Study) -> Claim:
    found = _time(
        _changes(study, (names.EMBEDDED, "bsp"), (names.EMBEDDED, "bsp"), straggler=grid.NONE, base=grid.SLOW)
    )
    return Claim(
        "Stragglers can increase the time that synchronous training takes.",
        ABSTRACT,
        f"BSP without stragglers against BSP with slow workers, time to the target: {_shown(found)}",
        EMULATED,
        verdict(found),
    )


def _hybrid(study: Study, way: str) -> Claim:
    found = _time(_changes(study, (way, "ssp:10"), (way, "bsp")))
    return Claim(
        "Hybrid synchronisation (their s = 10) speeds training up by up to 40 % compared to a synchronous baseline.",
        f"{ABSTRACT}; {LOGS}: -39.7, -42.3 and -27.9 % of the time with slow workers, one run each",
        f"SSP(10) against BSP, time to the target: {_shown(found)}",
        _emulated(way),
        verdict(found, FASTER),
    )


def _waiting(study: Study, way: str) -> Claim:
    changes = _changes(study, (way, "ssp:10"), (way, "bsp"))
    theirs = {share: each.exchange for share, each in changes.items()}
    ours = {share: each.waiting for share, each in changes.items()}
    return Claim(
        "... by reducing drastically the cumulative waiting time.",
        f"{ABSTRACT}; their waiting is all the time in READ and CLOCK, round trips included",
        f"SSP(10) against BSP, all time in the exchange, as theirs: {_shown(theirs)}; waiting for others alone, round "
        f"trips not included: {_shown(ours)}",
        _emulated(way),
        f"{verdict(theirs, DRASTICALLY)} (of all time in the exchange; drastically: read as by half)",
    )


def _swaps(study: Study) -> Claim | None:
    """Counts live swaps by the automatic strategy, and runs through a switch in which every contribution counted
    once."""
    wanted = [cell for cell in study.grid.headline if cell.exchange == "switch"]
    runs = [cell for cell in wanted if cell not in study.missing]
    if not runs:
        return None
    facts = {cell: study.trace(cell) for cell in runs}
    swaps = sum(len(facts[cell].swaps) - 1 for cell in runs if cell.automatic)
    wrong = [
        cell for cell, trace in facts.items()
        if trace.facts["contributions_sent"] != trace.facts["contributions_applied"] or trace.facts["miscounted"]
    ]  # fmt: skip
    return Claim(
        "A hot-swapping mechanism changes consistently from one synchronisation strategy to another.",
        ABSTRACT,
        f"{swaps} swaps while training ran; in {len(runs) - len(wrong)} of {len(runs)} runs (of {len(wanted)} wanted) "
        "the switch counted for every worker as many contributions as that worker sent",
        "emulated",
        swapped(swaps, len(wrong)),
    )


def swapped(swaps: int, wrong: int) -> str:
    """The verdict on swaps. wrong: runs in which contributions were lost or repeated."""
    if wrong:
        return f"does not hold: contributions were lost or repeated in {wrong} runs"
    return "holds" if swaps else "not tried: nothing was swapped"


def _prototype(study: Study) -> Claim:
    done = [cell for cell in study.grid.headline if cell.target == "bmv2" and cell not in study.missing]
    wanted = sum(cell.target == "bmv2" for cell in study.grid.headline)
    return Claim(
        "A prototype on BMv2, and a proof of concept in a Tofino ASIC.",
        ABSTRACT,
        f"{len(done)} of {wanted} runs through BMv2; the Tofino program compiles (docs/tofino.md)",
        "emulated, BMv2",
        f"{'BMv2: holds' if wanted and len(done) == wanted else 'BMv2: not all runs are there'}; Tofino: not tried, "
        "nothing here has run on a chip",
    )


def _no_straggler(study: Study) -> Claim | None:
    found = _time(_changes(study, (names.EMBEDDED, "ssp:10"), (names.EMBEDDED, "bsp"), straggler=grid.NONE))
    if not found:
        return None
    return Claim(
        "Without a straggler, s = 10 takes 11.6 % less time than BSP.",
        f"{LOGS}, one run",
        f"SSP(10) against BSP without stragglers, time to the target: {_shown(found)}",
        EMULATED,
        verdict(found, -0.116),
    )


def rows(found: list[Claim]) -> tuple[list[str], list[list[str]]]:
    """A table, head and rows."""
    return ["theirs", "where", "ours", "engine", "verdict"], [
        [claim.theirs, claim.source, claim.ours, claim.engine, claim.verdict] for claim in found
    ]
