"""What leaves and the root hold, put together: who takes part, whose part it is, and what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from controller.jobs.slots import SlotRange
from controller.switch import tree_entries
from controller.switch.assembling import assembled
from controller.switch.entries import Installed, InstalledJob, SwitchAddress
from controller.switch.takeover import job_from
from serene.racks import Racks, policies
from serene.strategy import BSP, SSP, Mixed, Quorum, Strategy
from serene.wire import ROOT, SWITCH_IP, SWITCH_MAC
from tests.controller.planning import at

SESSION = 7
OWN = SwitchAddress(SWITCH_IP, SWITCH_MAC)


def holding(sizes: Sequence[int], strategy: Strategy, members: Sequence[int]) -> tuple[Installed, list[Installed]]:
    """The root and the leaves of job 0, epoch 1, in which all workers take part; and epoch 2, in which ``members`` do,
    is in force, and no leaf was told of it."""
    racks = Racks(tuple(sizes))
    everybody = BSP().compile(range(sum(sizes)))
    fields = strategy.compile(members)
    of_leaves, of_root = policies(fields, [racks.mask(rack) for rack in range(len(sizes))])
    slots = SlotRange(0, 3)
    leaves = []
    for rack, size in enumerate(sizes):
        part = InstalledJob(slots, 700, 1 << 20, 8 << 20, sum(sizes), 0, SESSION, 1, racks.part(everybody, rack))
        part.members = {place: at(place) for place in range(size)}
        part.members[ROOT] = tree_entries.root_at(33, SESSION, OWN)
        part.rack, part.rack_size = rack, size
        prepared = racks.part(of_leaves[rack].fields, rack)
        part.prepared = {(SESSION, 1): racks.part(everybody, rack), (SESSION, 2): prepared}
        leaves.append(Installed({0: part} if size else {}))
    root = InstalledJob(slots, 700, 1 << 20, 8 << 20, len(sizes), 0, SESSION, 2, of_root)
    root.members = {rack: tree_entries.leaf_at(rack, size, SESSION) for rack, size in enumerate(sizes) if size}
    return Installed({0: root}), leaves


@pytest.mark.parametrize("strategy", [BSP(), SSP(2), Quorum(1), Quorum(2), Mixed((0,))], ids=str)
def test_who_was_evicted_does_not_take_part_though_no_leaf_says_so(strategy: Strategy) -> None:
    found = assembled(*holding((2, 2), strategy, [0, 1, 2]))
    assert found.untold == {0} and not found.useless and not found.misplaced
    job = job_from(0, found.installed.jobs[0], 0.0)
    assert (job.strategy, job.members(), job.evicted(), job.epoch) == (strategy, [0, 1, 2], [3], 2)


def test_a_rack_all_of_whose_workers_have_left_is_part_of_the_job() -> None:
    root, leaves = holding((2, 2), BSP(), [0, 1])
    for place in (0, 1):
        del leaves[1].jobs[0].members[place]
    found = assembled(root, leaves)
    assert not found.useless and sorted(found.installed.jobs[0].members) == [0, 1]
    for place in (0, 1):
        del leaves[0].jobs[0].members[place]
    assert assembled(root, leaves).useless == [(0, 0), (1, 0), (2, 0)]  # nobody was admitted yet


def test_leaves_that_are_named_in_another_order_are_noticed() -> None:
    root, leaves = holding((2, 1), BSP(), [0, 1, 2])
    assert assembled(root, leaves[::-1]).misplaced == {0: 1, 1: 0}


@pytest.mark.parametrize("sizes", [(3, 2, 0), (5, 0, 0), (0, 5, 0)])
def test_racks_without_workers_are_kept(sizes: tuple[int, ...]) -> None:
    found = assembled(*holding(sizes, BSP(), range(5)))
    assert found.installed.jobs[0].racks == Racks(sizes)


def test_what_was_prepared_for_no_job_is_of_no_use() -> None:
    _, leaves = holding((2, 1), BSP(), [0, 1, 2])
    left = InstalledJob(session=SESSION, prepared=leaves[1].jobs[0].prepared)
    assert left.record
    found = assembled(Installed({0: InstalledJob(session=SESSION)}), [Installed(), Installed({0: left})])
    assert found.useless == [(2, 0)]
    found = assembled(Installed(), [Installed({0: replace(left, prepared={}, addresses={1})}), Installed()])
    assert found.useless == [(1, 0)]


def test_of_what_is_prepared_the_epoch_in_force_and_the_one_before_are_needed() -> None:
    eras = [(6, 9), (7, 3), (7, 4), (7, 5), (7, 6), (7, 7)]
    assert tree_entries.needless_epochs(eras, 7, 5) == [(6, 9), (7, 3), (7, 6), (7, 7)]
