"""The first sentences of the report, which answer how much network training needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serene.experiments.network_study.findings import Findings
from serene.experiments.network_study.flows.clos import SIZES, Clos
from serene.experiments.network_study.methods import MAIN, METHODS

THIN = 0.125  # the bisection ratio of a thin network


def _between(numbers: Sequence[float], form: str) -> str:
    low, high = (format(number, form) for number in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def sentences(found: Findings, on_clos: Sequence[dict[str, Any]]) -> list[str]:
    """The sentences. on_clos: rows that were measured on the emulated Clos network; empty if none were."""

    def growth(method: str) -> list[float]:
        return [found.units(*size, THIN, method) / found.units(*size, 1.0, method) for size in SIZES]

    hosts = [method for method in MAIN if not METHODS[method].in_network]
    networks = [[Clos.of_size(size, ratio, layers=layers) for ratio in (THIN, 1.0)] for layers, size in SIZES]
    saved = [1 - thin.equivalents / whole.equivalents for thin, whole in networks]
    ours = "leaf-spine-aggregation"
    faster = [
        min(found.units(*size, THIN, method) for method in hosts) / found.units(*size, THIN, ours) for size in SIZES
    ]
    said = [
        f"Little of its upper layers, if hosts exchange gradients with the network in mind: with an eighth of them "
        f"the layered butterfly takes {_between(growth('layered-butterfly'), '.2f')} times as long as with all, on "
        f"networks of 128 to 2,048 hosts. That saves {_between(saved, '.0%')} of the switches' worth.",
        f"Methods that ignore the network pay for a thin one: with an eighth, the flat butterfly takes "
        f"{_between(growth('flat-butterfly'), '.1f')} times as long, and servers packed together "
        f"{_between(growth('servers-packed'), '.1f')} times.",
        f"Switches that add up need none of the rest either ({_between(growth(ours), '.2f')} times), and are "
        f"{_between(faster, '.1f')} times as fast on the thin network as the best that hosts can do alone.",
    ]
    if on_clos:
        ratios = [
            row["emulated_s"] / row["simulated_s"]
            for row in on_clos
            if not (row.get("barrier") or row.get("small_first"))
        ]
        hosts_there = on_clos[0]["ports"] // 2 * on_clos[0]["leaves"]
        said.append(
            f"An emulated network of {hosts_there} hosts, with real bytes over TCP and through our P4 programs, takes "
            f"{_between(ratios, '.2f')} times as long as the simulation of the same one says."
        )
    return said
