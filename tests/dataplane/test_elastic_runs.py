"""Jobs whose workers come and go, with real clients and the real controller, under random runs.

Nothing is found while the rules are right, and each rule that is broken on purpose is found. More of them:
`python -m serene.experiments.correctness.elastic`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from serene.client import Client
from serene.controller.upkeep import Upkeep
from serene.experiments.correctness.elastic import play
from serene.experiments.correctness.virtual.checks import Balance, Violation
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.program import Program
from tests.model_switch import ModelSwitch
from tests.planted import OFTEN, every_fault_is_found, fault

RUNS = 20
FAULTS = (
    fault("a newcomer skips its first read", Client, "_begin_session",
          "not welcome.lost_sessions and welcome.epoch == 1", "True"),
    fault("silent workers are not evicted", Upkeep, "_evict_silent", "if evicted != before:", "if False:", first=4),
    fault("a job whose last members died does not end", Upkeep, "_end_abandoned",
          "is_deserted(job, self._silent_s(job))", "False", first=43),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["model", "p4"])
def test_correct_rules_pass_random_elastic_runs(kind: str) -> None:
    """Every kind of event occurs in them; otherwise passing would prove little."""
    switch, happened = ModelSwitch() if kind == "model" else P4Switch(Program.load()), Counter[str]()
    for seed in range(RUNS):
        outcome = play(switch, seed, OFTEN)  # raises Violation
        assert outcome.balance == Balance(), seed
        happened.update(outcome.happened)
    expected = {"joined later", "died and came back", "died for good", "evicted", "stood still", "restarted"}
    expected |= {"switch restarts", "called"}
    assert expected - set(happened) == set()


def run(switch: ModelSwitch, seed: int) -> str | None:
    try:
        balance = play(switch, seed).balance
    except Violation as violation:
        return str(violation)
    return None if balance == Balance() else str(balance)


test_elastic_runs_find_each_planted_fault = every_fault_is_found(lambda: partial(run, ModelSwitch()), FAULTS)
