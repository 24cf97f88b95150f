"""The paper's conclusions: verdicts follow the results, and its Table 1 and Figure 6 are recomputed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serene.experiments.network_study import cost, drawings
from serene.experiments.network_study.cells import ExchangeCell, NetworkCell
from serene.experiments.network_study.conclusions import RULES, Case, Times
from serene.experiments.network_study.flows.clos import RATIOS, SIZES, Clos
from serene.experiments.network_study.grid import GRIDS

FLAT, LAYERED = "flat-butterfly", "layered-butterfly"


def as_the_paper_has_it(cell: ExchangeCell) -> float:
    """Returns made-up seconds under which all of the paper's conclusions hold."""
    thin = 1 / cell.network.ratio
    times = {
        "servers-packed": 60 * thin, "servers-distributed": 50.0, "servers-fixed-places": 80.0,
        FLAT: 10 + 2 * (thin - 1), f"{FLAT}-fewer-workers": 10 + 2 * (thin - 1),
        LAYERED: 10.5, f"{LAYERED}-fewer-workers": 10.5,
    }  # fmt: skip
    return times[cell.method] / cell.network.bandwidth_gb


Seconds = Callable[[ExchangeCell], float]


def concluded(quote: str, seconds: Seconds = as_the_paper_has_it) -> list[Case]:
    """Returns the cases of the conclusion whose quote contains these words."""
    (rule,) = (rule for rule in RULES if quote in rule.quote)
    return [*rule.cases(Times(seconds, GRIDS["quick"]))]


def failing(cases: list[Case]) -> list[str]:
    return [f"{case.group}: {case.at} {case.found}" for case in cases if not case.holds]


def changed(method: str, factor: float, **where: float) -> Seconds:
    """The same, but for one method on some networks."""

    def seconds(cell: ExchangeCell) -> float:
        there = all(getattr(cell.network, name) == value for name, value in where.items())
        return as_the_paper_has_it(cell) * (factor if cell.method == method and there else 1)

    return seconds


# Each conclusion, and a result that speaks against it on one network.
AGAINST: list[tuple[str, Seconds, str]] = [
    ("Bisection ratio", changed(LAYERED, 1.03, ratio=0.125, hosts=512), "512 hosts, 2 layers: servers-packed x8"),
    ("Network speed", changed(FLAT, 0.9, bandwidth_gb=1.0, hosts=1024), "1,024 hosts, 3 layers, flat-butterfly: "),
    ("substantially slower", changed("servers-distributed", 0.2, hosts=2048, ratio=1.0), "2,048 hosts, 2 layers"),
    ("outperforms naive", changed(LAYERED, 2.0, hosts=256, ratio=0.5), "256 hosts, 3 layers: r = 1/2 x1.75"),
    ("reduces n nodes", changed(f"{FLAT}-fewer-workers", 1.1, hosts=128), "flat-butterfly, 128 hosts"),
    ("round-robin", changed("servers-fixed-places", 0.5, hosts=128), "128 hosts, 2 layers: r = 1 x0.80"),
    ("slightly faster", changed(LAYERED, 1.4, hosts=256), "256 hosts, 3 layers: r = 1 x1.47"),
    ("substantially slower", changed(LAYERED, 6.0, hosts=512), "512 hosts, 2 layers, servers-packed against layered-"),
    ("substantially slower", changed("servers-distributed", 0.225, hosts=2048, ratio=1.0), "2,048 hosts, 2 layers, "),
    ("outperforms naive", changed(LAYERED, 0.9, hosts=128, ratio=1.0), "128 hosts, 2 layers: r = 1 x0.9"),
    ("reduces n nodes", changed(f"{FLAT}-fewer-workers", 0.9, hosts=128), "flat-butterfly, 128 hosts"),
    ("slightly faster", changed(LAYERED, 0.9, hosts=256, ratio=1.0), "256 hosts, 3 layers: r = 1 x0.9"),
    ("in general", changed(FLAT, 5.1, hosts=1024, ratio=1.0), "1,024 hosts, 3 layers, servers-distributed "),
    ("packed placement", changed("servers-packed", 0.13, hosts=128, ratio=0.125), "128 hosts, 2 layers: x1.04"),
    ("distributed placement", changed("servers-distributed", 1.2, hosts=1024, ratio=0.125), "1,024 hosts, 3 layers:"),
    ("flat butterfly method tends", changed(FLAT, 0.4, hosts=512, ratio=0.125), "512 hosts, 2 layers: x0.96"),
    (
        "quite consistent", changed("servers-packed", 0.5, hosts=128, ratio=1.0),
        "128 hosts, 2 layers: r = 1 servers-packed ahead of servers-distributed",
    ),
    ("same trend", changed("servers-distributed", 1.2, hosts=2048, ratio=0.125), "servers-distributed: x1.20"),
    ("the investment", changed(LAYERED, 1.03, hosts=256, ratio=0.125), "256 hosts, 3 layers: 18% saved, x1.03"),
]  # fmt: skip


@pytest.mark.parametrize(("quote", "seconds", "where"), AGAINST)
def test_verdict_follows_the_results(quote: str, seconds: Seconds, where: str) -> None:
    assert not failing(concluded(quote))
    turned = concluded(quote, seconds)
    lines = failing(turned)
    assert 0 < len(lines) < len(turned)
    assert lines[0].replace(":  ", ": ").startswith(where)
    assert all(line.partition(",")[0] == lines[0].partition(",")[0] for line in lines)


def test_conclusion_may_fail_everywhere() -> None:
    found = concluded("Network speed", lambda cell: as_the_paper_has_it(cell) * cell.network.bandwidth_gb)
    assert len(failing(found)) == len(found) == len(GRIDS["quick"].speeds())


def test_page_quotes_the_papers_four_conclusions() -> None:
    page = Path("docs/network-study.md").read_text()
    main = [rule.quote for rule in RULES if rule.main]
    assert len(main) == 4 and all(f'"{quote}"' in page for quote in main)
    assert len({rule.quote for rule in RULES}) == 16


def test_equal_times_do_not_count_as_faster() -> None:
    assert not any(case.holds for case in concluded("in general", lambda cell: 1.0))


def test_layered_butterfly_has_the_papers_number_of_steps() -> None:
    found = concluded("log2n more steps")
    assert not failing(found)
    # log2 n + log2 m + log2 n steps, of leaves of n hosts and m leaves.
    assert [case.found for case in found][:2] == ["10 and 7 steps", "13 and 9 steps"]


def test_three_layers_need_no_less_below_the_break_even() -> None:
    """The break-even is at 43 nodes with r = 1, and at 68, 91 and 107 down to r = 1/8."""
    groups = [case.group for case in concluded("3-layered") if not case.holds]
    assert [(group, groups.count(group)) for group in dict.fromkeys(groups)] == [
        ("16 hosts", 4), ("32 hosts", 4), ("64 hosts", 3),
    ]  # fmt: skip


def test_grid_includes_figure_9_and_both_latencies() -> None:
    slow = [cell.network for _, cell in GRIDS["quick"].speeds()]
    assert {network for network in slow if network.hosts == 1024} == {
        NetworkCell(3, 1024, ratio, bandwidth_gb=1.0) for ratio in RATIOS
    }
    assert {network.latency_us for network in slow} == {0.2, 1.0}


@pytest.mark.parametrize("ratio", RATIOS)
def test_three_layers_need_less_above_the_break_even(ratio: float) -> None:
    nodes = cost.break_even(ratio)
    assert cost.worth(2, nodes, ratio) == pytest.approx(cost.worth(3, nodes, ratio))
    assert cost.worth(3, 2 * nodes, ratio) < cost.worth(2, 2 * nodes, ratio)
    for network in (Clos(2, 16, 16, ratio), Clos(3, 16, 16, ratio)):
        assert cost.worth(network.layers, network.hosts, ratio) == pytest.approx(network.equivalents)


def test_table_1_counts_match_its_formulas() -> None:
    k = 16
    rows = {row[0]: row[1:] for row in cost.comparison()}
    for layers, first in ((2, 0), (3, 3)):
        for ratio, at in ((1.0, first + 1), (0.125, first + 2)):
            assert rows["hosts"][at] == f"{k**2 // 2 if layers == 2 else k**3 // 4:,}"
            assert float(rows["switches"][at].replace(",", "")) == cost.switches(layers, k, ratio)
            parts = ("edge switches", "aggregation switches", "root switches")
            counts = [int(rows[part][at].replace(",", "") or 0) for part in parts]
            assert sum(counts) == cost.switches(layers, k, ratio)


def test_drawing_places_servers_as_simulated() -> None:
    assert drawings.servers_of(drawings.PLACED, "servers-packed").tolist() == [0, 1, 2, 3]
    assert drawings.servers_of(drawings.PLACED, "servers-distributed").tolist() == [0, 9, 18, 27]
    assert {size for _, size in SIZES} >= {2048}
