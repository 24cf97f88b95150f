"""The tables of the report: the paper's methods, ours, and how far the simulator agrees with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serene.experiments.network_study import cost
from serene.experiments.network_study.cells import MB, Answers, ExchangeCell, NetworkCell, our_switch
from serene.experiments.network_study.emulated.rows import title
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import RATIOS, SIZES, Clos
from serene.experiments.network_study.flows.model import LV08
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

Table = tuple[list[str], list[list[str]]]  # head, rows
LINEAR = (1.0, 4.0)  # bandwidths in GB/s that `Findings.linearity` compares
SMALL, SMALL_MB = (2, 3, 4, 8, 16, 32), 100.0  # hosts and gradient of `small`


class Findings:
    """The tables that follow from a grid's answers. Times of exchanges are in units of gradient / bandwidth unless they
    say otherwise."""

    def __init__(self, answers: Answers, grid: Grid) -> None:
        self._answers, self._grid = answers, grid

    def units(self, layers: int, hosts: int, ratio: float, method: str) -> float:
        """The time of an exchange, in units of gradient / bandwidth."""
        cell = ExchangeCell(NetworkCell(layers, hosts, ratio), method)
        return self.seconds(cell) / (cell.gradient_mb * MB / (cell.network.bandwidth_gb * 1e9))

    def seconds(self, cell: ExchangeCell) -> float:
        """The simulated time of an exchange in seconds."""
        return float(self._answers[cell]["seconds"])

    # The paper's methods.

    def of_the_paper(self) -> Table:
        """The ratios that the paper's conclusions are about, for every network."""
        rows = []
        for layers, hosts in SIZES:

            def at(method: str, ratio: float, layers: int = layers, hosts: int = hosts) -> float:
                return self.units(layers, hosts, ratio, method)

            packed = at("servers-packed", 0.125) / at("servers-packed", 1.0)
            spread = at("servers-distributed", 0.125) / at("servers-distributed", 1.0)
            flat = at("flat-butterfly", 0.125) / at("flat-butterfly", 1.0)
            layered = at("layered-butterfly", 0.125) / at("layered-butterfly", 1.0)
            ahead = at("layered-butterfly", 1.0) / at("flat-butterfly", 1.0) - 1
            servers = at("servers-distributed", 1.0) / at("layered-butterfly", 1.0)
            rows.append(
                [
                    f"{hosts:,} ({layers} layers)", f"x{packed:.2f}", f"x{spread:.2f}",
                    f"{at('servers-distributed', 1.0) / at('flat-butterfly', 1.0):.2f}", f"{servers:.2f}",
                    f"x{flat:.2f}", f"x{layered:.2f}", f"{ahead:+.0%}",
                ]
            )  # fmt: skip
        head = [
            "hosts", "packed servers, r = 1/8 against 1", "distributed servers", "distributed servers / flat, r = 1",
            "distributed servers / layered, r = 1", "flat, r = 1/8 against 1", "layered",
            "layered slower than flat, r = 1",
        ]  # fmt: skip
        return head, rows

    def linearity(self) -> Table:
        """The time at 1 GB/s, relative to that at 4 GB/s: 4 if time is linear."""
        head = [
            "method",
            *(f"{hosts} hosts, {latency:g} us" for _, hosts in self._grid.others for latency in (0.2, 1.0)),
        ]
        rows = []
        for method in MAIN:
            row = [method]
            for layers, hosts in self._grid.others:
                for latency in (0.2, 1.0):
                    slow, fast = (
                        self.seconds(ExchangeCell(NetworkCell(layers, hosts, 1.0, speed, latency), method))
                        for speed in LINEAR
                    )
                    row.append(f"{slow / fast:.3f}")
            rows.append(row)
        return head, rows

    # All times.

    def times(self) -> Table:
        """The times of all methods on all networks, and how far they are from the closed forms."""
        head = [
            "hosts",
            "method",
            *(f"r = {ratio_name(ratio)}" for ratio in RATIOS),
            "closed form at r = 1",
            "largest gap",
        ]
        rows = []
        for (layers, hosts), method in ((size, method) for size in SIZES for method in (*MAIN, *VARIANTS)):
            cells = [ExchangeCell(NetworkCell(layers, hosts, ratio), method) for ratio in RATIOS]
            known = [self._answers[cell]["closed_form_s"] for cell in cells]
            unit = cells[0].gradient_mb * MB / (cells[0].network.bandwidth_gb * 1e9)
            closed, gap = "", ""
            if known[0] is not None:
                gaps = [self.seconds(cell) / form - 1 for cell, form in zip(cells, known, strict=True)]
                closed, gap = f"{known[0] / unit:.2f}", f"{max(gaps, key=abs):+.1%}".replace("-0.0%", "+0.0%")
            times = [f"{self.seconds(cell) / unit:.2f}" for cell in cells]
            rows.append([f"{hosts:,} ({layers} layers)", method, *times, closed, gap])
        return head, rows

    def routing(self) -> Table:
        """The times with routes by a hash of source and destination, relative to static routes by destination."""
        head = ["hosts", "method", *(f"r = {ratio_name(ratio)}" for ratio in RATIOS)]
        rows = []
        for (layers, hosts), method in ((size, method) for size in self._grid.others for method in MAIN):
            times = []
            for ratio in RATIOS:
                hashed = self.seconds(ExchangeCell(NetworkCell(layers, hosts, ratio, routing="ecmp"), method))
                static = self.seconds(ExchangeCell(NetworkCell(layers, hosts, ratio), method))
                times.append(f"x{hashed / static:.2f}")
            rows.append([f"{hosts:,}", method, *times])
        return head, rows

    # Ours.

    def savings(self) -> Table:
        """Aggregation in leaf and spine compared with the best other method, and what a thin network saves."""
        head = [
            "hosts", "leaf-spine, r = 1/8", "best other, r = 1/8", "times faster", "best other, r = 1", "times faster",
            "2x2 equivalents, r = 1/8", "r = 1", "saved",
        ]  # fmt: skip
        others = [method for method in MAIN if not METHODS[method].in_network]
        rows = []
        for layers, hosts in SIZES:
            ours = self.units(layers, hosts, 0.125, "leaf-spine-aggregation")
            cells = [f"{hosts:,} ({layers} layers)", f"{ours:.2f}"]
            for ratio in (0.125, 1.0):
                best = min(others, key=lambda method, ratio=ratio: self.units(layers, hosts, ratio, method))  # type: ignore[misc]
                time = self.units(layers, hosts, ratio, best)
                cells += [f"{best} {time:.2f}", f"{time / ours:.2f}"]
            thin, whole = (Clos.of_size(hosts, ratio, layers=layers).equivalents for ratio in (0.125, 1.0))
            rows.append([*cells, f"{thin:,}", f"{whole:,}", f"{1 - thin / whole:.0%}"])
        return head, rows

    def break_even(self) -> Table:
        """How many times as much a switch that adds up may cost, until the product of exchange time and cost at r = 1/8
        is that of another method."""
        head = ["hosts", "against ring", "against hierarchical ring", "against layered butterfly"]
        rows = []
        for layers, hosts in SIZES:
            ours = self.units(layers, hosts, 0.125, "leaf-spine-aggregation")
            against = [
                f"x{self.units(layers, hosts, 0.125, method) / ours:.2f}"
                for method in ("ring", "hierarchical-ring", "layered-butterfly")
            ]
            rows.append([f"{hosts:,} ({layers} layers)", *against])
        return head, rows

    def training(self, hosts: int) -> Table:
        """Rounds a second, and their difference from BSP through the switch."""
        head = ["exchange", "strategy", *(name.partition(":")[0] for name in STRAGGLERS), "ahead of the slowest, most"]
        ways = [(how, strategy) for how in (SWITCH, SERVERS) for strategy in STRATEGIES]
        rows = []
        for how, strategy in [*ways, *((how, "bsp") for how in LOCK_STEP)]:
            row, ahead = [how, strategy], 0
            for straggler in STRAGGLERS:
                found = self._runs(hosts, how, strategy, straggler)
                base = self._runs(hosts, SWITCH, "bsp", straggler)
                speed, own = (float(np.median([run["rounds_per_s"] for run in runs])) for runs in (found, base))
                ahead = max(ahead, *(int(run["ahead_max"]) for run in found))
                row.append(f"{speed:.2f} ({speed / own - 1:+.0%})")
            rows.append([*row, str(ahead)])
        return head, rows

    def _runs(self, hosts: int, how: str, strategy: str, straggler: str) -> list[dict[str, Any]]:
        return [
            self._answers[cell]
            for cell in self._grid.trainings()
            if (cell.network.hosts, cell.network.ratio, cell.how, cell.strategy, cell.straggler, cell.compute_ms)
            == (hosts, TRAINING_RATIO, how, strategy, straggler, BASE_MS)
        ]


def small() -> Table:
    """Aggregation compared with a ring for few hosts around one switch: 100 MB over links of 4 GB/s."""
    head = ["hosts", "ring", "aggregation", "times faster"]
    rows = []
    for hosts in SMALL:
        star = Clos(2, max(2 * hosts, 4), 1)
        asked = Exchange(star, SMALL_MB * MB, our_switch())
        unit = asked.size / star.bandwidth
        theirs, ours = (solver.run(star, make(asked), LV08) / unit for make in (ring, leaf_spine_aggregation))
        rows.append([str(hosts), f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.2f}"])
    return head, rows


def comparison() -> Table:
    """The paper's Table 1."""
    ports = "of 16 ports"
    head = ["", "2 layers", f"{ports}, r = 1", "r = 1/8", "3 layers", f"{ports}, r = 1", "r = 1/8"]
    return head, cost.comparison()


def networks() -> Table:
    """Every network of the study: its parts, and their worth."""
    head = ["hosts", "layers", "ports", "r", "leaves", "pods' upper", "top", "switches", "2x2 equivalents", "a host"]
    rows = [
        [
            f"{row['hosts']:,}",
            str(row["layers"]),
            str(row["ports"]),
            ratio_name(float(str(row["ratio"]))),
            str(row["leaves"]),
            str(row["middles"]),
            str(row["tops"]),
            str(row["switches"]),
            f"{row['equivalents']:,}",
            f"{row['equivalents_per_host']:.1f}",
        ]
        for row in cost.table()
    ]
    return head, rows


def agreement(pairs: Sequence[Pair]) -> Table:
    """How far the NumPy engine's answers are from SimGrid's, by method."""
    by_method: dict[str, list[float]] = {}
    for pair in pairs:
        by_method.setdefault(pair.cell.method, []).append(pair.error())
    return ["method", "exchanges", "largest relative difference"], [
        [method, str(len(errors)), f"{max(errors):.1e}"] for method, errors in by_method.items()
    ]


def emulated(rows: Sequence[dict[str, Any]]) -> Table:
    """The emulated star, compared with the simulated one."""
    head = ["hosts", "method", "emulated [ms]", "spread", "simulated [ms]", "emulated / simulated"]
    return head, [
        [
            str(row["workers"]),
            row["method"],
            f"{1e3 * row['emulated_s']:.1f}",
            f"{1e3 * row['emulated_least_s']:.1f} to {1e3 * row['emulated_most_s']:.1f}",
            f"{1e3 * row['simulated_s']:.1f}",
            f"{row['emulated_s'] / row['simulated_s']:.2f}",
        ]
        for row in rows
    ]


def scaled(rows: Sequence[dict[str, Any]]) -> Table:
    """The simulator's own time and memory."""
    head = ["hosts", "method", "seconds", "peak memory [MB]", "of which libraries"]
    return head, [
        [
            f"{row['hosts']:,} ({row['layers']} layers)", row["method"], f"{row['engine_s']:.2f}",
            f"{row['memory_mb']:.0f}", f"{row['of_it_libraries_mb']:.0f}",
        ]
        for row in rows
    ]  # fmt: skip


def on_clos(rows: Sequence[dict[str, Any]]) -> Table:
    """The emulated Clos network, compared with the simulated one."""
    head = ["r", "method", "simulated [s]", "emulated [s]", "spread", "emulated / simulated",
            "longest wait of a host for a processor", "processors idle, least"]  # fmt: skip
    return head, [
        [
            ratio_name(row["ratio"]), title(row), f"{row['simulated_s']:.2f}", f"{row['emulated_s']:.2f}",
            f"{min(row['samples_s']):.2f} to {max(row['samples_s']):.2f}",
            f"{row['emulated_s'] / row['simulated_s']:.2f}", f"{row['waited_s']:.2f} s", f"{row['idle']:.0%}",
        ]
        for row in rows
    ]  # fmt: skip


def on_racks(rows: Sequence[dict[str, Any]]) -> Table:
    """Emulated racks, compared with the simulated network."""
    head = ["racks", "hosts", "r", "method", "simulated", "emulated", "spread", "emulated / simulated"]
    return head, [
        [
            str(row["racks"]), str(row["hosts"]), ratio_name(row["ratio"]), row["method"], _ms(row["simulated_s"]),
            _ms(row["emulated_s"]), f"{_ms(min(row['samples_s']))} to {_ms(max(row['samples_s']))}",
            f"{row['emulated_s'] / row['simulated_s']:.2f}",
        ]
        for row in sorted(rows, key=lambda row: (row["racks"], -row["ratio"]))
    ]  # fmt: skip


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"
