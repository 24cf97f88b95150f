"""The tree's rules under random runs: nothing is found while they are right, and each that is broken on purpose is
found. `python -m tests.tree.planted` is the same, longer."""

from __future__ import annotations

from collections import Counter

import pytest

from serene.errors import SereneError
from serene.racks import compile_for_racks
from serene.strategy import ASP, BSP, SSP, BadStrategy, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import ReadMode
from tests.planted import every_fault_is_found
from tests.tree import planted
from tests.tree.simulation import play


def test_correct_tree_rules_pass_random_runs() -> None:
    """Every kind of event occurs in them; otherwise passing would prove little."""
    happened: Counter[str] = Counter()
    for seed in range(100):
        happened += play(seed)  # raises Broken
    expected = {
        "UP", "DOWN", "GRANT", "answer", "release", "NUDGE", "swap", "aborted swap", "forged epoch", "granted jumped",
        "epoch heard from a worker", "packet two epochs late", "leaf restarted", "root restarted",
    }  # fmt: skip
    assert expected - set(happened) == set()


test_tree_runs_find_each_planted_fault = every_fault_is_found(lambda: planted.play, planted.FAULTS)


def test_tree_run_is_reproducible_from_its_seed() -> None:
    assert play(5) == play(5) != play(6)


# -- a strategy over racks -------------------------------------------------------------------------------------------

RACKS = [[0, 1, 2], [3], [4, 5]]


@pytest.mark.parametrize(
    ("strategy", "enough", "counted", "quorum"),
    [
        (BSP(), [3, 1, 2], 0b111, 0),
        (SSP(3), [3, 1, 2], 0b111, 0),
        (ASP(), [0, 0, 0], 0, 0),
        (Mixed((0, 3)), [2, 0, 2], 0b101, 0),
        (Quorum(6), [3, 1, 2], 0b111, 0),
        (Quorum(5), [2, 1, 1], 0b111, 5),  # 5 of 6: one may be missing, in whichever rack
        (Quorum(1), [1, 1, 1], 0b111, 1),
    ],
    ids=str,
)
def test_strategy_compiles_to_leaf_and_root_fields(
    strategy: Strategy, enough: list[int], counted: int, quorum: int
) -> None:
    leaves, root = compile_for_racks(strategy, RACKS)
    assert [leaf.enough for leaf in leaves] == enough
    assert all(leaf.fields == strategy.compile(range(6)) for leaf in leaves)
    assert (root.member_mask, root.sync_mask, root.quorum) == (0b111, counted, quorum)
    assert {leaf.by_arrivals for leaf in leaves} == {quorum > 0}


class StaleQuorum(Quorum):
    def compile(self, members: object) -> PolicyFields:
        return PolicyFields(0b111111, 0b111111, 2, self.k, ReadMode.SNAPSHOT)


def test_quorum_with_staleness_bound_over_racks_is_refused() -> None:
    with pytest.raises(BadStrategy, match=r"quorum 4 of 6 with staleness 2: over racks, k-of-n needs staleness 0"):
        compile_for_racks(StaleQuorum(4), RACKS)


def test_compile_for_racks_refuses_too_many_racks() -> None:
    with pytest.raises(BadStrategy, match="9 racks: expected 1 to 8"):
        compile_for_racks(BSP(), [[rack] for rack in range(9)])
    with pytest.raises(BadStrategy, match="flush_every 3: expected a power of two"):
        compile_for_racks(BSP(), RACKS, flush_every=3)
    many = [list(range(32 * rack, 32 * rack + 32)) for rack in range(8)]
    assert compile_for_racks(BSP(), many)[1].quorum == 0  # all 256
    assert compile_for_racks(Quorum(255), many)[1].quorum == 255
    assert issubclass(BadStrategy, SereneError)
