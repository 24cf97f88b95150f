"""Sentences and verdicts say what the numbers say, also when these are the other way round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.straggler_study.claims import DRASTICALLY, FASTER, swapped, verdict
from experiments.straggler_study.study import Spread
from experiments.straggler_study.words import Answer, change, decided, less

NAN = float("nan")


def spread(*values: float) -> Spread:
    return Spread.of(values)


HALF, TENTH, NONE = spread(-0.5, -0.52, -0.48), spread(-0.1, -0.12, -0.08), spread(0.01, -0.02, 0.0)
WORSE, TORN, NEVER, UNKNOWN = spread(0.3, 0.2, 0.4), spread(-0.2, 0.1, -0.1), spread(NAN, NAN, -0.1), Spread.of(())

ANSWER = Answer(
    0.6,
    switch={0.05: NONE, 0.65: HALF},
    gloo={0.05: NONE, 0.65: TENTH},
    hybrid={0.05: TENTH, 0.65: TENTH},
    bmv2={0.05: UNKNOWN, 0.65: UNKNOWN},
)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (HALF, "saves 50 % (48 to 52)"),
        (WORSE, "takes 30 % more (20 to 40)"),
        (NONE, "changes nothing to speak of (-2 to +1 %)"),
        (TORN, "saves 10 %, but the seeds do not agree (-20 to +10 %)"),
        (NEVER, "does not get there"),
        (UNKNOWN, "was not measured"),
        (spread(-0.2, -0.3, NAN), "saves 20 %, but the seeds do not agree (-30 to never)"),
        (spread(-0.2), "saves 20 %"),
    ],
)
def test_a_change_in_words(found: Spread, said: str) -> None:
    assert change(found) == said


def test_what_the_seeds_decide() -> None:
    assert decided(HALF) and decided(WORSE) and not decided(TORN) and not decided(UNKNOWN)
    assert less(HALF) and not less(WORSE) and not less(TORN) and not less(spread(-0.01, -0.02))


def test_the_answer_names_what_is_worth_more_where() -> None:
    network, stragglers, both = ANSWER.sentences()
    assert "saves 50 % (48 to 52) where the exchange takes 65 % of a step and changes nothing" in network
    assert "saves 10 % (8 to 12)" in stragglers and "BMv2" not in stragglers
    assert "the switch is worth more than the strategy where the exchange takes 65 % of a step" in both
    assert "the strategy is worth more than the switch where the exchange takes 5 % of a step" in both


def test_the_answer_turns_with_the_numbers() -> None:
    other = replace(ANSWER, switch={0.05: HALF, 0.65: WORSE}, bmv2={0.05: WORSE, 0.65: WORSE})
    network, stragglers, both = other.sentences()
    assert "takes 30 % more (20 to 40) where the exchange takes 65 % of a step and saves 50 %" in network
    assert "on BMv2 it takes 30 % more" in stragglers
    assert "the switch is worth more than the strategy where the exchange takes 5 % of a step" in both
    assert "the strategy is worth more than the switch where the exchange takes 65 % of a step" in both


@pytest.mark.parametrize(("switch", "hybrid"), [(TORN, WORSE), (UNKNOWN, UNKNOWN), (NEVER, NONE), (HALF, HALF)])
def test_nothing_is_claimed_that_the_seeds_do_not_decide(switch: Spread, hybrid: Spread) -> None:
    answer = replace(ANSWER, switch={0.3: switch}, hybrid={0.3: hybrid}, gloo={0.3: NONE}, bmv2={})
    assert "neither is clearly worth more than the other where the exchange takes 30 %" in answer.sentences()[2]


@pytest.mark.parametrize(
    ("found", "wanted", "said"),
    [
        ({0.05: TENTH, 0.65: HALF}, None, "holds"),
        ({0.05: NONE, 0.65: HALF}, None, "holds at 65 %, not elsewhere"),
        ({0.05: WORSE, 0.65: TORN}, None, "does not hold here"),
        ({0.05: TENTH, 0.65: HALF}, FASTER, "holds; the amount too at 65 %, not elsewhere: -50 %"),
        ({0.05: HALF, 0.65: HALF}, FASTER, "holds; the amount too: -50 %"),
        ({0.05: TENTH}, FASTER, "the direction holds; the amount does not: at most -10 %"),
        (
            {0.05: NONE, 0.65: TENTH},
            DRASTICALLY,
            "the direction holds at 65 %, not elsewhere; the amount does not: at most -10 %",
        ),
        ({0.05: NEVER}, FASTER, "does not hold here"),
        ({0.05: UNKNOWN}, FASTER, "not measured"),
        ({}, None, "not measured"),
    ],
)
def test_verdicts(found: dict[float, Spread], wanted: float | None, said: str) -> None:
    assert verdict(found, wanted) == said


def test_swaps_hold_only_if_every_contribution_counts_once() -> None:
    assert swapped(5, 0) == "holds"
    assert swapped(0, 0) == "not tried: nothing was swapped"
    assert swapped(5, 2) == "does not hold: contributions were lost or repeated in 2 runs"
