"""The paper's Figures 1 to 5, of methods and networks, drawn from the very schedules and networks that are simulated.

Functions with a ``path`` write an image there and return it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from serene.experiments.network_study.cells import our_switch
from serene.experiments.network_study.exchange import Exchange
from serene.experiments.network_study.flows.clos import Clos, Ints
from serene.experiments.network_study.flows.solver import Step
from serene.experiments.network_study.grid import ratio_name
from serene.experiments.network_study.methods import METHODS
from serene.experiments.shared.style import panels, save
from serene.palette import BLACK, BLUE, COLOURS, GREY, SKY, VERMILION

STAR = (Clos(2, 16, 1), Clos(2, 32, 1))  # 8 hosts, one of them a server; 16 with two
EIGHT = Clos(2, 8, 2)  # hosts, in two leaves
PLACED = Clos(2, 16, 4)  # leaves of 8 hosts, a server for each
FIGURE_4 = (Clos(2, 8, 8), Clos(2, 8, 8, 0.5))
FIGURE_5 = (Clos(3, 4, 4), Clos(3, 4, 4, 0.5))
LAYERS = {2: ("hosts", "leaves", "roots"), 3: ("hosts", "edge", "aggregation", "roots")}


def steps(network: Clos, method: str) -> list[Step]:
    """A method's schedule on a network, for a gradient of one byte."""
    return list(METHODS[method].steps(Exchange(network, 1.0, our_switch())))


def servers_of(network: Clos, method: str) -> Ints:
    """The hosts that are parameter servers: those that are pushed to."""
    found = steps(network, method)
    return np.unique(np.concatenate([step.target for step in found[: len(found) // 2]]))


def _empty(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.axis("off")


def servers(path: Path) -> Path:
    """Figure 1: one parameter server, and two that divide the parameters."""
    figure, axes = panels(1, len(STAR), width=5.0, height=2.4)
    for each, network in zip(axes[0], STAR, strict=True):
        serving = servers_of(network, "servers-distributed")
        workers = np.setdiff1d(np.arange(network.hosts), serving)
        _empty(each, f"{serving.size} server{'s' if serving.size > 1 else ''}, {workers.size} workers")
        place = {int(host): ((at + 0.5) / workers.size, 0.0) for at, host in enumerate(workers)}
        place |= {int(host): ((at + 0.5) / serving.size, 1.0) for at, host in enumerate(serving)}
        for step in steps(network, "servers-distributed"):
            for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
                server = source if source in serving else target
                colour = COLOURS[serving.tolist().index(server)]
                each.annotate(
                    "", place[target], place[source],
                    arrowprops={"arrowstyle": "->", "color": colour, "lw": 0.8, "shrinkA": 7, "shrinkB": 7},
                )  # fmt: skip
        each.scatter(*zip(*(place[host] for host in workers.tolist()), strict=True), s=90, color=SKY, zorder=3)
        for at, host in enumerate(serving.tolist()):
            each.scatter(*place[host], s=170, color=COLOURS[at], marker="s", zorder=3)
        each.text(0, -0.2, "workers", fontsize=8)
        whole = "a parameter server" if serving.size == 1 else "parameter servers, each with a part of the parameters"
        each.text(0, 1.15, whole, fontsize=8)
        each.set(xlim=(0, 1), ylim=(-0.25, 1.3))
    return save(figure, path)


def butterflies(path: Path) -> Path:
    """Figure 2: which host sends to which in each step."""
    figure, axes = panels(1, 2, width=5.0, height=3.6)
    for each, method in zip(axes[0], ("flat-butterfly", "layered-butterfly"), strict=True):
        found = steps(EIGHT, method)
        _empty(each, f"{method}: {len(found)} steps")
        hosts = np.arange(EIGHT.hosts)
        for leaf in range(EIGHT.leaves):
            left = leaf * EIGHT.half - 0.45
            each.axvspan(left, left + EIGHT.half - 0.1, color=GREY, alpha=0.12)
            each.text(left + EIGHT.half / 2, -0.45, f"sub-cluster {leaf + 1}", fontsize=8, ha="center")
        for time, step in enumerate(found):
            for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
                inside = source // EIGHT.half == target // EIGHT.half
                each.annotate(
                    "", (target, time + 1), (source, time),
                    arrowprops={"arrowstyle": "->", "color": BLUE if inside else VERMILION, "lw": 1, "shrinkA": 3,
                                "shrinkB": 3},
                )  # fmt: skip
        for time in range(len(found) + 1):
            each.scatter(hosts, np.full(hosts.size, time), s=22, color=BLACK, zorder=3)
            if time < len(found):
                each.text(-0.75, time + 0.5, f"{time + 1}", fontsize=8, ha="right", va="center", color=GREY)
        each.set(xlim=(-1, EIGHT.hosts - 0.4), ylim=(len(found) + 0.3, -0.7))
    return save(figure, path)


def placement(path: Path) -> Path:
    """Figure 3: which hosts are servers, packed and distributed."""
    figure, axes = panels(1, 2, width=5.0, height=1.9)
    for each, method in zip(axes[0], ("servers-packed", "servers-distributed"), strict=True):
        serving = servers_of(PLACED, method)
        _empty(each, f"{method}: {serving.size} of {PLACED.hosts} hosts")
        hosts = np.arange(PLACED.hosts)
        leaf, column = hosts // PLACED.half, hosts % PLACED.half
        for number in range(PLACED.leaves):
            each.plot([-0.4, PLACED.half - 0.6], [number, number], color=GREY, linewidth=9, alpha=0.2)
            each.text(-0.7, number, f"sub-cluster {number + 1}", fontsize=8, ha="right", va="center")
        chosen = np.isin(hosts, serving)
        each.scatter(column[~chosen], leaf[~chosen], s=60, color=SKY, zorder=3, label="worker")
        each.scatter(column[chosen], leaf[chosen], s=80, color=VERMILION, marker="s", zorder=3, label="server")
        each.set(xlim=(-2.6, PLACED.half - 0.4), ylim=(PLACED.leaves - 0.4, -0.6))
    axes[0][1].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return save(figure, path)


def network(networks: tuple[Clos, ...], path: Path) -> Path:
    """Figures 4 and 5: every switch, host and link of a network whole, and thinned."""
    figure, axes = panels(1, len(networks), width=5.4, height=2.8)
    for each, shown in zip(axes[0], networks, strict=True):
        _empty(
            each,
            f"r = {ratio_name(shown.ratio)}: {shown.hosts} hosts, {shown.switches} switches of {shown.ports} ports",
        )
        counts = [shown.hosts, shown.leaves, *([shown.middles] if shown.layers == 3 else []), shown.tops]
        place = np.concatenate(
            [
                np.stack([(np.arange(count) + 0.5) / count, np.full(count, float(layer))], axis=1)
                for layer, count in enumerate(counts)
            ]
        )
        lower, upper = shown.ends()
        for a, b in zip(place[lower], place[upper], strict=True):
            each.plot(*zip(a, b, strict=True), color=GREY, linewidth=0.6, zorder=1)
        first = 0
        for layer, (count, what) in enumerate(zip(counts, LAYERS[shown.layers], strict=True)):
            at = place[first : first + count]
            look = {"s": 20, "color": SKY} if layer == 0 else {"s": 75, "color": COLOURS[layer], "marker": "s"}
            each.scatter(at[:, 0], at[:, 1], zorder=2, **look)
            each.text(-0.02, layer, what, fontsize=8, ha="right", va="center")
            first += count
        if shown.layers == 3:
            for pod in range(shown.groups):
                each.axvspan(pod / shown.groups + 0.01, (pod + 1) / shown.groups - 0.01, ymin=0.02, ymax=0.75,
                             color=GREY, alpha=0.1)  # fmt: skip
        each.set(xlim=(-0.16, 1.0), ylim=(-0.3, len(counts) - 0.7))
    return save(figure, path)
