"""The paper's conclusions, in its own words, and whether they hold here. Every verdict is computed from answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations, product

from serene.experiments.network_study.cells import ExchangeCell, NetworkCell, our_switch
from serene.experiments.network_study.cost import sizes_of_networks
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows.clos import RATIOS, SIZES
from serene.experiments.network_study.grid import PAPER, Grid, ratio_name
from serene.experiments.network_study.methods import METHODS

Seconds = Callable[[ExchangeCell], float]

UNAFFECTED = 1.02  # factor by which a time grows, at most, that counts as unaffected
AFFECTED = SUBSTANTIALLY = 1.1  # factor from which a time counts as affected, or as substantially longer
LINEAR = 0.02  # relative difference, at most, of times that count as proportional
SUBSTANTIAL = 0.1  # share of a network's worth that counts as a substantial saving

PACKED, DISTRIBUTED, FLAT, LAYERED = PAPER
SERVERS, DIRECT = (PACKED, DISTRIBUTED), (FLAT, LAYERED)


@dataclass(frozen=True)
class Case:
    """Whether a conclusion ``holds`` in one network and setting. ``group``: cases that differ in ``at`` alone are
    listed together. ``found``: the number that decides, as text."""

    group: str
    at: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of the paper. ``quote``: its words. ``asked``: what decides whether a case holds."""

    quote: str
    asked: str
    cases: tuple[Case, ...]

    @property
    def verdict(self) -> str:
        """In how many cases the conclusion holds, in words."""
        if not self.cases:
            return "not asked"
        held = sum(case.holds for case in self.cases)
        if held == len(self.cases):
            return "holds"
        return f"holds in {held} of {len(self.cases)} cases" if held else "fails"

    def failing(self) -> list[str]:
        """The cases in which it does not hold, a line for each group."""
        groups: dict[str, list[str]] = {}
        for case in self.cases:
            if not case.holds:
                groups.setdefault(case.group, []).append(f"{case.at} {case.found}".strip())
        return [f"{group}: {', '.join(found)}" for group, found in groups.items()]


def _largest(layers: int) -> tuple[int, int]:
    """The largest network with so many layers, which is the one that the paper shows."""
    return max(size for size in SIZES if size[0] == layers)


def _name(layers: int, hosts: int) -> str:
    return f"{hosts:,} hosts, {layers} layers"


class Conclusions:
    """The conclusions, by the answers of a grid. ``seconds``: an exchange's time."""

    def __init__(self, seconds: Seconds, grid: Grid) -> None:
        self._seconds, self._grid = seconds, grid

    def _at(self, size: tuple[int, int], ratio: float, method: str) -> float:
        return self._seconds(ExchangeCell(NetworkCell(*size, ratio), method))

    def all(self) -> list[Conclusion]:
        """The four conclusions of the paper's section 4."""
        return [self.bisection(), self.speed(), self.servers(), self.layered()]

    def bisection(self) -> Conclusion:
        cases = []
        for size in SIZES:
            growth = {method: self._at(size, RATIOS[-1], method) / self._at(size, 1.0, method) for method in PAPER}
            some = any(factor >= AFFECTED for method, factor in growth.items() if method != LAYERED)
            found = ", ".join(f"{method} x{factor:.2f}" for method, factor in growth.items())
            cases.append(Case(_name(*size), "", some and growth[LAYERED] <= UNAFFECTED, found))
        return Conclusion(
            "Bisection ratio affects some of the parameter exchange methods, but cluster aware direct exchange method "
            "does not get affected",
            f"on every network, from r = 1 to r = 1/8: some other method's time grows {AFFECTED:g} times or more, the "
            f"layered butterfly's at most {UNAFFECTED:g} times",
            tuple(cases),
        )

    def speed(self) -> Conclusion:
        cases = []
        for fast, slow in self._grid.speeds():
            ratio = self._seconds(slow) / self._seconds(fast)
            wanted = fast.network.bandwidth_gb / slow.network.bandwidth_gb
            at = f"r = {ratio_name(fast.network.ratio)}, {fast.network.latency_us:g} us"
            group = f"{_name(fast.network.layers, fast.network.hosts)}, {fast.method}"
            cases.append(Case(group, at, abs(ratio / wanted - 1) <= LINEAR, f"x{ratio:.2f}"))
        return Conclusion(
            "Network speed linearly affect the parameter exchange speed",
            f"the time at 1 GB/s is that at 4 GB/s four times, to {LINEAR:.0%}, for its four methods at both latencies",
            tuple(cases),
        )

    def servers(self) -> Conclusion:
        return self._servers_take(
            SUBSTANTIALLY,
            "Parameter server based methods are substantially slower than the direct exchange methods",
            f"either server method takes {SUBSTANTIALLY:g} times as long as either butterfly, or longer",
        )

    def _servers_take(self, least: float, quote: str, asked: str) -> Conclusion:
        """A conclusion that servers take at least so many times as long as butterflies; for 1, that they take
        longer."""
        cases = []
        for size, server, direct, ratio in product(SIZES, SERVERS, DIRECT, RATIOS):
            factor = self._at(size, ratio, server) / self._at(size, ratio, direct)
            group = f"{_name(*size)}, {server} against {direct}"
            holds = factor >= least and factor > 1
            cases.append(Case(group, f"r = {ratio_name(ratio)}", holds, f"x{factor:.2f}"))
        return Conclusion(quote, asked, tuple(cases))

    def layered(self) -> Conclusion:
        cases = []
        for size, ratio in product(SIZES, RATIOS):
            factor = self._at(size, ratio, LAYERED) / self._at(size, ratio, FLAT)
            holds = factor >= 1 if ratio == 1 else factor < 1
            cases.append(Case(_name(*size), f"r = {ratio_name(ratio)}", holds, f"x{factor:.2f}"))
        return Conclusion(
            "Cluster aware direct exchange method (layered butterfly) outperforms naive exchange method (flat "
            "butterfly), except for the case with full-bisection bandwidth",
            "the layered butterfly's time over the flat one's is below 1 at r < 1, and not at r = 1",
            tuple(cases),
        )

    # What the paper says outside section 4.

    def others(self) -> list[Conclusion]:
        """The other statements of the paper that can be checked."""
        return [
            self.more_steps(), self.round_robin(), self.three_layers(), self.in_general(), self.fewer_workers(),
            self.packed(), self.distributed(), self.flat(), self.consistent(), self.trend(), self.slightly(),
            self.investment(),
        ]  # fmt: skip

    def _growth(self, size: tuple[int, int], method: str) -> float:
        """By what factor a time grows from the whole network to the thinnest."""
        return self._at(size, RATIOS[-1], method) / self._at(size, 1.0, method)

    def _grows(self, method: str, quote: str, *, affected: bool) -> Conclusion:
        cases = []
        for size in SIZES:
            factor = self._growth(size, method)
            cases.append(Case(_name(*size), "", (factor >= AFFECTED) == affected, f"x{factor:.2f}"))
        how = f"{AFFECTED:g} times or more" if affected else f"less than {AFFECTED:g} times"
        return Conclusion(quote, f"from r = 1 to r = 1/8 the time of {method} grows {how}", tuple(cases))

    def packed(self) -> Conclusion:
        return self._grows(
            PACKED,
            "Parameter server method with packed placement setting exhibit significant performance drops as the "
            "bisection ratio decreases",
            affected=True,
        )

    def distributed(self) -> Conclusion:
        return self._grows(
            DISTRIBUTED,
            "with distributed placement setting, the parameter server method is hardly affected by the reduction of "
            "the bisection bandwidth",
            affected=False,
        )

    def flat(self) -> Conclusion:
        return self._grows(
            FLAT,
            "The flat butterfly method tends to be affected by the reduced bisection bandwidth",
            affected=True,
        )

    def in_general(self) -> Conclusion:
        return self._servers_take(
            1.0,
            "Butterfly network based method is faster than parameter server based method, in general",
            "either server method takes longer than either butterfly",
        )

    def more_steps(self) -> Conclusion:
        cases = []
        for layers, hosts in SIZES:
            network = NetworkCell(layers, hosts).clos()
            exchange = Exchange(network, 1.0, our_switch())
            flat, layered = (sum(1 for _ in METHODS[method].steps(exchange)) for method in DIRECT)
            holds = layered - flat == math.log2(network.half)
            cases.append(Case(_name(layers, hosts), "", holds, f"{layered} and {flat} steps"))
        return Conclusion(
            "the layered method requires log2n more steps",
            "the layered butterfly has as many steps more than the flat one as the logarithm of a leaf's hosts",
            tuple(cases),
        )

    def _ahead(self, size: tuple[int, int], ratio: float) -> set[tuple[str, str]]:
        """Pairs of methods of which the first is faster than the second by more than LINEAR."""
        return {
            (one, other) for one, other in permutations(PAPER, 2)
            if self._at(size, ratio, one) < (1 - LINEAR) * self._at(size, ratio, other)
        }  # fmt: skip

    def consistent(self) -> Conclusion:
        cases = []
        for size, ratio in product(SIZES, RATIOS):
            shown = _largest(size[0])
            if size != shown:
                there = self._ahead(shown, ratio)
                turned = [(one, other) for one, other in sorted(self._ahead(size, ratio)) if (other, one) in there]
                found = " and ".join(f"{one} ahead of {other}" for one, other in turned)
                cases.append(Case(_name(*size), f"r = {ratio_name(ratio)}", not turned, found))
        return Conclusion(
            "the results are quite consistent regardless of the size of cluster",
            f"at every r no two of the four methods are the other way round, by {LINEAR:.0%} or more each time, than "
            "on the largest network of as many layers",
            tuple(cases),
        )

    def trend(self) -> Conclusion:
        cases = []
        shown = [_largest(layers) for layers in sorted({layers for layers, _ in SIZES})]
        for method in PAPER if len(shown) > 1 else ():
            growth = [self._growth(size, method) for size in shown]
            holds = len({factor >= AFFECTED for factor in growth}) == 1
            cases.append(Case(method, "", holds, " and ".join(f"x{factor:.2f}" for factor in growth)))
        return Conclusion(
            "they share same trend in results",
            f"on the largest network of 2 layers and of 3 a method's time grows {AFFECTED:g} times or more from r = 1 "
            "to 1/8, or on neither",
            tuple(cases),
        )

    def investment(self) -> Conclusion:
        cases = []
        for layers, hosts in SIZES:
            thin, whole = (NetworkCell(layers, hosts, ratio).clos().equivalents for ratio in (RATIOS[-1], 1.0))
            factor, saved = self._growth((layers, hosts), LAYERED), 1 - thin / whole
            holds = factor <= UNAFFECTED and saved >= SUBSTANTIAL
            cases.append(Case(_name(layers, hosts), "", holds, f"{saved:.0%} saved, x{factor:.2f}"))
        return Conclusion(
            "if we employ proper parameter exchange method, we could substantially reduce the investment on the "
            "network",
            f"at r = 1/8 the network is worth at least {SUBSTANTIAL:.0%} less, and the layered butterfly "
            f"takes at most {UNAFFECTED:g} times as long",
            tuple(cases),
        )

    def three_layers(self) -> Conclusion:
        cases = []
        for hosts, ratio, two, three in sizes_of_networks():
            found = f"x{three / two:.2f}"
            cases.append(Case(f"{hosts:,.0f} hosts", f"r = {ratio_name(ratio)}", three < two, found))
        return Conclusion(
            "The network resource requirement for 3-layered Clos network is smaller than 2-layered one",
            "for as many hosts, 3 layers are worth fewer 2x2 switches than 2 layers (Figure 6)",
            tuple(cases),
        )

    def fewer_workers(self) -> Conclusion:
        cases = []
        for method, size, ratio in product(DIRECT, SIZES, RATIOS):
            factor = self._at(size, ratio, f"{method}-fewer-workers") / self._at(size, ratio, method)
            group = f"{method}, {_name(*size)}"
            cases.append(Case(group, f"r = {ratio_name(ratio)}", abs(factor - 1) <= LINEAR, f"x{factor:.2f}"))
        return Conclusion(
            "even if the butterfly network based method reduces n nodes, the execution time is expected to be the same",
            "a butterfly over the 7/8 of the hosts that are workers beside servers takes as long as one over all, to "
            f"{LINEAR:.0%}",
            tuple(cases),
        )

    def round_robin(self) -> Conclusion:
        cases = []
        for size, ratio in product(SIZES, RATIOS):
            factor = self._at(size, ratio, "servers-fixed-places") / self._at(size, ratio, DISTRIBUTED)
            cases.append(Case(_name(*size), f"r = {ratio_name(ratio)}", factor >= AFFECTED, f"x{factor:.2f}"))
        return Conclusion(
            "the parameter server node in each sub-cluster is selected in round-robin fashion to avoid unnecessary "
            "network contention in the upper layer switches",
            f"servers at the same places of all leaves take {AFFECTED:g} times as long, or longer",
            tuple(cases),
        )

    def slightly(self) -> Conclusion:
        cases = []
        for size in SIZES:
            factor = self._at(size, 1.0, LAYERED) / self._at(size, 1.0, FLAT)
            cases.append(Case(_name(*size), "r = 1", 1 <= factor < SUBSTANTIALLY, f"x{factor:.2f}"))
        return Conclusion(
            "the flat butterfly is slightly faster than layered butterfly with full-bisection bandwidth",
            f"the layered butterfly takes 1 to {SUBSTANTIALLY:g} times as long at r = 1",
            tuple(cases),
        )
