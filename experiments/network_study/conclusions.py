"""The paper's conclusions, in its own words, and the cases in which they hold here, computed from answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

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


@dataclass(frozen=True)
class Rule:
    """A conclusion of the paper. ``quote``: its words. ``asked``: what decides whether a case holds. ``main``: whether
    it is one of the four of the paper's section 4."""

    quote: str
    asked: str
    cases: Callable[[Times], Iterable[Case]]
    main: bool = False


def _name(size: Size) -> str:
    return f"{size[1]:,} hosts, {size[0]} layers"


def _r(ratio: float) -> str:
    return f"r = {ratio_name(ratio)}"


def _compared(
    pairs: Iterable[tuple[str, str]], holds: Holds, ratios: Sequence[float] = RATIOS, group: str = "{size}"
) -> Callable[[Times], Iterable[Case]]:
    """A case for each network and ratio: by the first method's time over the second's."""

    def cases(times: Times) -> Iterator[Case]:
        for size, (one, other), ratio in product(SIZES, pairs, ratios):
            factor = times.at(size, ratio, one) / times.at(size, ratio, other)
            named = group.format(size=_name(size), one=one, other=other)
            yield Case(named, _r(ratio), holds(ratio, factor), f"x{factor:.2f}")

    return cases


def _grows(method: str, affected: bool) -> Callable[[Times], Iterable[Case]]:
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
RULES = (
    Rule(
        "Bisection ratio affects some of the parameter exchange methods, but cluster aware direct exchange method does "
        "not get affected",
        f"on every network, from r = 1 to r = 1/8: some other method's time grows {AFFECTED:g} times or more, the "
        f"layered butterfly's at most {UNAFFECTED:g} times",
        _bisection, main=True,
    ),
    Rule(
        "Network speed linearly affect the parameter exchange speed",
        f"the time at 1 GB/s is that at 4 GB/s four times, to {LINEAR:.0%}, for its four methods at both latencies",
        _speed, main=True,
    ),
    Rule(
        "Parameter server based methods are substantially slower than the direct exchange methods",
        f"either server method takes {SUBSTANTIALLY:g} times as long as either butterfly, or longer",
        _compared([*product(SERVERS, DIRECT)], lambda r, x: x >= SUBSTANTIALLY, group=AGAINST), main=True,
    ),
    Rule(
        "Cluster aware direct exchange method (layered butterfly) outperforms naive exchange method (flat butterfly), "
        "except for the case with full-bisection bandwidth",
        "the layered butterfly's time over the flat one's is below 1 at r < 1, and not at r = 1",
        _compared([(LAYERED, FLAT)], lambda r, x: x >= 1 if r == 1 else x < 1), main=True,
    ),
    # What the paper states outside section 4.
    Rule(
        "the layered method requires log2n more steps",
        "the layered butterfly has as many steps more than the flat one as the logarithm of a leaf's hosts",
        _more_steps,
    ),
    Rule(
        "the parameter server node in each sub-cluster is selected in round-robin fashion to avoid unnecessary network "
        "contention in the upper layer switches",
        f"servers at the same places of all leaves take {AFFECTED:g} times as long, or longer",
        _compared([("servers-fixed-places", DISTRIBUTED)], lambda r, x: x >= AFFECTED),
    ),
    Rule(
        "The network resource requirement for 3-layered Clos network is smaller than 2-layered one",
        "for as many hosts, 3 layers are worth fewer 2x2 switches than 2 layers (Figure 6)",
        _three_layers,
    ),
    Rule(
        "Butterfly network based method is faster than parameter server based method, in general",
        "either server method takes longer than either butterfly",
        _compared([*product(SERVERS, DIRECT)], lambda r, x: x > 1, group=AGAINST),
    ),
    Rule(
        "even if the butterfly network based method reduces n nodes, the execution time is expected to be the same",
        "a butterfly over the 7/8 of the hosts that are workers beside servers takes as long as one over all, to "
        f"{LINEAR:.0%}",
        _compared([(f"{method}-fewer-workers", method) for method in DIRECT], lambda r, x: abs(x - 1) <= LINEAR,
                  group="{other}, {size}"),
    ),
    Rule(
        "Parameter server method with packed placement setting exhibit significant performance drops as the bisection "
        "ratio decreases",
        f"from r = 1 to r = 1/8 the time of {PACKED} grows {AFFECTED:g} times or more",
        _grows(PACKED, True),
    ),
    Rule(
        "with distributed placement setting, the parameter server method is hardly affected by the reduction of the "
        "bisection bandwidth",
        f"from r = 1 to r = 1/8 the time of {DISTRIBUTED} grows less than {AFFECTED:g} times",
        _grows(DISTRIBUTED, False),
    ),
    Rule(
        "The flat butterfly method tends to be affected by the reduced bisection bandwidth",
        f"from r = 1 to r = 1/8 the time of {FLAT} grows {AFFECTED:g} times or more",
        _grows(FLAT, True),
    ),
    Rule(
        "the results are quite consistent regardless of the size of cluster",
        f"at every r no two of the four methods are the other way round, by {LINEAR:.0%} or more each time, than on "
        "the largest network of as many layers",
        _consistent,
    ),
    Rule(
        "they share same trend in results",
        f"on the largest network of 2 layers and of 3 a method's time grows {AFFECTED:g} times or more from r = 1 to "
        "1/8, or on neither",
        _trend,
    ),
    Rule(
        "the flat butterfly is slightly faster than layered butterfly with full-bisection bandwidth",
        f"the layered butterfly takes 1 to {SUBSTANTIALLY:g} times as long at r = 1",
        _compared([(LAYERED, FLAT)], lambda r, x: 1 <= x < SUBSTANTIALLY, ratios=(1.0,)),
    ),
    Rule(
        "if we employ proper parameter exchange method, we could substantially reduce the investment on the network",
        f"at r = 1/8 the network is worth at least {SUBSTANTIAL:.0%} less, and the layered butterfly takes at most "
        f"{UNAFFECTED:g} times as long",
        _investment,
    ),
)  # fmt: skip
