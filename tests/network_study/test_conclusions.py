"""The paper's conclusions: verdicts follow the results, whatever they are, and its Table 1 and Figure 6 are counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serene.experiments.network_study import cost, drawings
from serene.experiments.network_study.cells import ExchangeCell, NetworkCell
from serene.experiments.network_study.conclusions import Conclusion, Conclusions
from serene.experiments.network_study.flows.clos import RATIOS, SIZES, Clos
from serene.experiments.network_study.grid import GRIDS

FLAT, LAYERED = "flat-butterfly", "layered-butterfly"


def as_the_paper_has_it(cell: ExchangeCell) -> float:
    """Made-up seconds under which all that it says holds."""
    thin = 1 / cell.network.ratio
    times = {
        "servers-packed": 60 * thin, "servers-distributed": 50.0, "servers-fixed-places": 80.0,
        FLAT: 10 + 2 * (thin - 1), f"{FLAT}-fewer-workers": 10 + 2 * (thin - 1),
        LAYERED: 10.5, f"{LAYERED}-fewer-workers": 10.5,
    }  # fmt: skip
    return times[cell.method] / cell.network.bandwidth_gb


def concluded(seconds: Callable[[ExchangeCell], float]) -> Conclusions:
    return Conclusions(seconds, GRIDS["quick"])


def changed(method: str, factor: float, **where: float) -> Callable[[ExchangeCell], float]:
    """The same, but for one method on some networks."""

    def seconds(cell: ExchangeCell) -> float:
        there = all(getattr(cell.network, name) == value for name, value in where.items())
        return as_the_paper_has_it(cell) * (factor if cell.method == method and there else 1)

    return seconds


# Each conclusion, and a result that speaks against it on one network.
AGAINST: list[tuple[Callable[[Conclusions], Conclusion], Callable[[ExchangeCell], float], str]] = [
    (Conclusions.bisection, changed(LAYERED, 1.03, ratio=0.125, hosts=512), "512 hosts, 2 layers: servers-packed x8"),
    (Conclusions.speed, changed(FLAT, 0.9, bandwidth_gb=1.0, hosts=1024), "1,024 hosts, 3 layers, flat-butterfly: "),
    (Conclusions.servers, changed("servers-distributed", 0.2, hosts=2048, ratio=1.0), "2,048 hosts, 2 layers"),
    (Conclusions.layered, changed(LAYERED, 2.0, hosts=256, ratio=0.5), "256 hosts, 3 layers: r = 1/2 x1.75"),
    (Conclusions.fewer_workers, changed(f"{FLAT}-fewer-workers", 1.1, hosts=128), "flat-butterfly, 128 hosts"),
    (Conclusions.round_robin, changed("servers-fixed-places", 0.5, hosts=128), "128 hosts, 2 layers: r = 1 x0.80"),
    (Conclusions.slightly, changed(LAYERED, 1.4, hosts=256), "256 hosts, 3 layers: r = 1 x1.47"),
    (Conclusions.servers, changed(LAYERED, 6.0, hosts=512), "512 hosts, 2 layers, servers-packed against layered-"),
    (Conclusions.servers, changed("servers-distributed", 0.225, hosts=2048, ratio=1.0), "2,048 hosts, 2 layers, "),
    (Conclusions.layered, changed(LAYERED, 0.9, hosts=128, ratio=1.0), "128 hosts, 2 layers: r = 1 x0.9"),
    (Conclusions.fewer_workers, changed(f"{FLAT}-fewer-workers", 0.9, hosts=128), "flat-butterfly, 128 hosts"),
    (Conclusions.slightly, changed(LAYERED, 0.9, hosts=256, ratio=1.0), "256 hosts, 3 layers: r = 1 x0.9"),
    (Conclusions.in_general, changed(FLAT, 5.1, hosts=1024, ratio=1.0), "1,024 hosts, 3 layers, servers-distributed "),
    (Conclusions.packed, changed("servers-packed", 0.13, hosts=128, ratio=0.125), "128 hosts, 2 layers: x1.04"),
    (Conclusions.distributed, changed("servers-distributed", 1.2, hosts=1024, ratio=0.125), "1,024 hosts, 3 layers:"),
    (Conclusions.flat, changed(FLAT, 0.4, hosts=512, ratio=0.125), "512 hosts, 2 layers: x0.96"),
    (
        Conclusions.consistent, changed("servers-packed", 0.5, hosts=128, ratio=1.0),
        "128 hosts, 2 layers: r = 1 servers-packed ahead of servers-distributed",
    ),
    (Conclusions.trend, changed("servers-distributed", 1.2, hosts=2048, ratio=0.125), "servers-distributed: x1.20"),
    (Conclusions.investment, changed(LAYERED, 1.03, hosts=256, ratio=0.125), "256 hosts, 3 layers: 18% saved, x1.03"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "seconds", "where"), AGAINST, ids=lambda given: getattr(given, "__name__", ""))
def test_a_verdict_follows_the_results(
    ask: Callable[[Conclusions], Conclusion], seconds: Callable[[ExchangeCell], float], where: str
) -> None:
    found = ask(concluded(as_the_paper_has_it))
    assert (found.verdict, found.failing()) == ("holds", [])
    turned = ask(concluded(seconds))
    assert turned.verdict.startswith("holds in ")
    assert turned.failing()[0].startswith(where)
    assert all(line.partition(",")[0] == turned.failing()[0].partition(",")[0] for line in turned.failing())


def test_a_conclusion_may_fail_everywhere() -> None:
    found = concluded(lambda cell: as_the_paper_has_it(cell) * cell.network.bandwidth_gb).speed()
    assert found.verdict == "fails"
    assert len(found.cases) == len(GRIDS["quick"].speeds())


def test_quotes_are_the_four_of_the_paper() -> None:
    quotes = [conclusion.quote for conclusion in concluded(as_the_paper_has_it).all()]
    assert quotes == [
        "Bisection ratio affects some of the parameter exchange methods, but cluster aware direct exchange method does "
        "not get affected",
        "Network speed linearly affect the parameter exchange speed",
        "Parameter server based methods are substantially slower than the direct exchange methods",
        "Cluster aware direct exchange method (layered butterfly) outperforms naive exchange method (flat butterfly), "
        "except for the case with full-bisection bandwidth",
    ]
    page = Path("docs/network-study.md").read_text()
    assert all(f'"{quote}"' in page for quote in quotes)


def test_one_that_nothing_decides_does_not_hold() -> None:
    assert Conclusion("quote", "asked", ()).verdict == "not asked"


def test_a_tie_is_not_faster() -> None:
    cases = concluded(lambda cell: 1.0).in_general().cases
    assert not any(case.holds for case in cases)


def test_the_layered_butterflys_steps_are_counted() -> None:
    found = concluded(as_the_paper_has_it).more_steps()
    assert found.verdict == "holds"
    # log2 n + log2 m + log2 n steps, of leaves of n hosts and m leaves.
    assert [case.found for case in found.cases][:2] == ["10 and 7 steps", "13 and 9 steps"]


def test_three_layers_do_not_need_less_below_the_break_even() -> None:
    """43 nodes at r = 1, 68, 91 and 107 at 1/8."""
    failing = concluded(as_the_paper_has_it).three_layers().failing()
    assert [(line.partition(":")[0], line.count("r = ")) for line in failing] == [
        ("16 hosts", 4), ("32 hosts", 4), ("64 hosts", 3),
    ]  # fmt: skip


def test_every_statement_has_its_own_quote() -> None:
    conclusions = concluded(as_the_paper_has_it)
    quotes = [each.quote for each in (*conclusions.all(), *conclusions.others())]
    assert len(set(quotes)) == len(quotes) == 16


def test_speeds_are_compared_at_both_latencies() -> None:
    assert {slow.network.latency_us for _, slow in GRIDS["quick"].speeds()} == {0.2, 1.0}


def test_figure_9_is_asked() -> None:
    slow = {cell.network for _, cell in GRIDS["quick"].speeds() if cell.network.hosts == 1024}
    assert slow == {NetworkCell(3, 1024, ratio, bandwidth_gb=1.0) for ratio in RATIOS}


@pytest.mark.parametrize("ratio", RATIOS)
def test_three_layers_need_less_from_the_break_even_on(ratio: float) -> None:
    nodes = cost.break_even(ratio)
    assert cost.worth(2, nodes, ratio) == pytest.approx(cost.worth(3, nodes, ratio))
    assert cost.worth(3, 2 * nodes, ratio) < cost.worth(2, 2 * nodes, ratio)
    for network in (Clos(2, 16, 16, ratio), Clos(3, 16, 16, ratio)):
        assert cost.worth(network.layers, network.hosts, ratio) == pytest.approx(network.equivalents)


def test_table_1_counts_what_its_letters_say() -> None:
    k = 16
    rows = {row[0]: row[1:] for row in cost.comparison()}
    for layers, first in ((2, 0), (3, 3)):
        for ratio, at in ((1.0, first + 1), (0.125, first + 2)):
            assert rows["hosts"][at] == f"{k**2 // 2 if layers == 2 else k**3 // 4:,}"
            assert float(rows["switches"][at].replace(",", "")) == cost.switches(layers, k, ratio)
            parts = ("edge switches", "aggregation switches", "root switches")
            counts = [int(rows[part][at].replace(",", "") or 0) for part in parts]
            assert sum(counts) == cost.switches(layers, k, ratio)


def test_servers_are_drawn_where_they_are() -> None:
    assert drawings.servers_of(drawings.PLACED, "servers-packed").tolist() == [0, 1, 2, 3]
    assert drawings.servers_of(drawings.PLACED, "servers-distributed").tolist() == [0, 9, 18, 27]
    assert {size for _, size in SIZES} >= {2048}
