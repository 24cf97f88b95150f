"""The paper's Figures 6 to 10, by our simulations. Functions with a ``path`` write an image there and return it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from serene.experiments.network_study.cells import Answers, ExchangeCell, NetworkCell
from serene.experiments.network_study.cost import PORTS_2_LAYERS, PORTS_3_LAYERS
from serene.experiments.network_study.flows.clos import RATIOS, Clos
from serene.experiments.network_study.grid import PAPER, ratio_name
from serene.experiments.network_study.methods import METHODS
from serene.experiments.shared.style import one_legend, panels, save
from serene.palette import COLOURS

BUTTERFLIES = ("flat-butterfly", "layered-butterfly")
Shown = tuple[str, NetworkCell, tuple[str, ...]]
EXCHANGES: tuple[Shown, ...] = (
    ("7: 2,048 hosts, 2 layers, 4 GB/s", NetworkCell(2, 2048), PAPER),
    ("8: 1,024 hosts, 3 layers, 4 GB/s", NetworkCell(3, 1024), PAPER),
    ("9: 1,024 hosts, 3 layers, 1 GB/s", NetworkCell(3, 1024, bandwidth_gb=1.0), PAPER),
    ("10: a close-up of 8", NetworkCell(3, 1024), PAPER),
)


def worth(path: Path) -> Path:
    """Figure 6: worth in 2x2 switches over the number of nodes, with a curve for each r, for networks that can be
    built."""
    figure, axes = panels(1, 2, width=5.2, height=3.8)
    whole, share = axes[0]
    for number, ratio in enumerate(RATIOS):
        for layers, all_ports, style in ((2, PORTS_2_LAYERS, "-"), (3, PORTS_3_LAYERS, "--")):
            built = [Clos(layers, ports, ports, ratio) for ports in all_ports]
            nodes = np.array([network.hosts for network in built])
            total = np.array([network.equivalents for network in built])
            look = {"marker": "o", "markersize": 4, "color": COLOURS[number]}
            whole.plot(nodes, total, style, label=f"{layers} layers, r = {ratio_name(ratio)}", **look)
            share.plot(nodes, total / nodes, style, **look)
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
    for each, shown in zip(axes.flat, EXCHANGES, strict=True):
        _exchange(each, answers, shown)
    close = [_seconds(answers, EXCHANGES[3][1], 1.0, name) for name in BUTTERFLIES]
    axes.flat[3].set_ylim(0.9 * min(close), 1.6 * max(close))
    one_legend(figure, axes)
    return save(figure, path)


def _seconds(answers: Answers, network: NetworkCell, ratio: float, method: str) -> float:
    cell = NetworkCell(network.layers, network.hosts, ratio, network.bandwidth_gb, network.latency_us)
    return float(answers[ExchangeCell(cell, method)]["seconds"])


def _exchange(axes: Any, answers: Answers, shown: Shown) -> None:
    title, network, methods = shown
    places = range(len(RATIOS))
    for method in methods:
        look = METHODS[method]
        times = [_seconds(answers, network, ratio, method) for ratio in RATIOS]
        axes.plot(places, times, marker=look.marker, markersize=5, color=look.colour, label=method)
    axes.set_ylim(bottom=0)
    axes.set_xticks(places, [ratio_name(ratio) for ratio in RATIOS])
    axes.set_xlabel("bisection ratio")
    axes.set_ylabel("an exchange of 100 MB [s]")
    axes.set_title(f"Figure {title}", fontsize=10)
