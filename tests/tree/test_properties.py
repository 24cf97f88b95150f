"""The five properties of docs/protocol.md, for workers' real code and a tree of real P4 programs, in virtual time.

All links are bad, also those between switches. `make schedules RACKS=3` plays thousands.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from serene.controller.switch.tree import Tree
from serene.controller.upkeep import Upkeep
from serene.experiments.correctness import schedules
from serene.experiments.correctness.schedules import PAIRS
from serene.experiments.correctness.tallies import Pair
from serene.experiments.correctness.virtual.checks import Balance, Violation
from serene.experiments.correctness.virtual.plan import Plan
from serene.experiments.correctness.virtual.tree import TreeSchedule, TreeSwitch, TreeWatch
from serene.faults import Faults, PacketFaults
from serene.program import Program
from serene.strategy import BSP, SSP, Mixed, Quorum, Strategy
from tests.planted import every_fault_is_found, fault
from tests.programs import LEAF, ROOT

ROUGH = PacketFaults(loss=0.05, duplication=0.05, reordering=0.1, late_s=0.2, jitter_s=0.005)
STORM = PacketFaults(loss=0.2, duplication=0.1, reordering=0.2, late_s=0.5, jitter_s=0.01)
RUNS = 2  # of each pair of strategies; each of FAULTS is found in them
WORKERS = 4


@pytest.fixture(scope="module")
def tree() -> Iterator[TreeSwitch]:
    loaded = TreeSwitch(LEAF, ROOT, 3)
    yield loaded
    loaded.close()


def plan(seed: int, faults: PacketFaults, swaps: int) -> Plan:
    mean_s = tuple((0.02, 0.2, 0.5)[(seed + worker) % 3] for worker in range(WORKERS))
    return Plan(seed, 2, (12,) * WORKERS, mean_s, Faults(seed, (faults,)), swaps, 0.3)


@pytest.mark.parametrize("strategy", [SSP(0), SSP(1), SSP(3), SSP(15), Quorum(3), Mixed((0,), 1)], ids=str)
@pytest.mark.parametrize("swaps", [0, 1])
def test_workers_reach_the_staleness_bound_and_never_exceed_it(
    tree: TreeSwitch, strategy: Strategy, swaps: int
) -> None:
    """Each read contains the rounds that the bound demands, from all racks."""
    chosen = replace(
        plan(swaps, ROUGH, swaps), iterations=(40,) * WORKERS, mean_s=(0.02, 0.02, 0.02, 0.5), swap_every_s=8.0
    )
    schedule = TreeSchedule(tree, chosen, itertools.repeat(strategy))
    assert schedule.run().balance == Balance()
    assert schedule.reads.arrivals.at_bound > 3
    assert schedule.reads.contained > 100


def test_workers_of_all_racks_read_the_same_bsp_sums(tree: TreeSwitch) -> None:
    """For the same epoch and round, also under loss."""
    for seed in range(3):
        outcome = TreeSchedule(tree, plan(seed, STORM, swaps=3), itertools.repeat(BSP())).run()
        assert outcome.balance == Balance() and outcome.bsp_reads > 15


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(pair))
def test_schedules_over_racks_keep_all_rules_for_every_pair(pair: Pair) -> None:
    """Workers and controllers die, workers join twice and are evicted, jobs are deleted, and one host is hostile."""
    tally = schedules.play_many(pair, range(RUNS), Program.load(), racks=3)
    assert (tally.runs, tally.lost, tally.repeated, tally.broken, tally.failed) == (RUNS, 0, 0, {}, [])
    assert tally.swaps > RUNS


# -- what is found if the controller is wrong ------------------------------------------------------------------------

PREPARES = """    await _all(
        leaf.put(entries.prepared(plan.job, policy.session, policy.epoch, leaf_policies[rack], members))
        for rack, leaf in self._leaves_of(plan.job)
    )
"""
PUTS_IN_FORCE = """    prepared = time.perf_counter()
    await self.root.write([~plan_entries.policy_entry(plan.job, replace(policy, fields=root_fields))])
"""
FAULTS = (
    fault("the flip comes before the preparation", Tree, "_swap", PREPARES + PUTS_IN_FORCE, PUTS_IN_FORCE + PREPARES,
          first=1),
    fault("the leaves do not get the new policy", Tree, "_swap",
          "unnotified = await self._notify(plan.job, policy.session, policy.epoch, policy.fields)",
          "unnotified: dict[int, SwitchError] = {}"),
    fault("the address of a newcomer is not written", Tree, "readmit",
          "await leaf.put(entries.address(plan.job, place, plan.new, self.options.own))", "pass", first=2),
    fault("a replaced process keeps its entry", Tree, "readmit",
          "await leaf.shut_out(plan.job, place, plan.old)", "pass", first=40),
    fault("a session that only some workers could join is forgotten", Upkeep, "started_in_part",
          "if job.pool:", "if True:", first=306),
)  # fmt: skip


def play_numbered(number: int) -> str | None:
    """The runs of all pairs in turn: the first of each, then the second of each."""
    tally = schedules.play_many(PAIRS[number % len(PAIRS)], [number // len(PAIRS)], Program.load(), racks=3)
    return f"{tally.broken}" if tally.failed else None


test_schedules_over_racks_find_controller_faults = every_fault_is_found(lambda: play_numbered, FAULTS)


# -- the checks themselves -------------------------------------------------------------------------------------------


def test_checker_detects_a_read_without_another_racks_round(tree: TreeSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check looks at the read's contents: the contribution had arrived at its leaf."""
    monkeypatch.setattr(TreeWatch, "_holds", lambda *where: where[3] == 0)
    with pytest.raises(Violation, match="bounded staleness"):
        TreeSchedule(tree, plan(1, PacketFaults(), swaps=12), itertools.repeat(BSP())).run()
