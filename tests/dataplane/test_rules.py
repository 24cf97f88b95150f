"""The protocol's rules (tests/model.py) with real clients and the controller's own decisions, under random runs.

Nothing is found while the rules are right, and each rule that is broken on purpose is found. `python -m tests.planted`
is the same, longer.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from experiments.correctness.schedules import play
from experiments.correctness.tallies import Pair
from experiments.correctness.virtual.checks import Balance, Violation
from experiments.correctness.virtual.plan import Plan
from experiments.correctness.virtual.random_plans import random_plan
from experiments.correctness.virtual.schedule import Schedule
from experiments.shared.random_strategies import FAMILIES, alternating
from serene.errors import SereneError
from serene.program import Program
from serene.strategy import BSP
from tests.model import Model
from tests.model_switch import ModelSwitch
from tests.planted import FAULTS, OFTEN, Fault, Line, hunt, planted

QUICK = 100  # runs; what takes longer is hunted by the command


def test_the_right_rules() -> None:
    """And everything that may befall a run does, or these would prove little."""
    switch, happened = ModelSwitch(), Counter[str]()
    for seed in range(200, 350):  # in 324 a LEAVE of an older incarnation comes late, which has become rare
        plan = random_plan(seed, OFTEN)
        outcome = Schedule(switch, plan, alternating(FAMILIES, seed, plan.workers)).run()  # raises Violation
        assert outcome.balance == Balance(), seed
        happened.update(outcome.happened)
    expected = {
        "restarted", "stood still", "joined again", "second processes", "evicted", "readmitted", "jobs deleted",
        "controller restarts", "clock set back", "clock set ahead", "gave up and joined again", "sent away",
        "HELLO of an older incarnation", "LEAVE of an older incarnation", "WELCOME to an older incarnation",
        "hostile: forged answers", "hostile: forged nudges", "hostile: forged refusals", "hostile: forged welcomes",
        "hostile: forged goodbyes", "hostile: forged addresses", "hostile: spoofed contributions",
        "hostile: spoofed goodbyes", "hostile: spoofed hellos", "hostile: replays",
    }  # fmt: skip
    assert expected - set(happened) == set()


@pytest.mark.parametrize(
    ("pair", "number"),
    [
        # A worker starts in the tick in which its job is deleted: refused, it is started anew, and so not stopped.
        (("quorum", "mixed"), 75),
        # A process joins again and takes its place back from a second one: its user does not end it then.
        (("bsp", "bsp"), 196),
    ],
)
def test_runs_that_were_taken_for_wrong_ones(pair: Pair, number: int) -> None:
    assert play(pair, number, Program.load()).balance == Balance()


def two_workers() -> Schedule:
    return Schedule(ModelSwitch(), Plan(1, 1, (4, 4), (0.1, 0.1)), itertools.repeat(BSP()))


def test_two_processes_of_a_worker_have_not_one_udp_port() -> None:
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
def test_who_lost_its_place_to_a_process_between_its_death_and_its_restart_is_not_stopped(comes_back: bool) -> None:
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


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.runs <= QUICK], ids=lambda fault: fault.rule)
def test_a_broken_rule_is_found(fault: Fault) -> None:
    found = hunt(0, fault.runs, *fault.lines)
    assert found is not None


def test_a_planted_fault_is_gone_afterwards_and_has_to_be_there() -> None:
    right = Model._request
    with planted(Line(Model, "_request", "slot.base = round_ + 1", "slot.base = round_")):
        assert Model._request is not right
    assert Model._request is right
    with (
        pytest.raises(SereneError, match="is there 0 times, expected once"),
        planted(Line(Model, "_request", "no such line", "")),
    ):
        pass
