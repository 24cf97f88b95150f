"""The protocol's rules (tests/model.py) with real clients and the controller's own decisions, under random runs.

Nothing is found while the rules are right, and each rule that is broken on purpose is found. `python -m tests.planted`
is the same, longer.
"""

from __future__ import annotations

from collections import Counter

import pytest

from experiments.correctness.schedules import Pair, play
from experiments.correctness.virtual.checks import Balance
from experiments.correctness.virtual.random_plans import random_plan
from experiments.correctness.virtual.schedule import Schedule
from experiments.shared.random_strategies import FAMILIES, alternating
from serene.errors import SereneError
from serene.program import Program
from tests.model import Model
from tests.model_switch import ModelSwitch
from tests.planted import FAULTS, OFTEN, Fault, Line, hunt, planted

QUICK = 100  # runs; what takes longer is hunted by the command


def test_the_right_rules() -> None:
    """And everything that may befall a run does, or these would prove little."""
    switch, happened = ModelSwitch(), Counter[str]()
    for seed in range(150):
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
