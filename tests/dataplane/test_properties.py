"""The five properties of docs/protocol.md, for workers' real code and the real P4 program, in virtual time.

Packets are lost, duplicated and reordered, workers are slow, stand still and die, strategies are swapped all the while.
`make schedules` and `make soak` play the same at full size.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from serene.experiments.correctness import schedules, soak
from serene.experiments.correctness.virtual.checks import Balance, Sent, Violation, balance
from serene.experiments.correctness.virtual.plan import Outcome, Plan
from serene.experiments.correctness.virtual.random_plans import random_plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.faults import Action, BadFaults, Event, Faults, PacketFaults
from serene.program import Program
from serene.strategy import BSP, SSP, Mixed, Quorum, Strategy
from tests.programs import V1MODEL

FINE = PacketFaults()
ROUGH = PacketFaults(loss=0.05, duplication=0.05, reordering=0.1, late_s=0.2, jitter_s=0.005)
STORM = PacketFaults(loss=0.2, duplication=0.1, reordering=0.2, late_s=0.5, jitter_s=0.01)


@pytest.fixture(scope="module")
def switch() -> Iterator[P4Switch]:
    loaded = P4Switch(V1MODEL)
    yield loaded
    loaded.close()


def plan(seed: int, faults: PacketFaults, *events: Event, workers: int = 3, swaps: int = 12) -> Plan:
    mean_s = tuple((0.02, 0.2, 0.5)[(seed + worker) % 3] for worker in range(workers))
    return Plan(seed, 2, (12,) * workers, mean_s, Faults(seed, (faults,), events), swaps, 0.3)


def play(switch: P4Switch, chosen: Plan, strategies: Iterator[Strategy]) -> Outcome:
    """Raises Violation where a property of docs/protocol.md does not hold."""
    outcome = Schedule(switch, chosen, strategies).run()
    assert outcome.balance == Balance()
    return outcome


def one_is_slow(seed: int, swaps: int) -> Plan:
    """So many iterations that the others get as far ahead of it as they may, also under the largest bound."""
    return replace(plan(seed, ROUGH, swaps=swaps), iterations=(40,) * 3, mean_s=(0.02, 0.02, 0.5), swap_every_s=8.0)


@pytest.mark.parametrize("staleness", [0, 1, 3, 15])
def test_workers_reach_the_staleness_bound_and_never_exceed_it(switch: P4Switch, staleness: int) -> None:
    """No counted worker exceeds the bound, and some worker reaches it; checked at every answer."""
    for seed in range(2):
        schedule = Schedule(switch, one_is_slow(seed, swaps=seed % 2), itertools.repeat(SSP(staleness)))
        assert schedule.run().balance == Balance()
        assert schedule.watch.arrivals.at_bound > 3


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[P4Switch]:
    """A program that allows one round too many: ``round <= base + staleness``."""

    def one_further(node: Any) -> Any:
        if isinstance(node, dict):
            of_round = node.get("op") == "<" and node["left"] == {"type": "field", "value": ["serene", "round"]}
            return {name: "<=" if of_round and name == "op" else one_further(part) for name, part in node.items()}
        return [one_further(part) for part in node] if isinstance(node, list) else node

    path = tmp_path_factory.mktemp("lenient") / "serene.json"
    document = json.loads(V1MODEL.config_path.read_text())
    path.write_text(json.dumps(one_further(document)))
    assert json.loads(path.read_text()) != document
    path.with_suffix(".p4info.txtpb").write_text(V1MODEL.p4info_path.read_text())
    loaded = P4Switch(Program.load(path))
    yield loaded
    loaded.close()


@pytest.mark.parametrize("strategy", [SSP(0), SSP(3), Quorum(2), Mixed((0,), 1)], ids=str)
def test_checker_detects_a_round_beyond_the_bound(lenient: P4Switch, strategy: Strategy) -> None:
    """In every run in which a worker reaches the bound."""
    with pytest.raises(Violation, match="bounded staleness"):
        Schedule(lenient, one_is_slow(0, swaps=0), itertools.repeat(strategy)).run()


def test_workers_read_the_same_bsp_sums(switch: P4Switch) -> None:
    """All workers read the same value for the same epoch and round, also under loss."""
    for seed in range(4):
        outcome = play(switch, plan(seed, STORM, swaps=3), itertools.repeat(BSP()))
        assert outcome.bsp_reads > 15


def test_killing_the_controller_never_stops_training(switch: P4Switch) -> None:
    """While no controller commands the switch, every worker continues to the end of its work."""
    chosen = plan(1, ROUGH, Event(1, Action.RESTART_CONTROLLER, None, 100.0), swaps=0)
    schedule = Schedule(switch, chosen, itertools.repeat(BSP()))
    schedule.start()
    schedule.run_until(90.0)
    assert schedule.happened["controller restarts"] == 1
    assert schedule.ledger.done == [12, 12, 12]
    schedule.close()


# -- the commands, small ---------------------------------------------------------------------------------------


def test_random_runs_of_every_pair_keep_all_properties() -> None:
    """`make schedules`, with four runs for each pair: any networks and deaths; every worker finishes."""
    happened: Counter[str] = Counter()
    for pair in schedules.PAIRS:
        tally = schedules.play_many(pair, range(4), V1MODEL)
        assert (tally.runs, tally.lost, tally.repeated, tally.broken, tally.failed) == (4, 0, 0, {}, [])
        assert tally.swaps > 4
        happened.update(tally.happened)
    assert {"restarted", "stood still", "evicted", "readmitted", "controller restarts"} <= happened.keys()


def test_soak_keeps_all_rules() -> None:
    """`make soak` with twenty thousand packets."""
    faults = PacketFaults(loss=0.01, duplication=0.01, reordering=0.01)
    outcome = soak.soak(20_000, Faults(1, (faults,)), 1, V1MODEL)
    assert outcome.balance == Balance()
    assert outcome.packets > 20_000
    assert min(outcome.lost, outcome.duplicated, outcome.reordered) > 200


# -- the checks themselves -------------------------------------------------------------------------------------


def test_schedule_is_reproducible_from_its_seed(switch: P4Switch) -> None:
    first, second, other = (
        Schedule(switch, random_plan(seed), alternating(FAMILIES, seed, random_plan(seed).workers)).run()
        for seed in (5, 5, 6)
    )
    assert first == second != other


def test_balance_reports_lost_and_repeated_contributions() -> None:
    numbers = np.random.default_rng(1)
    vectors = [numbers.integers(-1000, 1000, (2, 320)).astype(np.int32) for _ in range(6)]
    sent = Sent(certain=vectors[:5], interrupted=vectors[5:])

    def total(*times: int) -> np.ndarray:
        return sum((n * vector for n, vector in zip(times, vectors, strict=True)), np.zeros((2, 320), np.int32)).view(
            np.uint32
        )

    assert balance(sent, total(1, 1, 1, 1, 1, 0)) == balance(sent, total(1, 1, 1, 1, 1, 1)) == Balance()
    assert balance(sent, total(1, 0, 1, 1, 1, 1)) == Balance(lost=2)
    assert balance(sent, total(1, 3, 1, 0, 1, 2)) == Balance(lost=2, repeated=6)
    with pytest.raises(Violation, match="holds something that nobody sent"):
        balance(sent, total(1, 1, 1, 1, 1, 1) + np.uint32(1))


def test_schedule_refuses_events_impossible_in_process(switch: P4Switch) -> None:
    chosen = plan(1, FINE, Event(1, Action.RESTART_SWITCH))
    with pytest.raises(BadFaults, match="restart switch: not in process"):
        Schedule(switch, chosen, itertools.repeat(BSP()))
