"""Sentences and verdicts say what the numbers say, also when these are the other way round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serene.experiments.straggler_study.claims import DRASTICALLY, FASTER, swapped, verdict
from serene.experiments.straggler_study.study import Spread
from serene.experiments.straggler_study.words import Answer, Through, change, decided, less

NAN = float("nan")


def spread(*values: float) -> Spread:
    return Spread.of(values)


HALF, TENTH, NONE = spread(-0.5, -0.52, -0.48), spread(-0.1, -0.12, -0.08), spread(0.01, -0.02, 0.0)
WORSE, TORN, NEVER, UNKNOWN = spread(0.3, 0.2, 0.4), spread(-0.2, 0.1, -0.1), spread(NAN, NAN, -0.1), Spread.of(())

OURS = Through(
    "the embedded switch",
    server={0.05: NONE, 0.65: HALF},
    gloo={0.05: NONE, 0.65: TENTH},
    hybrid={0.05: TENTH, 0.65: TENTH},
)
ON_BMV2 = Through(
    "BMv2", server={0.05: WORSE, 0.65: TENTH}, gloo={0.05: WORSE, 0.65: NONE}, hybrid={0.05: TENTH, 0.65: HALF}
)
UNKNOWN_BMV2 = Through("BMv2", *({0.05: UNKNOWN, 0.65: UNKNOWN} for _ in range(3)))
ANSWER = Answer(0.6, [OURS, ON_BMV2])
AT_LEAST = Spread.of([-0.3, -0.2], 2, bounds=1)


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
        (AT_LEAST, "saves at least 25 %"),
        (Spread.of([0.1], 1, bounds=1), "takes at most 10 % more"),
    ],
)
def test_a_change_in_words(found: Spread, said: str) -> None:
    assert change(found) == said


def test_what_the_seeds_decide() -> None:
    assert decided(HALF) and decided(WORSE) and not decided(TORN) and not decided(UNKNOWN)
    assert less(HALF) and not less(WORSE) and not less(TORN) and not less(spread(-0.01, -0.02))
    assert less(AT_LEAST)
    assert not decided(Spread.of([0.1, 0.2], 2, bounds=1))  # at most so much more


def test_the_answer_names_what_is_worth_more_where_on_each_switch() -> None:
    network, stragglers, both = ANSWER.sentences()
    assert "On the embedded switch, instead of in one parameter server, it saves 50 % (48 to 52) where" in network
    assert "On BMv2, instead of in one parameter server, it saves 10 % (8 to 12) where" in network
    assert "and takes 30 % more (20 to 40) at 5 %" in network
    assert "on the embedded switch saves 10 %" in stragglers and "on BMv2 saves 50 %" in stragglers
    assert "on the embedded switch the switch is worth more than the strategy at 65 %" in both
    assert "; the strategy is worth more than the switch at 5 %; and on BMv2 the strategy is worth more" in both
    assert "on BMv2 the strategy is worth more than the switch at 65 % and 5 %." in both


def test_the_answer_turns_with_the_numbers() -> None:
    other = replace(ANSWER, switches=[replace(OURS, server={0.05: HALF, 0.65: WORSE})])
    network, stragglers, both = other.sentences()
    assert "takes 30 % more (20 to 40) where the exchange takes 65 % of a step and saves 50 %" in network
    assert "BMv2" not in f"{network}{stragglers}{both}"
    assert "the strategy is worth more than the switch at 65 %; the switch is worth more" in both


def test_what_was_not_measured_is_said() -> None:
    network, stragglers, both = replace(ANSWER, switches=[OURS, UNKNOWN_BMV2]).sentences()
    assert "On BMv2, instead of in one parameter server, it was not measured where" in network
    assert "on BMv2 was not measured" in stragglers
    assert "on BMv2 it was not measured at 65 % and 5 %" in both


@pytest.mark.parametrize(
    ("server", "hybrid"), [(TORN, WORSE), (NEVER, NONE), (HALF, HALF), (HALF, Spread.of([-0.1], 1, bounds=1))]
)
def test_nothing_is_claimed_that_the_seeds_do_not_decide(server: Spread, hybrid: Spread) -> None:
    through = replace(OURS, server={0.3: server}, hybrid={0.3: hybrid}, gloo={0.3: NONE})
    assert "neither is clearly worth more than the other at 30 %" in Answer(0.6, [through]).sentences()[2]


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
        ({0.05: UNKNOWN, 0.3: HALF, 0.65: HALF}, None, "holds; no result at 5 %"),
        ({0.05: WORSE, 0.3: UNKNOWN}, FASTER, "does not hold here; no result at 30 %"),
    ],
)
def test_verdicts(found: dict[float, Spread], wanted: float | None, said: str) -> None:
    assert verdict(found, wanted) == said


def test_swaps_hold_only_if_every_contribution_counts_once() -> None:
    assert swapped(5, 0) == "holds"
    assert swapped(0, 0) == "not tried: nothing was swapped"
    assert swapped(5, 2) == "does not hold: contributions were lost or repeated in 2 runs"
