"""What the paper concludes, in its own words, and what comes out of ours: every verdict is computed from results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from experiments.network_study.cells import ExchangeCell, NetworkCell
from experiments.network_study.cost import sizes_of_networks
from experiments.network_study.flows.clos import RATIOS, SIZES
from experiments.network_study.grid import PAPER, Grid, ratio_name

Seconds = Callable[[ExchangeCell], float]

UNAFFECTED = 1.02  # a time that grows by no more than this factor
AFFECTED = SUBSTANTIALLY = 1.1  # from this factor on
LINEAR = 0.02  # so far from proportional, at most

PACKED, DISTRIBUTED, FLAT, LAYERED = PAPER
SERVERS, DIRECT = (PACKED, DISTRIBUTED), (FLAT, LAYERED)


@dataclass(frozen=True)
class Case:
    """One network and setting. ``group``: cases that differ in ``at`` alone are told together; ``found``: the number
    that decides."""

    group: str
    at: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Conclusion:
    """``quote``: the paper's words. ``asked``: what decides a case."""

    quote: str
    asked: str
    cases: tuple[Case, ...]

    @property
    def verdict(self) -> str:
        held = sum(case.holds for case in self.cases)
        if held == len(self.cases):
            return "holds"
        return f"holds in {held} of {len(self.cases)} cases" if held else "fails"

    def failing(self) -> list[str]:
        """Where it does not hold, a line a group."""
        groups: dict[str, list[str]] = {}
        for case in self.cases:
            if not case.holds:
                groups.setdefault(case.group, []).append(f"{case.at} {case.found}".strip())
        return [f"{group}: {', '.join(found)}" for group, found in groups.items()]


def _name(layers: int, hosts: int) -> str:
    return f"{hosts:,} hosts, {layers} layers"


class Conclusions:
    """``seconds``: of an exchange."""

    def __init__(self, seconds: Seconds, grid: Grid) -> None:
        self._seconds, self._grid = seconds, grid

    def _at(self, size: tuple[int, int], ratio: float, method: str) -> float:
        return self._seconds(ExchangeCell(NetworkCell(*size, ratio), method))

    def all(self) -> list[Conclusion]:
        """The four of its section 4."""
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
        cases = []
        for size, server, direct, ratio in product(SIZES, SERVERS, DIRECT, RATIOS):
            factor = self._at(size, ratio, server) / self._at(size, ratio, direct)
            group = f"{_name(*size)}, {server} against {direct}"
            cases.append(Case(group, f"r = {ratio_name(ratio)}", factor >= SUBSTANTIALLY, f"x{factor:.2f}"))
        return Conclusion(
            "Parameter server based methods are substantially slower than the direct exchange methods",
            f"either server method takes {SUBSTANTIALLY:g} times as long as either butterfly, or longer",
            tuple(cases),
        )

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

    # What it says on the way.

    def others(self) -> list[Conclusion]:
        return [self.three_layers(), self.fewer_workers(), self.round_robin(), self.slightly()]

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
