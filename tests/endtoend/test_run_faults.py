"""Whole runs on each target with a bad network, and with every kind of process killed: every gradient counts once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serene.workers import reference
from serene.workers.training import Recipe
from tests.runs import MODEL, SLOTS, Run, finished
from tests.topologies.conftest import on_bmv2

pytestmark = pytest.mark.mininet

WORKERS, STEPS = 3, 40
FAULTS = """
seed = 7

[[packets]]
workers = [0]
direction = "to_worker"
kinds = ["ANSWER", "RELEASE"]
loss = 0.03

[[packets]]
loss = 0.01
duplication = 0.01
reordering = 0.01

[[events]]
iteration = 3
action = "restart switch"

[[events]]
iteration = 6
action = "pause worker"
worker = 2

[[events]]
iteration = 9
action = "restart controller"
"""  # training continues without the last one, for steps that take seconds


def test_run_survives_bad_links_and_restarts(target: str, tmp_path: Path) -> None:
    (tmp_path / "faults.toml").write_text(FAULTS)
    run = finished(
        tmp_path, "--target", target, "--workers", WORKERS, "--steps", STEPS, "--compute-ms", 100,
        "--model", MODEL[target], "--faults", tmp_path / "faults.toml",
    )  # fmt: skip
    summary = run.summary()
    assert [event["event"].rpartition(" at")[0] for event in summary["events"]] == [
        "restart switch",
        "pause worker 2",
        "restart controller",
    ]
    assert "lost" in summary["links"]
    # Of the last session: what was contributed to the lost one came back in its first two rounds.
    assert summary["contributions_sent"] == summary["contributions_applied"]
    alone = reference.train(Recipe(workers=WORKERS, steps=STEPS, seed=1, model=MODEL[target]))
    for worker in range(WORKERS):
        # Each step once; one whose answer was lost with the session, and which the donor had, is not done again.
        steps = [int(row["step"]) for row in run.rows(worker)]
        assert steps == sorted(set(steps)) and steps[-1] == STEPS and len(steps) >= STEPS - 1
        assert run.worker(worker)["sessions_lost"] == 1
        assert run.worker(worker)["contributions_lost"] == run.worker(worker)["iterations_repeated"] == 0, "BSP"
        np.testing.assert_allclose(run.parameters(worker), alone, atol=1e-4)


# -- over racks ----------------------------------------------------------------------------------------------------


IN_RACKS, KILLED = 4, 1  # workers
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
EVENTS = [
    ("restart worker", 3, f"worker = {KILLED}"),
    ("restart leaf", 8, "rack = 1"),
    ("restart root", 13, ""),
    ("restart controller", 18, ""),  # training continues without it
]


def train(target: str, folder: Path, faults: str, steps: int, compute_ms: int, *options: object) -> Run:
    (folder / "faults.toml").write_text(faults)
    return finished(
        folder, "--target", target, "--workers", IN_RACKS, "--racks", 2, "--steps", steps, "--compute-ms", compute_ms,
        "--model", MODEL[target], "--faults", folder / "faults.toml", *options, patience_s=PATIENCE_S,
    )  # fmt: skip


def test_bsp_over_bad_links_and_uplinks_equals_one_process_to_the_bit(target: str, tmp_path: Path) -> None:
    """The counters of the shims show where the faults happen: at all links of a leaf, including its uplink."""
    steps = 12
    run = train(target, tmp_path, BAD_LINKS, steps, 0, "--seed", 1, "--link-mbit", 100, "--uplink-mbit", 50)
    summary = run.summary()
    assert [summary[name] for name in ("target", "racks", "link_mbit", "uplink_mbit")] == [target, 2, 100, 50]
    assert f"through 2 {target} leaf switches and a root" in run.output
    assert summary["contributions_sent"] == summary["contributions_applied"] == IN_RACKS * steps * SLOTS[target]
    by_leaf = summary["links"].split("; ")
    assert [counts.partition(":")[0] for counts in by_leaf] == ["leaf1", "leaf2"]
    assert all(" 0 lost" not in counts and " 0 repeated" not in counts for counts in by_leaf), "uplinks repeat"
    alone = reference.train(Recipe(workers=IN_RACKS, steps=steps, seed=1, model=MODEL[target])).tobytes()
    assert [run.parameters(worker).tobytes() == alone for worker in range(IN_RACKS)] == [True] * IN_RACKS


@pytest.mark.parametrize("target", [on_bmv2(otherwise=True)], indirect=True)
def test_run_over_racks_survives_a_kill_of_each_process(target: str, tmp_path: Path) -> None:
    """On trees of the embedded switch, tests/controller/test_rack_restarts.py and the schedules have these deaths."""
    events = [
        f'[[events]]\niteration = {iteration}\naction = "{action}"\n{further}\n'
        for action, iteration, further in EVENTS
    ]
    last = 45
    run = train(target, tmp_path, "\n".join(events), last, 150)
    summary = run.summary()
    names = [event["event"].partition(" at")[0] for event in summary["events"]]
    assert names == [f"restart worker {KILLED}", "restart leaf of rack 1", "restart root", "restart controller"]
    # Of the last session: what was contributed to the lost ones came back in its first two rounds.
    assert summary["contributions_sent"] == summary["contributions_applied"]
    assert summary["final_accuracy"] > 0.8
    for worker in range(IN_RACKS):
        steps = [int(row["step"]) for row in run.rows(worker)]
        if worker != KILLED:  # the other one counts anew in its second process
            assert steps == sorted(set(steps)) and steps[-1] == last and len(steps) >= last - 2
        assert run.worker(worker)["sessions_lost"] == 2
        assert run.worker(worker)["iterations_repeated"] == 0, "BSP"
        # The killed worker's own iteration is lost where the switch had only a part of it.
        assert run.worker(worker)["contributions_lost"] == run.worker(0)["contributions_lost"] <= 1
        np.testing.assert_allclose(run.parameters(worker), run.parameters(0), atol=1e-4)
