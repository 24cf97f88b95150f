"""The emulated Clos network: its hosts' flows add up, in memory and over real links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serene.experiments.network_study.emulated.hosts import gradient
from serene.experiments.network_study.emulated.plan import EMULATED, Emulated
from serene.experiments.shared import machine
from serene.experiments.shared.measurements import BadRows, complete, read

OVER_TCP = EMULATED[:-1]


@pytest.mark.parametrize("method", OVER_TCP)
@pytest.mark.parametrize("values", [1000, 1001])
def test_emulated_flows_leave_every_worker_with_the_sum(method: str, values: int) -> None:
    """The flows are played in memory, a step at a time, on whole numbers."""
    emulated = Emulated(method, 0.25, 4.0, values)
    flows = emulated.flows()
    assert flows is not None
    workers = emulated.workers
    have = {
        host: gradient(host, values) if host in workers else np.zeros(values, np.float32)
        for host in range(emulated.network.hosts)
    }
    total = np.sum([gradient(worker, values) for worker in workers], axis=0)
    for step in flows:
        before = {host: vector.copy() for host, vector in have.items()}
        for flow in step:
            part = slice(flow.first, flow.first + flow.count)
            sent = before[flow.source][part]
            have[flow.target][part] = sent if flow.whole else have[flow.target][part] + sent
    assert len(workers) == (28 if "servers" in method else 32)
    for worker in workers:
        assert np.array_equal(have[worker], total)


def test_simulated_clos_times_match_closed_form() -> None:
    """In units of the payload's time over a link: flat 3 + 2 / r, layered 6 one way and 2 both ways, servers 14."""
    unit = 4 * 125_000 * 8 / 4e6 * 1514 / 1448
    back = 1 + 66 / (2 * 1514)
    for ratio in (1.0, 0.25):
        times = {method: Emulated(method, ratio, 4.0, 125_000).simulated_s() / unit for method in OVER_TCP}
        assert times["flat-butterfly"] == pytest.approx((3 + 2 / ratio) * back)
        assert times["layered-butterfly"] == pytest.approx(6 + 2 * back)
        assert times["servers-distributed"] == pytest.approx(14, rel=0.01)
    ours = Emulated("leaf-spine-aggregation", 1.0, 4.0, 125_000).simulated_s()
    assert ours == pytest.approx(500_000 * 1362 / 1280 * 8 / 4e6, rel=0.02)


def test_simulated_rack_times_match_closed_form() -> None:
    """Aggregating leaves need no more of an uplink than of a link; a root alone needs a whole rack's."""
    racks = pytest.importorskip("serene.experiments.network_study.emulated.racks", exc_type=ImportError)
    unit = racks.VALUES * 4 * 1362 / 1280 * 8 / (racks.LINK_MBIT * 1e6)
    combined, alone, ring = racks.METHODS
    cases = racks.cases()
    assert len({case.racks for case in cases}) >= 3 and {case.ratio for case in cases} == {1.0, 0.25}
    for case in cases:
        times = case.simulated_s() / unit
        if case.method == combined:
            assert times == pytest.approx(1, rel=0.03)
        elif case.method == alone:
            assert times == pytest.approx(1 / case.ratio, rel=0.03)
        else:
            hosts = case.racks * racks.HOSTS
            assert case.method == ring
            assert times == pytest.approx(2 * (hosts - 1) / hosts, rel=0.05)
        assert case.question.uplink_mbit == case.ratio * racks.HOSTS * racks.LINK_MBIT


def test_emulated_cases_already_measured_are_not_rerun(tmp_path: Path) -> None:
    path, asked = tmp_path / "clos" / "rows.json", [Emulated("ring", ratio, 4.0, 1000) for ratio in (1.0, 0.25)]
    measured: list[Emulated] = []

    def measure(case: Emulated) -> dict[str, Any]:
        measured.append(case)
        return {"emulated_s": case.ratio}

    assert read(path) == []
    complete(path, asked[:1], measure, lambda case: None)
    rows = complete(path, asked, measure, lambda case: None)
    assert measured == asked and read(path) == rows
    assert [(row["ratio"], row["emulated_s"]) for row in rows] == [(1.0, 1.0), (0.25, 0.25)]
    assert rows[0]["conditions"]["machine"] == machine.here()
    for wrong in ("[", "{}", "5", "[1]"):
        path.write_text(wrong)
        with pytest.raises(BadRows, match=r"rows\.json: .*; remove the file"):
            read(path)
