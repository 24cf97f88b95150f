"""The tables of the report: the paper's methods, ours, and how far the simulator agrees with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd

from serene.experiments.network_study import cost
from serene.experiments.network_study.cells import MB, Answers, ExchangeCell, NetworkCell, our_switch
from serene.experiments.network_study.emulated.plan import title
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import RATIOS, SIZES, Clos
from serene.experiments.network_study.flows.solver import LV08
from serene.experiments.network_study.grid import (
    BASE_MS,
    LOCK_STEP,
    STRAGGLERS,
    STRATEGIES,
    TRAINING_RATIO,
    Grid,
    ratio_name,
)
from serene.experiments.network_study.methods import MAIN, METHODS, VARIANTS
from serene.experiments.network_study.reference import Pair
from serene.experiments.network_study.schedules import leaf_spine_aggregation, ring
from serene.experiments.network_study.training import SERVERS, SWITCH
from serene.experiments.shared.measurements import Row

Table = tuple[list[str], list[list[str]]]  # head, rows
At = Callable[[str, float], float]  # a time, by method and ratio
Network = Callable[[float], Clos]  # by ratio
THIN = 0.125  # the bisection ratio of a thin network
OURS = "leaf-spine-aggregation"
ALONE = [method for method in MAIN if not METHODS[method].in_network]  # the methods of hosts alone
SMALL, SMALL_MB = (2, 3, 4, 8, 16, 32), 100.0  # hosts and gradient of `small`
ON_RATIOS = [f"r = {ratio_name(ratio)}" for ratio in RATIOS]


class Findings:
    """The tables that follow from a grid's answers. Times of exchanges are in units of gradient / bandwidth unless they
    say otherwise."""

    def __init__(self, answers: Answers, grid: Grid) -> None:
        self._answers, self._grid = answers, grid

    def seconds(self, cell: ExchangeCell) -> float:
        """The simulated time of an exchange in seconds."""
        return float(self._answers[cell]["seconds"])

    def _networks(self) -> Iterator[tuple[str, At, Network]]:
        """Of each network: its name, the time of a method on it, and the network itself, both at a ratio."""
        for layers, hosts in SIZES:
            network = partial(Clos.of_size, hosts, layers=layers)
            yield f"{hosts:,} ({layers} layers)", partial(self._units, layers, hosts), network

    def _units(self, layers: int, hosts: int, method: str, ratio: float) -> float:
        cell = ExchangeCell(NetworkCell(layers, hosts, ratio), method)
        return self.seconds(cell) / cell.unit_s

    def answer(self) -> Table:
        """How much of a network's upper layers training needs: what an eighth of them saves, and costs."""
        shown = ("layered-butterfly", "flat-butterfly", "servers-packed", "servers-distributed", OURS)
        head = ["hosts", "switches' worth saved at r = 1/8", *(f"{method}, r = 1/8 against 1" for method in shown)]
        return [*head, f"{OURS}: times as fast as the best of hosts alone, r = 1/8"], [
            [name, f"{1 - network(THIN).equivalents / network(1.0).equivalents:.0%}",
             *(f"x{at(method, THIN) / at(method, 1.0):.2f}" for method in shown),
             f"{min(at(method, THIN) for method in ALONE) / at(OURS, THIN):.1f}"]
            for name, at, network in self._networks()
        ]  # fmt: skip

    def of_the_paper(self) -> Table:
        """How the paper's methods compare on whole networks."""
        methods, rows = ("servers-distributed", "flat-butterfly", "layered-butterfly"), []
        for name, at, _ in self._networks():
            servers, flat, layered = (at(method, 1.0) for method in methods)
            rows.append([name, f"{servers / flat:.2f}", f"{servers / layered:.2f}", f"{layered / flat - 1:+.0%}"])
        head = ["hosts", "distributed servers / flat, r = 1", "distributed servers / layered, r = 1"]
        return [*head, "layered slower than flat, r = 1"], rows

    def linearity(self) -> Table:
        """The time at 1 GB/s, relative to that at 4 GB/s: 4 if time is linear."""
        where = [(size, latency) for size in self._grid.others for latency in (0.2, 1.0)]
        rows = []
        for method in MAIN:
            row = [method]
            for size, latency in where:
                cells = [ExchangeCell(NetworkCell(*size, 1.0, speed, latency), method) for speed in (1.0, 4.0)]
                row.append(f"{self.seconds(cells[0]) / self.seconds(cells[1]):.3f}")
            rows.append(row)
        return ["method", *(f"{hosts} hosts, {latency:g} us" for (_, hosts), latency in where)], rows

    def times(self) -> Table:
        """The times of all methods on all networks, and how far they are from the closed forms."""
        rows = []
        for (layers, hosts), method in ((size, method) for size in SIZES for method in (*MAIN, *VARIANTS)):
            cells = [ExchangeCell(NetworkCell(layers, hosts, ratio), method) for ratio in RATIOS]
            known = [self._answers[cell]["closed_form_s"] for cell in cells]
            closed, gap, unit = "", "", cells[0].unit_s
            if known[0] is not None:
                gaps = [self.seconds(cell) / form - 1 for cell, form in zip(cells, known, strict=True)]
                closed, gap = f"{known[0] / unit:.2f}", f"{max(gaps, key=abs):+.1%}".replace("-0.0%", "+0.0%")
            times = [f"{self.seconds(cell) / unit:.2f}" for cell in cells]
            rows.append([f"{hosts:,} ({layers} layers)", method, *times, closed, gap])
        return ["hosts", "method", *ON_RATIOS, "closed form at r = 1", "largest gap"], rows

    def routing(self) -> Table:
        """The times with routes by a hash of source and destination, relative to static routes by destination."""
        rows = []
        for (layers, hosts), method in ((size, method) for size in self._grid.others for method in MAIN):
            times = []
            for ratio in RATIOS:
                cells = [ExchangeCell(NetworkCell(layers, hosts, ratio, routing=by), method)
                         for by in ("ecmp", "d-mod-k")]  # fmt: skip
                times.append(f"x{self.seconds(cells[0]) / self.seconds(cells[1]):.2f}")
            rows.append([f"{hosts:,}", method, *times])
        return ["hosts", "method", *ON_RATIOS], rows

    def savings(self) -> Table:
        """Aggregation in leaf and spine compared with the best other method, and what a thin network saves."""
        rows = []
        for name, at, network in self._networks():
            found = [name, f"{at(OURS, THIN):.2f}"]
            for ratio in (THIN, 1.0):
                time, best = min((at(method, ratio), method) for method in ALONE)
                found += [f"{best} {time:.2f}", f"{time / at(OURS, THIN):.2f}"]
            thin, whole = (network(ratio).equivalents for ratio in (THIN, 1.0))
            rows.append([*found, f"{thin:,}", f"{whole:,}", f"{1 - thin / whole:.0%}"])
        head = ["hosts", "leaf-spine, r = 1/8", "best other, r = 1/8", "times faster", "best other, r = 1"]
        return [*head, "times faster", "2x2 equivalents, r = 1/8", "r = 1", "saved"], rows

    def break_even(self) -> Table:
        """How many times as much a switch that adds up may cost, until the product of exchange time and cost at r = 1/8
        is that of another method."""
        against = ("ring", "hierarchical-ring", "layered-butterfly")
        return ["hosts", *(f"against {method.replace('-', ' ')}" for method in against)], [
            [name, *(f"x{at(method, THIN) / at(OURS, THIN):.2f}" for method in against)]
            for name, at, _ in self._networks()
        ]

    def training(self, hosts: int) -> Table:
        """Rounds a second, the median of the seeds, and their difference from BSP through the switch."""
        asked = (hosts, TRAINING_RATIO, BASE_MS)
        cells = [cell for cell in self._grid.trainings()
                 if (cell.network.hosts, cell.network.ratio, cell.compute_ms) == asked]  # fmt: skip
        runs = pd.DataFrame(
            [(cell.how, cell.strategy, cell.straggler, self._answers[cell]["rounds_per_s"],
              self._answers[cell]["ahead_max"]) for cell in cells],
            columns=["how", "strategy", "straggler", "speed", "ahead"],
        ).groupby(["how", "strategy", "straggler"])  # fmt: skip
        speed, ahead = runs["speed"].median(), runs["ahead"].max()
        rows = []
        ways = [(how, strategy) for how in (SWITCH, SERVERS) for strategy in STRATEGIES]
        for how, strategy in [*ways, *((how, "bsp") for how in LOCK_STEP)]:
            texts = [
                f"{speed[how, strategy, name]:.2f} ({speed[how, strategy, name] / speed[SWITCH, 'bsp', name] - 1:+.0%})"
                for name in STRAGGLERS
            ]
            rows.append([how, strategy, *texts, str(int(max(ahead[how, strategy, name] for name in STRAGGLERS)))])
        kinds = (name.partition(":")[0] for name in STRAGGLERS)
        return ["exchange", "strategy", *kinds, "ahead of the slowest, most"], rows


def small() -> Table:
    """Aggregation compared with a ring for few hosts around one switch: 100 MB over links of 4 GB/s."""
    rows = []
    for hosts in SMALL:
        star = Clos(2, max(2 * hosts, 4), 1)
        asked = Exchange(star, SMALL_MB * MB, our_switch())
        unit = asked.size / star.bandwidth
        theirs, ours = (solver.run(star, make(asked), LV08) / unit for make in (ring, leaf_spine_aggregation))
        rows.append([str(hosts), f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.2f}"])
    return ["hosts", "ring", "aggregation", "times faster"], rows


def comparison() -> Table:
    """The paper's Table 1."""
    ports = "of 16 ports"
    head = ["", "2 layers", f"{ports}, r = 1", "r = 1/8", "3 layers", f"{ports}, r = 1", "r = 1/8"]
    return head, cost.comparison()


def networks() -> Table:
    """Every network of the study: its parts, and their worth."""
    head = ["hosts", "layers", "ports", "r", "leaves", "pods' upper", "top", "switches", "2x2 equivalents", "a host"]
    built = [Clos.of_size(hosts, ratio, layers=layers) for layers, hosts in SIZES for ratio in RATIOS]
    return head, [
        [f"{each.hosts:,}", str(each.layers), str(each.ports), ratio_name(each.ratio), str(each.leaves),
         str(each.middles), str(each.top_switches), str(each.switches), f"{each.equivalents:,}",
         f"{each.equivalents / each.hosts:.1f}"]
        for each in built
    ]  # fmt: skip


def agreement(pairs: Sequence[Pair]) -> Table:
    """How far the NumPy engine's answers are from SimGrid's, by method."""
    errors = pd.DataFrame([(pair.cell.method, pair.error()) for pair in pairs], columns=["method", "error"])
    by = errors.groupby("method", sort=False)["error"]
    return ["method", "exchanges", "largest relative difference"], [
        [method, str(len(mine)), f"{mine.max():.1e}"] for method, mine in by
    ]


def scaled(rows: Sequence[Row]) -> Table:
    """The simulator's own time and memory."""
    return ["hosts", "method", "seconds", "peak memory [MB]", "of which libraries"], [
        [f"{row['hosts']:,} ({row['layers']} layers)", row["method"], f"{row['engine_s']:.2f}",
         f"{row['memory_mb']:.0f}", f"{row['of_it_libraries_mb']:.0f}"]
        for row in rows
    ]  # fmt: skip


# What some measurements have beside the times: a column's heading, and its form.
BESIDE: dict[str, tuple[str, Callable[[Any], str]]] = {
    "waited_s": ("longest wait of a host for a processor", lambda seconds: f"{seconds:.2f} s"),
    "idle": ("processors idle, least", lambda share: f"{share:.0%}"),
    "measured": ("measured", str),
}


def emulated(rows: Sequence[Row]) -> Table:
    """Exchanges on emulated networks, compared with the simulation."""
    beside = [name for name in BESIDE if any(name in row for row in rows)]
    head = ["hosts", "r", "method", "simulated", "emulated", "spread", "emulated / simulated"]
    texts = []
    for row in rows:
        samples = row.get("samples_s") or [row["least_s"], row["most_s"]]
        hosts = row["hosts"] if "hosts" in row else row["ports"] // 2 * row["leaves"]  # older measurements
        texts.append([
            str(hosts), ratio_name(row["ratio"]), title(row), seconds(row["simulated_s"]),
            seconds(row["emulated_s"]), f"{seconds(min(samples))} to {seconds(max(samples))}",
            f"{row['emulated_s'] / row['simulated_s']:.2f}", *(BESIDE[name][1](row[name]) for name in beside),
        ])  # fmt: skip
    return [*head, *(BESIDE[name][0] for name in beside)], texts


def seconds(time: float) -> str:
    """A time as text."""
    return f"{time:.2f} s" if time >= 1 else f"{1e3 * time:.0f} ms"
