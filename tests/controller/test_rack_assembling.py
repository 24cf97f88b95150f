"""Racks without switches: a controller assembles jobs from what leaves and the root hold. Names in racks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from serene import entries
from serene.controller.jobs.job import RETURN_S, JobState
from serene.controller.jobs.plans import Start, Waiting
from serene.controller.jobs.slots import SlotRange
from serene.controller.settings import settings
from serene.controller.switch import tree_entries
from serene.controller.switch.assembling import assembled
from serene.controller.switch.plan_entries import Installed, InstalledJob
from serene.controller.switch.takeover import job_from, lost_job_from
from serene.entries import SwitchAddress
from serene.racks import Racks, policies
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from serene.wire import ROOT, SWITCH_IP, SWITCH_MAC
from tests.controller.planning import at, new_jobs

SESSION = 7
OWN = SwitchAddress(SWITCH_IP, SWITCH_MAC)


def holding(
    sizes: Sequence[int], strategy: Strategy, members: Sequence[int], notified: bool = False
) -> tuple[Installed, list[Installed]]:
    """Returns what the root and the leaves hold of job 0 after epoch 1 with all workers. Epoch 2, with ``members``, is
    in force. notified: whether the leaves know of it."""
    racks = Racks(tuple(sizes))
    everybody = BSP().compile(range(sum(sizes)))
    fields = strategy.compile(members)
    of_leaves, of_root = policies(fields, [racks.mask(rack) for rack in range(len(sizes))])
    slots = SlotRange(0, 3)
    leaves = []
    for rack, size in enumerate(sizes):
        part = InstalledJob(slots, 700, 1 << 20, 8 << 20, sum(sizes), 0, SESSION, 1, racks.part(everybody, rack))
        part.members = {place: at(place) for place in range(size)}
        part.members[ROOT] = entries.root_at(33, SESSION, OWN)
        part.rack, part.rack_size = rack, size
        prepared = racks.part(of_leaves[rack].fields, rack)
        part.prepared = {(SESSION, 1): racks.part(everybody, rack), (SESSION, 2): prepared}
        part.taking_part = {(SESSION, 1): sum(sizes), (SESSION, 2): len(members)}
        if notified:
            part.epoch, part.fields = 2, prepared
        leaves.append(Installed({0: part} if size else {}))
    root = InstalledJob(slots, 700, 1 << 20, 8 << 20, len(sizes), 0, SESSION, 2, of_root)
    root.members = {rack: entries.leaf_at(rack, size, SESSION) for rack, size in enumerate(sizes) if size}
    return Installed({0: root}), leaves


@pytest.mark.parametrize("strategy", [BSP(), SSP(2), Quorum(1), Quorum(2), Mixed((0,))], ids=str)
def test_assembly_keeps_eviction_of_which_no_leaf_was_notified(strategy: Strategy) -> None:
    found = assembled(*holding((2, 2), strategy, [0, 1, 2]))
    assert found.unnotified == {0} and not found.useless and not found.misplaced
    job = job_from(0, found.installed.jobs[0], 0.0)
    assert (job.strategy, job.members(), job.evicted(), job.epoch) == (strategy, [0, 1, 2], [3], 2)


def test_rack_whose_workers_have_all_left_stays_in_the_job() -> None:
    root, leaves = holding((2, 2), BSP(), [0, 1])
    for place in (0, 1):
        del leaves[1].jobs[0].members[place]
    found = assembled(root, leaves)
    assert not found.useless and sorted(found.installed.jobs[0].members) == [0, 1]
    for place in (0, 1):
        del leaves[0].jobs[0].members[place]
    assert assembled(root, leaves).useless == [(0, 0), (1, 0), (2, 0)]  # nobody was admitted yet


def test_leaf_with_the_root_of_another_session_has_no_part() -> None:
    """The root's packets would be a stranger's there."""
    root, leaves = holding((2, 2), BSP(), range(4), notified=True)
    leaves[1].jobs[0].members[ROOT] = entries.root_at(33, SESSION - 1, OWN)
    found = assembled(root, leaves)
    assert not found.installed.jobs[0].complete
    assert sorted(found.useless) == [(0, 0), (1, 0), (2, 0)]


def test_leaves_named_in_another_order_are_detected() -> None:
    root, leaves = holding((2, 1), BSP(), [0, 1, 2])
    assert assembled(root, leaves[::-1]).misplaced == {0: 1, 1: 0}


@pytest.mark.parametrize("sizes", [(3, 2, 0), (5, 0, 0), (0, 5, 0)])
def test_racks_without_workers_are_kept(sizes: tuple[int, ...]) -> None:
    found = assembled(*holding(sizes, BSP(), range(5)))
    assert found.installed.jobs[0].racks == Racks(sizes)


def test_assembly_marks_leaf_state_of_no_job_as_useless() -> None:
    _, leaves = holding((2, 1), BSP(), [0, 1, 2])
    left = InstalledJob(session=SESSION, prepared=leaves[1].jobs[0].prepared)
    assert left.record
    found = assembled(Installed({0: InstalledJob(session=SESSION)}), [Installed(), Installed({0: left})])
    assert found.useless == [(2, 0)]
    found = assembled(Installed(), [Installed({0: replace(left, prepared={}, addresses={1})}), Installed()])
    assert found.useless == [(1, 0)]


def test_only_current_and_previous_epoch_entries_are_kept() -> None:
    eras = [(6, 9), (7, 3), (7, 4), (7, 5), (7, 6), (7, 7)]
    assert tree_entries.needless_epochs(eras, 7, 5) == [(6, 9), (7, 3), (7, 6), (7, 7)]


STRATEGIES = [BSP(), SSP(2), ASP(), Quorum(2), Mixed((0,)), Mixed((2, 3))]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("lost", range(3), ids=["root", "leaf1", "leaf2"])
def test_part_lost_by_one_switch_is_rebuilt_from_the_others(strategy: Strategy, lost: int) -> None:
    """The job waits for the same workers, and will have the same strategy."""
    root, leaves = holding((2, 2), strategy, range(4), notified=True)
    [root, *leaves][lost].jobs.clear()
    found = assembled(root, leaves)
    assert sorted(found.useless) == [(switch, 0) for switch in range(3) if switch != lost]
    held = found.installed.jobs[0]
    assert held.lost and not held.complete and not held.record
    job = lost_job_from(0, held, 0.0)
    assert (job.state, job.absent, job.racks) == (JobState.WAITING, 0, Racks((2, 2)))
    # If some workers of the lost rack were asynchronous, and some not, nobody knows which: all are counted then.
    assert job.strategy == (BSP() if strategy == Mixed((0,)) and lost == 1 else strategy)
    assert (job.scale, job.limit, job.lost_sessions, job.lost) == (1 << 20, 8.0, 1, {SESSION})


@pytest.mark.parametrize("lost", range(3), ids=["root", "leaf1", "leaf2"])
def test_reassembled_rack_job_does_not_wait_for_left_workers(lost: int) -> None:
    """It is not known who was in the lost rack, but the job begins only after the workers that took part have come."""
    root, leaves = holding((2, 2), BSP(), [0, 1, 2], notified=True)
    [root, *leaves][lost].jobs.clear()
    jobs, now = new_jobs(), 0.0
    jobs.take_over(lost_job_from(0, assembled(root, leaves).installed.jobs[0], 0.0, lambda: now))
    now = RETURN_S  # until then, who has left is taken for evicted, and might come to restore the sums
    plans = [jobs.hello(0, worker % 2, replace(at(worker), rack=worker // 2), 700, 0.0) for worker in range(3)]
    assert [type(plan) for plan in plans] == [Waiting, Waiting, Start]
    assert isinstance(plans[2], Start) and sorted(plans[2].members) == [0, 1, 2]
    jobs.started(plans[2], 0.0)
    assert (jobs[0].members(), jobs[0].absent) == ([0, 1, 2], 0)


@pytest.mark.parametrize("lost", [1, 2], ids=["leaf1", "leaf2"])
def test_job_that_all_have_left_is_not_rebuilt(lost: int) -> None:
    root, leaves = holding((2, 2), ASP(), [], notified=True)
    [root, *leaves][lost].jobs.clear()
    found = assembled(root, leaves)
    assert found.installed.jobs[0].slots is None
    assert sorted(found.useless) == [(switch, 0) for switch in range(3) if switch != lost]


def test_rack_job_interrupted_before_start_is_not_lost() -> None:
    root, leaves = holding((2, 2), BSP(), range(4), notified=True)
    for leaf in leaves:
        leaf.jobs[0].members = {ROOT: leaf.jobs[0].members[ROOT]}
    assert assembled(root, leaves).installed.jobs[0].slots is None, "nobody is admitted"
    root.jobs.clear()
    assert assembled(root, leaves).installed.jobs[0].slots is None, "nor is the root notified"


@pytest.mark.parametrize("members", [range(4), (0, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("fates", list(product(("removed", "away", "lost"), repeat=3)), ids=str)
def test_job_removed_from_some_switches_is_not_rebuilt(fates: tuple[str, ...], members: Sequence[int]) -> None:
    """Whatever switches that were away hold or have lost when they return. A removal leaves a record."""
    root, leaves = holding((2, 2), BSP(), members, notified=True)
    for fate, held in zip(fates, (root, *leaves), strict=True):
        if fate == "removed":
            held.jobs[0] = InstalledJob(session=SESSION, epoch=2, fields=held.jobs[0].fields)
        elif fate == "lost":
            held.jobs.clear()
    there = assembled(root, leaves).installed.jobs.get(0, InstalledJob())
    assert (there.slots is None and not there.complete) or "removed" not in fates


def test_job_lost_by_two_switches_is_not_rebuilt() -> None:
    root, leaves = holding((2, 2), BSP(), range(4), notified=True)
    root.jobs.clear()
    leaves[1].jobs.clear()
    assert assembled(root, leaves).installed.jobs[0].slots is None


def test_job_removed_by_another_controller_is_not_lost() -> None:
    """Its records remain. But if a switch has no record, and the job was there, that switch has lost its state."""
    root, leaves = holding((2, 2, 0), BSP(), range(4), notified=True)
    for part in (root, *leaves[:2]):
        part.jobs[0] = InstalledJob(session=SESSION, epoch=2, fields=part.jobs[0].fields)
    racks = {0: Racks((2, 2, 0))}
    assert assembled(root, leaves, racks).installed.jobs[0].record
    for part in (root, leaves[1]):
        record = part.jobs.pop(0)
        assert assembled(root, leaves, racks).installed.jobs[0].lost
        part.jobs[0] = record


def test_root_is_listed_first_and_leaves_in_rack_order() -> None:
    named = settings(switch="leaf1=127.0.0.1:9560,root=127.0.0.1:9559,east=127.0.0.1:9561").switches
    assert [switch.name for switch in named] == ["root", "leaf1", "east"]
    assert settings(switch="127.0.0.1:9559").switches == []


def test_worker_names_over_racks_convert_to_numbers() -> None:
    racks = Racks.of([2, 0, 3])
    assert [racks.name(worker) for worker in range(5)] == ["0.0", "0.1", "2.0", "2.1", "2.2"]
    assert [racks.worker(name) for name in ("0.1", "2.2", "3")] == [1, 4, 3]
    assert [racks.number(2, 1), racks.number(1, 0), racks.number(3, 0)] == [3, None, None]
    assert Racks.of([4]).name(3) == "3"
