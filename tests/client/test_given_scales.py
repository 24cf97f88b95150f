"""Given scales: a fixed one and IntSGD's, in all formats, with and without error feedback.

The oracles: sums in float64 of values cut off at the limit; fractions, where nothing may be lost; and the formula of
IntSGD's authors, written down here once more.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serene.client import Pool
from serene.client.allreduce.blocks import BITS, Layout
from serene.client.allreduce.scale import HELD_LIMITS, UNITS, IntSGD, Scale
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.program import Program
from tests.planted import Play, every_fault_is_found, faults
from tests.support.numbers import exactly, given_limit, same, within_given
from tests.support.pools import FINE, PoolRun, lossy

LANES = 320
WORKERS = 3


# -- a scale's text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["voted", "intsgd", "fixed:0.5", "fixed:1e-20", "fixed:3"])
def test_scale_text_round_trips(text: str) -> None:
    assert str(Scale.of(text)) == text and Scale.of(str(Scale.of(text))) == Scale.of(text)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(BITS), st.integers(1, 32), st.floats(1e-25, 1e25))
def test_given_limit_gets_the_finest_unit_with_room(bits: int, workers: int, limit: float) -> None:
    layout = Layout(workers, LANES, bits).with_limit(limit)
    assert layout.unit is not None
    assert layout.limit == given_limit(workers, bits, layout.unit) == np.float32(layout.limit)
    assert limit <= layout.limit < 2 * limit
    assert workers * layout.limit < np.finfo(np.float32).max


# -- IntSGD's rule --------------------------------------------------------------------------------------------


def alpha(steps: list[np.ndarray], workers: int) -> float:
    """Of the step after these, as the paper has it."""
    r = float(np.linalg.norm(steps[0].astype(np.float64))) ** 2
    for step in steps[1:]:
        r = 0.9 * r + 0.1 * float(np.linalg.norm(step.astype(np.float64))) ** 2
    return math.sqrt(len(steps[-1])) / math.sqrt(2 * workers * r + 1e-16)


@pytest.mark.parametrize("workers", [1, 4, 32])
def test_intsgd_unit_matches_the_authors_formula(workers: int) -> None:
    rule, rng, steps = IntSGD(workers), np.random.default_rng(workers), []
    assert rule.unit is None
    for number in range(30):
        steps.append((rng.normal(size=1000) * 10.0 ** (number % 7 - 3)).astype(np.float32))
        for part in np.array_split(steps[-1], 1 + number % 3):  # as a backward pass hands over its buckets
            rule.add(part * np.float32(workers))
        rule.end_step()
        assert rule.unit is not None
        assert alpha(steps, workers) <= 2.0**-rule.unit < 2 * alpha(steps, workers)


def test_intsgd_unit_ignores_zero_and_nonfinite_steps() -> None:
    rule = IntSGD(4)
    rule.add(np.zeros(10, np.float32))
    rule.end_step()
    assert rule.unit is None
    rule.add(np.full(10, 100, np.float32))
    rule.add(np.full(10, np.nan, np.float32))
    rule.end_step()
    unit = rule.unit
    wanted = alpha([np.full(10, 25, np.float32)], 4)
    assert unit is not None and wanted <= 2.0**-unit < 2 * wanted
    for nothing in (np.zeros(10, np.float32), np.full(10, np.inf, np.float32)):
        rule.add(nothing)
        rule.end_step()
    rule.end_step()
    assert rule.unit == unit


def test_intsgd_unit_stays_within_float32() -> None:
    for size, unit in ((1e-44, UNITS[0]), (3e38, UNITS[1])):
        rule = IntSGD(32)
        rule.add(np.full(1, size, np.float32))
        rule.end_step()
        assert rule.unit is not None and (unit <= rule.unit if unit < 0 else rule.unit == unit)


# -- through the switch --------------------------------------------------------------------------------------


def test_given_scale_needs_fewer_exponent_pieces(switch: P4Switch) -> None:
    """A block takes one lane, instead of one for every few classes."""
    sent = []
    for unit in (None, -4):
        run = PoolRun(switch, 2, 64)
        run.all_reduce([np.ones(200_000, np.float32)] * 2, bits=8, unit=unit)
        sent.append(run.pools[0].counts.sent)
    assert sent[1] == math.ceil(200_000 / (4 * LANES)) + 1 < sent[0]


@pytest.mark.parametrize("bits", BITS)
def test_random_rounding_under_a_given_scale_has_no_bias(switch: P4Switch, bits: int) -> None:
    """With 32 bits too: there a given unit may be far larger than a value."""
    run, total, steps = PoolRun(switch, 1, 4), np.zeros(2000), 50
    given = np.array([0.3, -0.3, 0.9, -1e-3], np.float32).repeat(500)

    def live(worker: int, pool: Pool) -> None:
        for _ in range(steps):
            values = given.copy()
            pool.all_reduce(values, bits=bits, unit=0)
            total[:] += values

    run.play(live)
    assert not run.errors
    means, exact = (each.reshape(4, 500).mean(axis=1) for each in (total / steps, given))
    assert np.abs(means - exact).max() < 5 * 0.5 / math.sqrt(500 * steps)


def play_at_random(switch: P4Switch, seed: int) -> str | None:
    """Uses a given scale in random formats, with values near its limit and far beyond it. Returns a description of the
    first error."""
    rng = np.random.default_rng(seed)
    workers, length, unit = int(rng.integers(1, 5)), int(rng.integers(1, 60 * LANES)), int(rng.integers(-30, 10))
    bits = [int(rng.choice(BITS)) for _ in range(3)]
    run, held = PoolRun(switch, workers, 4, lossy(seed) if seed % 2 else FINE), rng.random() < 0.5
    given, results = [], []
    for of in bits:
        limit = given_limit(workers, of, unit)
        sizes = limit * rng.choice([1e-3, 1.0, 1.0 + 2**-20, 3.0], size=length)
        drawn = [(rng.choice([-1, 1], size=length) * sizes).astype(np.float32) for _ in range(workers)]
        given.append([np.where(rng.random(length) < 1e-3, np.float32(np.nan), vector) for vector in drawn])
        results.append([vector.copy() for vector in given[-1]])
    remainders = [np.zeros(length) for _ in range(workers)]

    def live(worker: int, pool: Pool) -> None:
        for of, step in zip(bits, results, strict=True):
            pool.all_reduce(step[worker], bits=of, unit=unit, residual=remainders[worker] if held else None)

    run.play(live)
    if run.errors:
        return str(run.errors)
    for of, step, vectors_of in zip(bits, results, given, strict=True):
        if not all(same(vector, step[0]) for vector in step):
            return "the workers have read different sums"
        if not held and not within_given(step[0], vectors_of, of, unit):
            return f"a sum in {of} bits is wrong"
    for worker, pool in enumerate(run.pools):
        limits = [given_limit(workers, of, unit) for of in bits]
        clipped = sum(int((np.abs(step[worker]) > limit).sum()) for step, limit in zip(given, limits, strict=True))
        if pool.clipped_values != (0 if held else clipped):
            return f"worker {worker} counts {pool.clipped_values} values of {clipped} as clipped"
    return None


def test_given_scales_pass_random_runs(switch: P4Switch) -> None:
    for seed in range(12):
        assert play_at_random(switch, seed) is None, seed


# -- error feedback ------------------------------------------------------------------------------------------


NARROW = (8, 8, 16, 16, 8, 8)  # sums of 32 bits are rounded once more, to float32, when they are read


def accounts(switch: P4Switch, steps: tuple[int, ...] = NARROW, workers: int = 2) -> str | None:
    """Some values are so far beyond the limit that their residual would be too large. Returns a description of the
    first error."""
    unit, length = -6, 6 * LANES + 1
    rng, run = np.random.default_rng(1), PoolRun(switch, workers, 4, lossy(7))
    given = [[rng.normal(size=length).astype(np.float32) for _ in range(workers)] for _ in steps]
    bound = HELD_LIMITS * given_limit(workers, 8, unit)
    for step in given:
        for vector in step:
            vector[:50] *= np.float32(100)  # the residual grows
            vector[50:60] = np.float32(0.6) * bound  # the second one of those is too much
            vector[60:63] = np.float32(1e20)  # each
            vector[63:65] = -np.float32(0.6) * bound if step is given[1] else np.float32(0.9) * bound
    results = [[vector.copy() for vector in step] for step in given]
    held, lost = ([np.zeros(length) for _ in range(workers)] for _ in range(2))

    def live(worker: int, pool: Pool) -> None:
        for bits, step in zip(steps, results, strict=True):
            pool.all_reduce(step[worker], bits=bits, unit=unit, residual=held[worker], lost=lost[worker])

    run.play(live)
    if run.errors:
        return str(run.errors)
    before, after = exactly([v for step in given for v in step]), exactly([*(s[0] for s in results), *held, *lost])
    if 32 not in steps and before != after:
        return "what was read, residual and lost values are not what was given"
    largest = max(given_limit(workers, bits, unit) for bits in steps) * HELD_LIMITS
    if max(float(np.abs(vector).max()) for vector in held) > largest:
        return "the residual is larger than it may be"
    limits = [HELD_LIMITS * given_limit(workers, bits, unit) for bits in steps]
    for worker, pool in enumerate(run.pools):
        kept, beyond = np.zeros(length), 0
        for bits, bound, step in zip(steps, limits, given, strict=True):
            sums = kept + step[worker]
            away = (np.abs(sums) > bound) & (np.abs(sums) > np.abs(kept))
            beyond += int(away.sum())
            most = given_limit(workers, bits, unit) if bits != 32 else 2.0**unit * (2 ** (32 - workers) - 1)
            kept = np.where(away, kept, sums)
            kept -= np.clip(np.rint(kept / 2.0**unit) * 2.0**unit, -most, most)
        if not np.array_equal(kept, held[worker]):
            return f"worker {worker} holds back something else"
        if pool.lost_values != beyond or pool.clipped_values:
            return f"worker {worker} counts {pool.lost_values} lost values of {beyond}"
    return None


def test_sums_residuals_and_losses_add_up_to_the_inputs(switch: P4Switch) -> None:
    assert accounts(switch) is None
    assert accounts(switch, (8, 32, 16, 32, 8)) is None


def test_lost_values_are_counted_without_a_lost_vector(switch: P4Switch) -> None:
    """The caller passes no vector for lost values."""
    run, held = PoolRun(switch, 1, 4), np.zeros(5)
    values = np.array([1, 1e30, -1e30, 0, 2], np.float32)
    run.play(lambda worker, pool: pool.all_reduce(values, bits=8, unit=0, residual=held))
    assert not run.errors
    assert run.pools[0].lost_values == 2 and values.tolist() == [1, 0, 0, 0, 2] and not held.any()


# -- rules broken on purpose ---------------------------------------------------------------------------------


def runs() -> Play:
    switch = P4Switch(Program.load("serene"))
    return lambda seed: play_at_random(switch, seed) or (accounts(switch) if seed == 0 else None)


def steps_of_intsgd() -> Play:
    def play(workers: int) -> str | None:
        try:
            test_intsgd_unit_matches_the_authors_formula(workers)
        except AssertionError as found:
            return str(found)
        return None

    return play


test_given_scale_runs_find_each_planted_fault = every_fault_is_found(runs, faults("given scales"))
test_intsgd_steps_find_each_planted_fault = every_fault_is_found(steps_of_intsgd, faults("IntSGD"))
