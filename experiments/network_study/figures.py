"""The study's figures, and the paper's Figures 6 to 10 by our simulations. Functions with a ``path`` write an image
there and return it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter

from serene.experiments.network_study.cells import QUORUM_SHARE, Answers, ExchangeCell, NetworkCell
from serene.experiments.network_study.cost import PORTS
from serene.experiments.network_study.emulated.plan import title
from serene.experiments.network_study.flows.clos import RATIOS, SIZES, Clos
from serene.experiments.network_study.grid import (
    BASE_MS,
    FAST,
    GRADIENTS_MB,
    LINKS,
    LOCK_STEP,
    PAPER,
    STRAGGLERS,
    STRATEGIES,
    TRAINING_RATIO,
    Grid,
    ratio_name,
)
from serene.experiments.network_study.methods import MAIN, METHODS
from serene.experiments.network_study.training import SERVERS, SWITCH
from serene.experiments.shared.measurements import Row
from serene.experiments.shared.style import one_legend, panels, save
from serene.palette import COLOURS, look

BUTTERFLIES = ("flat-butterfly", "layered-butterfly")
SHOWN = (  # by the paper's Figures 7 to 10
    ("7: 2,048 hosts, 2 layers, 4 GB/s", NetworkCell(2, 2048)),
    ("8: 1,024 hosts, 3 layers, 4 GB/s", NetworkCell(3, 1024)),
    ("9: 1,024 hosts, 3 layers, 1 GB/s", NetworkCell(3, 1024, bandwidth_gb=1.0)),
    ("10: a close-up of 8", NetworkCell(3, 1024)),
)  # fmt: skip
TICKS = (1, 2, 5, 10, 20, 50, 100)
BY_SOLVER = "engine: NumPy max-min solver, model LV08"


def _signed(figure: Any, text: str = BY_SOLVER) -> Any:
    figure.suptitle(text, x=0.995, ha="right", fontsize=7, color="#666666")
    return figure


def _line(axes: Any, method: str, x: Any, y: Any) -> None:
    drawn = METHODS[method]
    axes.plot(x, y, marker=drawn.marker, markersize=5, linewidth=1.4, color=drawn.colour, label=method)


def _ratios(axes: Any) -> None:
    axes.set_xticks(range(len(RATIOS)), [ratio_name(ratio) for ratio in RATIOS])
    axes.set_xlabel("bisection ratio r")


def _log_axis(axes: Any) -> None:
    axes.set_yscale("log")
    axes.set_yticks(TICKS, [str(tick) for tick in TICKS])
    axes.yaxis.set_minor_formatter(NullFormatter())  # or some ticks between these would have labels as well, as powers


def _by_network(answers: Answers, methods: tuple[str, ...], path: Path, *, worth: bool) -> Path:
    """Times in units of gradient / bandwidth, with a panel for each network: over the bisection ratio, or over what the
    network is worth."""
    figure, axes = panels(2, 3, width=4.4, height=3.5)
    for each, (layers, hosts) in zip(axes.flat, SIZES, strict=False):
        _log_axis(each)
        each.set_title(f"{hosts} hosts, {layers} layers", fontsize=10)
        each.set_ylabel("exchange [gradient / bandwidth]")
        places = [Clos.of_size(hosts, ratio, layers=layers).equivalents / hosts for ratio in RATIOS]
        for method in methods:
            cells = [ExchangeCell(NetworkCell(layers, hosts, ratio), method) for ratio in RATIOS]
            times = [float(answers[cell]["seconds"]) / cell.unit_s for cell in cells]
            _line(each, method, places if worth else range(len(RATIOS)), times)
        if worth:
            each.set_xlabel("2x2-switch equivalents a host (r = 1/8 ... 1)")
        else:
            _ratios(each)
    last = axes.flat[-1]  # is left over
    last.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    last.legend(handles, labels, loc="center", frameon=False, fontsize=9)
    return save(_signed(figure), path)


def exchange(answers: Answers, path: Path) -> Path:
    """The time of every method over the bisection ratio."""
    return _by_network(answers, MAIN, path, worth=False)


def value(answers: Answers, path: Path) -> Path:
    """The time of the fast methods over what the network is worth, with a point for each bisection ratio."""
    return _by_network(answers, FAST, path, worth=True)


def bandwidth(answers: Answers, grid: Grid, path: Path) -> Path:
    """The same exchanges over links of 1 and 4 GB/s: points on the diagonal have a time proportional to 1 /
    bandwidth."""
    figure, axes = panels(1, len(grid.others), width=4.2, height=3.8)
    speeds = sorted({speed for speed, _ in LINKS})
    for each, (layers, hosts) in zip(axes[0], grid.others, strict=True):
        for method in MAIN:
            drawn = METHODS[method]
            for latency, fill in ((0.2, drawn.colour), (1.0, "none")):
                points = [
                    [
                        1e3
                        * answers[ExchangeCell(NetworkCell(layers, hosts, ratio, speed, latency), method)]["seconds"]
                        for speed in speeds
                    ]
                    for ratio in (1.0, 0.125)
                ]
                each.scatter(
                    [slow / (speeds[1] / speeds[0]) for slow, _ in points], [fast for _, fast in points],
                    marker=drawn.marker, s=34, facecolor=fill, edgecolor=drawn.colour,
                    label=f"{method}" if latency == 0.2 else None,
                )  # fmt: skip
        low, high = each.get_xlim()[0], each.get_xlim()[1]
        ends = np.array([max(low, 10), high])
        each.plot(ends, ends, color="#888888", linewidth=0.8, linestyle="--")
        each.set_xscale("log")
        each.set_yscale("log")
        each.set_title(f"{hosts} hosts, {layers} layers, r = 1 and 1/8", fontsize=10)
        each.set_xlabel(f"a quarter of the time at {speeds[0]:g} GB/s [ms]")
        each.set_ylabel(f"time at {speeds[1]:g} GB/s [ms]")
    one_legend(figure, axes)
    return save(_signed(figure, f"{BY_SOLVER}; hollow: switch latency 1 us, filled: 0.2 us"), path)


def gradients(answers: Answers, path: Path) -> Path:
    """How many times faster aggregation in leaf and spine is than other methods, over the gradient's size."""
    figure, axes = panels(1, 3, width=4.2, height=3.5, sharey=True)
    for each, against in zip(axes[0], ("ring", "hierarchical-ring", "layered-butterfly"), strict=True):
        for number, (layers, hosts) in enumerate(SIZES):
            network = NetworkCell(layers, hosts, 0.25)
            gain = [
                answers[ExchangeCell(network, against, size)]["seconds"]
                / answers[ExchangeCell(network, "leaf-spine-aggregation", size)]["seconds"]
                for size in GRADIENTS_MB
            ]
            each.plot(GRADIENTS_MB, gain, marker="o", color=COLOURS[number], label=f"{hosts} hosts, {layers} layers")
        each.axhline(1, color="#888888", linewidth=0.8, linestyle="--")
        each.set_xscale("log")
        _log_axis(each)
        each.set_title(f"against {against}, r = 1/4", fontsize=10)
        each.set_xlabel("gradient [MB]")
    axes[0][0].set_ylabel("times faster")
    one_legend(figure, axes)
    return save(_signed(figure), path)


def training(answers: Answers, grid: Grid, hosts: int, path: Path) -> Path:
    """Rounds a second under each straggler profile, with a bar for each exchange and strategy. Lines: least to most
    over the seeds."""
    cells = [
        cell
        for cell in grid.trainings()
        if (cell.network.hosts, cell.network.ratio, cell.compute_ms) == (hosts, TRAINING_RATIO, BASE_MS)
    ]
    figure, axes = panels(1, len(STRAGGLERS), width=3.3, height=3.6, sharey=True)
    ways = [(SWITCH, strategy) for strategy in STRATEGIES] + [(SERVERS, strategy) for strategy in STRATEGIES]
    ways += [(how, "bsp") for how in LOCK_STEP]
    for each, straggler in zip(axes[0], STRAGGLERS, strict=True):
        for place, (how, strategy) in enumerate(ways):
            speeds = [
                answers[cell]["rounds_per_s"]
                for cell in cells
                if (cell.how, cell.strategy, cell.straggler) == (how, strategy, straggler)
            ]
            middle = float(np.median(speeds))
            gap = (how != SWITCH) * 0.6 + (how in LOCK_STEP) * 0.6
            each.bar(place + gap, middle, width=0.85, color=look(strategy).colour, label=_name(strategy))
            if len(speeds) > 1:
                each.vlines(place + gap, min(speeds), max(speeds), color="#222222", linewidth=1)
        each.set_title(straggler.partition(":")[0], fontsize=10)
        each.set_xticks([2, 7.6, 12.7], ["switch", "servers", "butterflies,\nrings"], fontsize=8)
        each.grid(axis="x", visible=False)
    axes[0][0].set_ylabel("rounds a second")
    one_legend(figure, axes)
    text = f"{BY_SOLVER}; {hosts} hosts, r = {ratio_name(TRAINING_RATIO)}, 100 MB, 100 ms of computing"
    return save(_signed(figure, text), path)


def _name(strategy: str) -> str:
    return look(strategy).name + (f" ({100 * QUORUM_SHARE:g} %)" if strategy == "quorum" else "")


def scaling(rows: list[Row], path: Path) -> Path:
    """The simulator's own time and memory, over the number of hosts."""
    figure, axes = panels(1, 2, width=4.4, height=3.3)
    for method in MAIN:
        mine = sorted((row for row in rows if row["method"] == method), key=lambda row: row["hosts"])
        for each, what in zip(axes[0], ("engine_s", "memory_mb"), strict=True):
            _line(each, method, [row["hosts"] for row in mine], [row[what] for row in mine])
    for each, text in zip(axes[0], ("seconds", "peak memory of the process [MB]"), strict=True):
        each.set_xscale("log", base=2)
        each.set_xlabel("hosts (256 and 1,024 on 3 layers)")
        each.set_ylabel(text)
        hosts = sorted({row["hosts"] for row in rows})
        each.set_xticks(hosts, [f"{count:,}" for count in hosts])
    axes[0][0].set_yscale("log")
    axes[0][1].set_ylim(0, 1.2 * max(row["memory_mb"] for row in rows))
    one_legend(figure, axes)
    return save(_signed(figure), path)


def emulated(rows: list[Row], by: str, titles: str, text: str, path: Path) -> Path:
    """Exchanges on an emulated network, and in the simulation, with a panel for each value of ``by``. titles: of the
    panels, a format for that value. text: the engines."""
    values = sorted({row[by] for row in rows}, reverse=by == "ratio")
    figure, axes = panels(1, len(values), width=5.2, height=3.0, sharey=True)
    for each, value in zip(axes[0], values, strict=True):
        mine = [row for row in rows if row[by] == value]
        places = np.arange(len(mine))
        colours = [METHODS[row["method"]].colour if row["method"] in METHODS else COLOURS[place]
                   for place, row in enumerate(mine)]  # fmt: skip
        each.bar(places - 0.2, [row["simulated_s"] for row in mine], width=0.38, color=colours, alpha=0.45)
        each.bar(places + 0.2, [row["emulated_s"] for row in mine], width=0.38, color=colours)
        for place, row in zip(places, mine, strict=True):
            each.vlines(place + 0.2, min(row["samples_s"]), max(row["samples_s"]), color="#222222", linewidth=1)
        names = [
            title(row).partition(" after")[0].replace("-", "\n", 1).replace("-aggregation", "\naggregation")
            .replace(", ", ",\n")
            for row in mine
        ]  # fmt: skip
        each.set_xticks(places, names, fontsize=7)
        each.set_title(f"{titles.format(ratio_name(value) if by == 'ratio' else value)}; pale: simulated", fontsize=10)
        each.grid(axis="x", visible=False)
    axes[0][0].set_ylabel("an exchange [s]")
    return save(_signed(figure, f"{text}; NumPy max-min solver, ideal model"), path)


# -- the paper's ---------------------------------------------------------------------------------------------------


def worth(path: Path) -> Path:
    """Figure 6: worth in 2x2 switches over the number of nodes, with a curve for each r, for networks that can be
    built."""
    figure, axes = panels(1, 2, width=5.2, height=3.8)
    whole, share = axes[0]
    for number, ratio in enumerate(RATIOS):
        for layers, style in ((2, "-"), (3, "--")):
            built = [Clos(layers, ports, ports, ratio) for ports in PORTS[layers]]
            nodes = np.array([network.hosts for network in built])
            total = np.array([network.equivalents for network in built])
            drawn: Any = {"marker": "o", "markersize": 4, "color": COLOURS[number]}
            whole.plot(nodes, total, style, label=f"{layers} layers, r = {ratio_name(ratio)}", **drawn)
            share.plot(nodes, total / nodes, style, **drawn)
    whole.set_yscale("log")
    whole.set_ylabel("2x2 switches that it is worth")
    share.set_ylabel("the same for each node")
    share.set_ylim(0, 110)
    for each in (whole, share):
        each.set_xscale("log")
        each.set_xlim(100, 40_000)
        each.set_xlabel("nodes")
    one_legend(figure, axes)
    return save(figure, path)


def exchanges(answers: Answers, path: Path) -> Path:
    """Figures 7 to 10: seconds of one exchange over the bisection ratio."""
    figure, axes = panels(2, 2, width=5.2, height=3.2)
    for each, (name, network) in zip(axes.flat, SHOWN, strict=True):
        for method in PAPER:
            cells = [ExchangeCell(replace(network, ratio=ratio), method) for ratio in RATIOS]
            _line(each, method, range(len(RATIOS)), [float(answers[cell]["seconds"]) for cell in cells])
        _ratios(each)
        each.set_ylim(bottom=0)
        each.set_ylabel("an exchange of 100 MB [s]")
        each.set_title(f"Figure {name}", fontsize=10)
    close = [float(answers[ExchangeCell(SHOWN[3][1], name)]["seconds"]) for name in BUTTERFLIES]
    axes.flat[3].set_ylim(0.9 * min(close), 1.6 * max(close))
    one_legend(figure, axes)
    return save(figure, path)
