"""The protocol's rules (tests/model.py) with real clients and the real controller, under random runs.

Nothing is found while the rules are right, and each rule that is broken on purpose is found. `python -m tests.planted`
is the same, longer.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from serene.client.session import restoration
from serene.controller import upkeep
from serene.errors import SereneError
from serene.experiments.correctness.schedules import NUMBERS, PAIRS, play
from serene.experiments.correctness.tallies import Pair
from serene.experiments.correctness.virtual.checks import Balance, Violation
from serene.experiments.correctness.virtual.plan import Plan
from serene.experiments.correctness.virtual.random_plans import random_plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.program import Program
from serene.strategy import BSP
from tests.model import Model
from tests.model_switch import ModelSwitch
from tests.planted import FAULTS, OFTEN, Line, every_fault_is_found, of_the_protocol, planted

QUICK = 100  # runs; what takes longer is hunted by the command


def test_correct_rules_pass_random_runs() -> None:
    """Every kind of event occurs in them; otherwise passing would prove little."""
    switch, happened = ModelSwitch(), Counter[str]()
    for seed in range(200, 300):  # in 213 a LEAVE of an older incarnation comes late, which is rare
        plan = random_plan(seed, OFTEN)
        outcome = Schedule(switch, plan, alternating(FAMILIES, seed, plan.workers)).run()  # raises Violation
        assert outcome.balance == Balance(), seed
        assert switch.unread == 0, seed
        happened.update(outcome.happened)
    expected = {
        "restarted", "stood still", "joined again", "second processes", "evicted", "readmitted", "jobs deleted",
        "controller restarts", "clock set back", "clock set ahead", "gave up and joined again", "sent away",
        "took its place back",
        "switch restarts", "switch restarts when the job is over", "nothing to read when the job was over",
        "called", "called for an older session", "WAIT to an older incarnation",
        "HELLO of an older incarnation", "LEAVE of an older incarnation", "WELCOME to an older incarnation",
        "hostile: forged answers", "hostile: forged nudges", "hostile: forged refusals", "hostile: forged welcomes",
        "hostile: forged goodbyes", "hostile: forged addresses", "hostile: spoofed contributions",
        "hostile: spoofed goodbyes", "hostile: spoofed hellos", "hostile: replays",
    }  # fmt: skip
    assert expected - set(happened) == set()


NOT_READ = next(
    fault.lines[0] for fault in FAULTS if fault.rule == "a worker that joins again contributes without reading"
)
BEING_DELETED = Line(
    Schedule, "refused", "started_for is not self.ledger or self._deleting", "started_for is not self.ledger"
)


@pytest.mark.parametrize(
    ("pair", "number", "seed", "mistake", "broke"),
    [
        (("quorum", "ssp"), 5091, 2, NOT_READ, "1 contributions lost"),
        (("ssp", "asp"), 5142, 78, NOT_READ, "PlaceTaken"),
        (("quorum", "asp"), 20077, 230, NOT_READ, "2 contributions lost"),
        # A worker starts in the tick in which its job is deleted: refused, it is started anew, and so not stopped.
        (("quorum", "mixed"), 75, 3, BEING_DELETED, "worker 0 was refused: job 0 was deleted"),
    ],
    ids=["5091", "5142", "20077", "75"],
)
def test_formerly_failing_plans_pass(pair: Pair, number: int, seed: int, mistake: Line, broke: str) -> None:
    """They failed with another controller, which drew other random numbers. Each has a seed that fails again if the
    mistake is repeated."""
    plan = random_plan(PAIRS.index(pair) * NUMBERS + number, take_overs=0.0, restarts=0.0, slow=0.0)
    again = replace(plan, seed=seed, faults=replace(plan.faults, seed=seed))
    switch = P4Switch(Program.load())

    def found() -> str:
        try:
            balance = Schedule(switch, again, alternating(pair, plan.seed, plan.workers)).run().balance
        except Violation as violation:
            return str(violation)
        return f"{balance.lost} contributions lost" if balance != Balance() else ""

    with planted(mistake):
        assert broke in found()
    assert not found()
    switch.close()


def test_restoration_over_racks_needs_its_third_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a worker reads votes as gradients under ASP: its leaf lacks what other racks' workers have returned."""
    run = partial(play, ("asp", "mixed"), 900_012, Program.load(), 3)
    assert run().balance == Balance()
    for module in (restoration, upkeep):
        monkeypatch.setattr(module, "rounds", lambda racks: 2)
    with pytest.raises(Violation, match="replica is not what it has read"):
        run()


def two_workers() -> Schedule:
    return Schedule(ModelSwitch(), Plan(1, 1, (4, 4), (0.1, 0.1)), itertools.repeat(BSP()))


def test_two_processes_of_a_worker_use_different_udp_ports() -> None:
    run = two_workers()
    place = run.places[0]
    place.start()
    port = place.present.host.udp_port
    place.start()
    assert len(place.incarnations) == 1
    place.start(udp_port=port + 1)
    place.present.die()
    place.start()
    assert [process.host.udp_port - port for process in place.incarnations] == [0, 1, 1]
    run.close()


@pytest.mark.parametrize("comes_back", [True, False])
def test_model_allows_refusal_of_dead_worker_only_if_restarted(comes_back: bool) -> None:
    run = two_workers()
    place = run.places[0]
    place.start()
    first = place.present
    place.start(udp_port=first.host.udp_port + 1)
    place.present.die()
    first.die()
    if comes_back:
        place.start_after(1.0)
        run.refused(first, "another process has its place")
        run.run_until(1.1)
        assert place.present.process.alive
    else:
        with pytest.raises(Violation, match="nobody is stopped: worker 0 was refused: another process has its place"):
            run.refused(first, "another process has its place")
    run.close()


def test_model_restarts_worker_refused_for_an_ended_process() -> None:
    run = two_workers()
    run.start()
    place = run.places[0]
    run.run_until(0.2)
    first = place.present
    place.start(udp_port=first.host.udp_port + 1)
    while not run.holds_its_place(place.present):
        assert first.process.alive and run.time.step()
    place.present.die()
    run.refused(first, "another process has its place")
    assert run.happened["the place went to a process that had ended"] == place.awaited == 1
    run.close()


def test_first_process_ends_only_after_the_other_has_its_place() -> None:
    run = two_workers()
    run.start()
    place = run.places[0]
    run.run_until(0.2)
    first = place.present
    place.start(udp_port=first.host.udp_port + 1)
    run.events.end_first(first, 100.0)
    assert first.process.alive
    while not run.holds_its_place(place.present):
        assert run.time.step()
    run.events.end_first(first, 100.0)
    assert not first.process.alive
    run.close()


test_random_runs_find_each_planted_fault = every_fault_is_found(
    of_the_protocol, [fault for fault in FAULTS if fault.runs <= QUICK]
)


def test_planted_fault_is_removed_afterwards_and_must_match() -> None:
    right = Model._request
    with planted(Line(Model, "_request", "slot.base = round_ + 1", "slot.base = round_")):
        assert Model._request is not right
    assert Model._request is right
    with (
        pytest.raises(SereneError, match="is there 0 times, expected once"),
        planted(Line(Model, "_request", "no such line", "")),
    ):
        pass
