"""The five properties of docs/protocol.md, for workers' real code and a tree of real P4 programs, in virtual time.

All links are bad, also those between switches. `make schedules RACKS=3` plays thousands.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from serene.controller.switch.tree import Tree
from serene.experiments.correctness import schedules
from serene.experiments.correctness.schedules import PAIRS
from serene.experiments.correctness.tallies import Pair
from serene.experiments.correctness.virtual.checks import Balance, Violation
from serene.experiments.correctness.virtual.plan import Outcome, Plan
from serene.experiments.correctness.virtual.tree import TreeSchedule, TreeSwitch, TreeWatch
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.faults import Action, Event, Faults, PacketFaults
from serene.program import Program
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from tests.planted import Fault, fault, planted
from tests.programs import LEAF, ROOT

FINE = PacketFaults()
ROUGH = PacketFaults(loss=0.05, duplication=0.05, reordering=0.1, late_s=0.2, jitter_s=0.005)
STORM = PacketFaults(loss=0.2, duplication=0.1, reordering=0.2, late_s=0.5, jitter_s=0.01)
RUNS = int(os.environ.get("SERENE_TREE_RUNS", "4"))  # of each pair of strategies
WORKERS = 4


def load(racks: int) -> TreeSwitch:
    return TreeSwitch(LEAF, ROOT, racks)


@pytest.fixture(scope="module", params=[2, 3])
def tree(request: pytest.FixtureRequest) -> Iterator[TreeSwitch]:
    loaded = load(request.param)
    yield loaded
    loaded.close()


def plan(seed: int, faults: PacketFaults, *events: Event, swaps: int = 12) -> Plan:
    mean_s = tuple((0.02, 0.2, 0.5)[(seed + worker) % 3] for worker in range(WORKERS))
    return Plan(seed, 2, (12,) * WORKERS, mean_s, Faults(seed, (faults,), events), swaps, 0.3)


def play(tree: TreeSwitch, chosen: Plan, strategies: Iterator[Strategy]) -> tuple[Outcome, TreeWatch]:
    """Raises Violation where a property does not hold."""
    schedule = TreeSchedule(tree, chosen, strategies)
    outcome = schedule.run()
    assert outcome.balance == Balance()
    return outcome, schedule.reads


@pytest.mark.parametrize("faults", [FINE, ROUGH, STORM], ids=["fine", "rough", "storm"])
def test_exactly_once(tree: TreeSwitch, faults: PacketFaults) -> None:
    """At rest every replica equals the sum of every contribution, across random swaps, whatever the network does."""
    for seed in range(8):
        play(tree, plan(seed, faults), alternating(FAMILIES, seed, WORKERS))


def one_is_slow(seed: int, swaps: int) -> Plan:
    mean_s = (0.02, 0.02, 0.02, 0.5)
    return replace(plan(seed, ROUGH, swaps=swaps), iterations=(40,) * WORKERS, mean_s=mean_s, swap_every_s=8.0)


@pytest.mark.parametrize("strategy", [SSP(0), SSP(1), SSP(3), SSP(15), Quorum(3), Mixed((0,), 1)], ids=str)
def test_bounded_staleness(tree: TreeSwitch, strategy: Strategy) -> None:
    """No counted worker exceeds the bound, and some reach it. Each read contains the rounds that the bound demands,
    from all racks."""
    for seed in range(3):
        schedule = TreeSchedule(tree, one_is_slow(seed, swaps=seed % 2), itertools.repeat(strategy))
        assert schedule.run().balance == Balance()
        assert schedule.reads.arrivals.at_bound > 3
        assert schedule.reads.contained > 100


def test_isolated_bsp(tree: TreeSwitch) -> None:
    """All workers of all racks read the same value for the same epoch and round, also under loss."""
    for seed in range(6):
        outcome, _ = play(tree, plan(seed, STORM, swaps=3), itertools.repeat(BSP()))
        assert outcome.bsp_reads > 15


@pytest.mark.parametrize("first", [BSP(), SSP(10), Quorum(2), ASP(), Mixed((0,))], ids=str)
def test_no_stuck_worker(tree: TreeSwitch, first: Strategy) -> None:
    """The bound shrinks and grows, workers pause and die: every worker finishes."""
    for seed in range(3):
        events = Event(3, Action.PAUSE_WORKER, 0, 5.0), Event(5, Action.RESTART_WORKER, 1, 2.0)
        strategies = itertools.cycle([first, BSP(), SSP(10), SSP(1), ASP()])
        outcome, _ = play(tree, plan(seed, ROUGH, *events, swaps=30), strategies)
        assert outcome.swaps > 5


def test_one_policy_per_decision(tree: TreeSwitch) -> None:
    """Every answer names a policy that was put in force at the root when all leaves were prepared for it."""
    for seed in range(8):
        outcome, _ = play(tree, plan(seed, ROUGH), alternating(("bsp", "ssp", "quorum", "mixed"), seed, WORKERS))
        assert outcome.epochs > 5


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
    fault("the flip comes before the preparation", Tree, "_swap", PREPARES + PUTS_IN_FORCE, PUTS_IN_FORCE + PREPARES),
    fault("the leaves do not get the new policy", Tree, "_swap",
          "untold = await self._tell(plan.job, policy.session, policy.epoch, policy.fields)",
          "untold: dict[int, SwitchError] = {}"),
    fault("the address of a newcomer is not written", Tree, "readmit",
          "await leaf.put(entries.address(plan.job, place, plan.new, self.options.own))", "pass"),
    fault("a replaced process keeps its entry", Tree, "readmit",
          "await leaf.shut_out(plan.job, place, plan.old)", "pass", 300),
)  # fmt: skip


@pytest.mark.parametrize("broken", FAULTS, ids=lambda broken: broken.rule)
def test_schedules_over_racks_find_controller_faults(broken: Fault) -> None:
    """Within the given number of runs; the first ones are those of the test above."""
    with planted(broken.lines[0]):
        runs = itertools.islice(itertools.product(range(1000), PAIRS), broken.runs)
        tallies = (schedules.play_many(pair, [number], Program.load(), racks=3) for number, pair in runs)
        assert any(tally.failed for tally in tallies)


# -- the checks themselves -------------------------------------------------------------------------------------------


def test_checker_detects_a_read_without_another_racks_round(tree: TreeSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check looks at the read's contents: the contribution had arrived at its leaf."""
    monkeypatch.setattr(TreeWatch, "_holds", lambda *where: where[3] == 0)
    with pytest.raises(Violation, match="bounded staleness"):
        TreeSchedule(tree, plan(1, FINE), itertools.repeat(BSP())).run()
