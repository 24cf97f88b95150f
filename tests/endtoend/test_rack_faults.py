"""Whole runs over racks with bad links and uplinks, and with every kind of process killed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runs import MODEL, SLOTS, Run, finished

pytestmark = pytest.mark.mininet

WORKERS, KILLED = 4, 1
PATIENCE_S = 400.0  # three switches and a controller come up, and most of them twice, on busy processors
BAD_LINKS = """
seed = 5

[[packets]]
racks = [0, 1]
kinds = ["UP", "DOWN", "GRANT"]
loss = 0.02
duplication = 0.02
reordering = 0.02

[[packets]]
loss = 0.01
"""
EVENTS = [  # the last one is what training goes on without
    ("restart worker", 4, f"worker = {KILLED}"),
    ("restart leaf", 10, "rack = 1"),
    ("restart root", 18, ""),
    ("restart controller", 24, ""),
]


def train(target: str, folder: Path, faults: str, steps: int, compute_ms: int) -> Run:
    (folder / "faults.toml").write_text(faults)
    return finished(
        folder, "--target", target, "--workers", WORKERS, "--racks", 2, "--steps", steps, "--compute-ms", compute_ms,
        "--model", MODEL[target], "--faults", folder / "faults.toml", patience_s=PATIENCE_S,
    )  # fmt: skip


def test_run_over_racks_survives_bad_links_and_uplinks(target: str, tmp_path: Path) -> None:
    """The counters of the shims show where the faults happen: at all links of a leaf, including its uplink."""
    steps = 30
    run = train(target, tmp_path, BAD_LINKS, steps, 0)
    summary = run.summary()
    assert summary["contributions_sent"] == summary["contributions_applied"] == WORKERS * steps * SLOTS[target]
    by_leaf = summary["links"].split("; ")
    assert [counts.partition(":")[0] for counts in by_leaf] == ["leaf1", "leaf2"]
    assert all(" 0 lost" not in counts and " 0 repeated" not in counts for counts in by_leaf), "uplinks repeat"
    for worker in range(1, WORKERS):
        np.testing.assert_array_equal(run.parameters(worker), run.parameters(0))


def test_run_over_racks_survives_a_kill_of_each_process(target: str, tmp_path: Path) -> None:
    events = [
        f'[[events]]\niteration = {iteration}\naction = "{action}"\n{further}\n'
        for action, iteration, further in EVENTS
    ]
    last = 60
    run = train(target, tmp_path, "\n".join(events), last, 150)
    summary = run.summary()
    said = [event["event"].partition(" at")[0] for event in summary["events"]]
    assert said == [f"restart worker {KILLED}", "restart leaf of rack 1", "restart root", "restart controller"]
    # Of the last session: what was contributed to the lost ones came back in its first two rounds.
    assert summary["contributions_sent"] == summary["contributions_applied"]
    assert summary["final_accuracy"] > 0.8
    for worker in range(WORKERS):
        steps = [int(row["step"]) for row in run.rows(worker)]
        if worker != KILLED:  # the other one counts anew in its second process
            assert steps == sorted(set(steps)) and steps[-1] == last and len(steps) >= last - 2
        assert run.worker(worker)["sessions_lost"] == 2
        assert run.worker(worker)["iterations_repeated"] == 0, "BSP"
        # The killed worker's own iteration is lost where the switch had only a part of it.
        assert run.worker(worker)["contributions_lost"] == run.worker(0)["contributions_lost"] <= 1
        np.testing.assert_allclose(run.parameters(worker), run.parameters(0), atol=1e-4)
