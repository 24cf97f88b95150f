"""The paper's conclusions, in its own words, and the cases in which they hold here, computed from answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path

import pandas as pd

from serene.experiments.network_study.cells import ExchangeCell, NetworkCell, our_switch
from serene.experiments.network_study.cost import sizes_of_networks
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows.clos import RATIOS, SIZES
from serene.experiments.network_study.grid import PAPER, Grid, ratio_name
from serene.experiments.network_study.methods import METHODS

UNAFFECTED = 1.02  # factor by which a time grows, at most, that counts as unaffected
AFFECTED = SUBSTANTIALLY = 1.1  # factor from which a time counts as affected, or as substantially longer
LINEAR = 0.02  # relative difference, at most, of times that count as proportional
SUBSTANTIAL = 0.1  # share of a network's worth that counts as a substantial saving

PACKED, DISTRIBUTED, FLAT, LAYERED = PAPER
SERVERS, DIRECT = (PACKED, DISTRIBUTED), (FLAT, LAYERED)
SIDES = tuple(product(SERVERS, DIRECT))
Size = tuple[int, int]  # layers, hosts
Holds = Callable[[float, float], bool]  # by the bisection ratio and a factor


@dataclass(frozen=True)
class Case:
    """Whether a conclusion ``holds`` in one network and setting. ``group``: cases that differ in ``at`` alone are
    listed together. ``found``: the number that decides, as text."""

    group: str
    at: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Times:
    """What cases follow from. ``seconds``: of an exchange."""

    seconds: Callable[[ExchangeCell], float]
    grid: Grid

    def at(self, size: Size, ratio: float, method: str) -> float:
        return self.seconds(ExchangeCell(NetworkCell(*size, ratio), method))

    def growth(self, size: Size, method: str) -> float:
        """By what factor a time grows from the whole network to the thinnest."""
        return self.at(size, RATIOS[-1], method) / self.at(size, 1.0, method)


Cases = Callable[[Times], Iterable[Case]]


@dataclass(frozen=True)
class Rule:
    """A conclusion of the paper, from conclusions.csv. ``quote``: its words. ``asked``: what decides whether a case
    holds. ``main``: whether it is one of the four of the paper's section 4."""

    quote: str
    asked: str
    cases: Cases
    main: bool


def _name(size: Size) -> str:
    return f"{size[1]:,} hosts, {size[0]} layers"


def _r(ratio: float) -> str:
    return f"r = {ratio_name(ratio)}"


def _compared(
    pairs: Sequence[tuple[str, str]], holds: Holds, ratios: Sequence[float] = RATIOS, group: str = "{size}"
) -> Cases:
    """A case for each network and ratio: by the first method's time over the second's."""

    def cases(times: Times) -> Iterator[Case]:
        for size, (one, other), ratio in product(SIZES, pairs, ratios):
            factor = times.at(size, ratio, one) / times.at(size, ratio, other)
            named = group.format(size=_name(size), one=one, other=other)
            yield Case(named, _r(ratio), holds(ratio, factor), f"x{factor:.2f}")

    return cases


def _grows(method: str, affected: bool) -> Cases:
    """A case for each network: whether a time grows AFFECTED times or more from r = 1 to r = 1/8."""

    def cases(times: Times) -> Iterator[Case]:
        for size in SIZES:
            factor = times.growth(size, method)
            yield Case(_name(size), "", (factor >= AFFECTED) == affected, f"x{factor:.2f}")

    return cases


def _bisection(times: Times) -> Iterator[Case]:
    for size in SIZES:
        growth = {method: times.growth(size, method) for method in PAPER}
        some = any(factor >= AFFECTED for method, factor in growth.items() if method != LAYERED)
        found = ", ".join(f"{method} x{factor:.2f}" for method, factor in growth.items())
        yield Case(_name(size), "", some and growth[LAYERED] <= UNAFFECTED, found)


def _speed(times: Times) -> Iterator[Case]:
    for fast, slow in times.grid.speeds():
        ratio, network = times.seconds(slow) / times.seconds(fast), fast.network
        wanted = network.bandwidth_gb / slow.network.bandwidth_gb
        group = f"{_name((network.layers, network.hosts))}, {fast.method}"
        at = f"{_r(network.ratio)}, {network.latency_us:g} us"
        yield Case(group, at, abs(ratio / wanted - 1) <= LINEAR, f"x{ratio:.2f}")


def _more_steps(times: Times) -> Iterator[Case]:
    for size in SIZES:
        network = NetworkCell(*size).clos()
        exchange = Exchange(network, 1.0, our_switch())
        flat, layered = (sum(1 for _ in METHODS[method].steps(exchange)) for method in DIRECT)
        holds = layered - flat == math.log2(network.half)
        yield Case(_name(size), "", holds, f"{layered} and {flat} steps")


def _ahead(times: Times, size: Size, ratio: float) -> set[tuple[str, str]]:
    """Pairs of methods of which the first is faster than the second by more than LINEAR."""
    return {
        (one, other) for one, other in permutations(PAPER, 2)
        if times.at(size, ratio, one) < (1 - LINEAR) * times.at(size, ratio, other)
    }  # fmt: skip


def _largest() -> dict[int, Size]:
    """The largest network of each number of layers, which is the one that the paper shows."""
    return {layers: max(size for size in SIZES if size[0] == layers) for layers in sorted({size[0] for size in SIZES})}


def _consistent(times: Times) -> Iterator[Case]:
    for size, ratio in product(SIZES, RATIOS):
        shown = _largest()[size[0]]
        if size != shown:
            there = _ahead(times, shown, ratio)
            turned = [(one, other) for one, other in sorted(_ahead(times, size, ratio)) if (other, one) in there]
            found = " and ".join(f"{one} ahead of {other}" for one, other in turned)
            yield Case(_name(size), _r(ratio), not turned, found)


def _trend(times: Times) -> Iterator[Case]:
    shown = [*_largest().values()]
    for method in PAPER if len(shown) > 1 else ():
        growth = [times.growth(size, method) for size in shown]
        holds = len({factor >= AFFECTED for factor in growth}) == 1
        yield Case(method, "", holds, " and ".join(f"x{factor:.2f}" for factor in growth))


def _investment(times: Times) -> Iterator[Case]:
    for size in SIZES:
        thin, whole = (NetworkCell(*size, ratio).clos().equivalents for ratio in (RATIOS[-1], 1.0))
        factor, saved = times.growth(size, LAYERED), 1 - thin / whole
        yield Case(_name(size), "", factor <= UNAFFECTED and saved >= SUBSTANTIAL, f"{saved:.0%} saved, x{factor:.2f}")


def _three_layers(times: Times) -> Iterator[Case]:
    for hosts, ratio, two, three in sizes_of_networks():
        yield Case(f"{hosts:,.0f} hosts", _r(ratio), three < two, f"x{three / two:.2f}")


AGAINST = "{size}, {one} against {other}"
CASES: dict[str, Cases] = {  # by the conclusion's name in conclusions.csv
    "bisection": _bisection,
    "speed": _speed,
    "servers are slower": _compared(SIDES, lambda r, x: x >= SUBSTANTIALLY, group=AGAINST),
    "layered outperforms": _compared([(LAYERED, FLAT)], lambda r, x: x >= 1 if r == 1 else x < 1),
    "more steps": _more_steps,
    "round-robin": _compared([("servers-fixed-places", DISTRIBUTED)], lambda r, x: x >= AFFECTED),
    "three layers": _three_layers,
    "butterflies in general": _compared(SIDES, lambda r, x: x > 1, group=AGAINST),
    "fewer workers": _compared(
        [(f"{method}-fewer-workers", method) for method in DIRECT], lambda r, x: abs(x - 1) <= LINEAR,
        group="{other}, {size}",
    ),
    "packed suffers": _grows(PACKED, True),
    "distributed does not": _grows(DISTRIBUTED, False),
    "flat suffers": _grows(FLAT, True),
    "any size": _consistent,
    "any layers": _trend,
    "flat slightly faster": _compared([(LAYERED, FLAT)], lambda r, x: 1 <= x < SUBSTANTIALLY, ratios=(1.0,)),
    "investment": _investment,
}  # fmt: skip
RULES = tuple(
    Rule(row.quote, row.asked.format(**globals()), CASES[row.conclusion], bool(row.main))
    for row in pd.read_csv(Path(__file__).with_suffix(".csv")).itertuples()
)
