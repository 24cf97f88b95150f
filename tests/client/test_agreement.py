"""A worker's measurements of its gradients, compared with gradient descent on quadratics, where they are known."""

from __future__ import annotations

import numpy as np
import pytest

from serene.client.session.agreement import SAMPLED, Agreement

WORKERS, SIZE = 3, 2 * SAMPLED


def descended(rate: float, noise: float = 0.0, *, steps: int = 12) -> list[Agreement]:
    """Returns the measurements of workers that train under BSP on a quadratic of curvature 1. Each gradient has its own
    noise, a share of the gradient's length."""
    random = np.random.default_rng(1)
    parameters, workers = random.normal(size=SIZE), [Agreement() for _ in range(WORKERS)]
    for _ in range(steps):
        scale = noise * np.sqrt(np.mean(parameters**2))
        gradients = (parameters + scale * random.normal(size=(WORKERS, SIZE))).astype(np.float32)
        for worker, gradient in zip(workers, gradients, strict=True):
            worker.note(worker.sample(gradient), worker.sample(gradients.sum(axis=0)))
        parameters = parameters - rate * gradients.mean(axis=0)
    return workers


@pytest.mark.parametrize(("rate", "left"), [(0.5, 1.0), (1.5, -1.0)])
def test_agreement_after_is_negative_beyond_the_stable_rate(rate: float, left: float) -> None:
    for worker in descended(rate):
        assert worker.exchanges == 11
        assert worker.before == pytest.approx(11, rel=1e-3)
        assert worker.after == pytest.approx(11 * left, rel=1e-3)


@pytest.mark.parametrize(("noise", "agreement"), [(0.0, 1.0), (3.0, 1 / 10 / np.sqrt((1 + 9 / 2) / 10))])
def test_agreement_of_noisy_gradients_matches_the_closed_form(noise: float, agreement: float) -> None:
    """The update contains ``noise**2 / WORKERS`` of noise, which the next gradient reverses."""
    rate = 0.1
    for worker in descended(rate, noise, steps=40):
        assert worker.before / worker.exchanges == pytest.approx(agreement, abs=0.02)
        assert worker.after / worker.before == pytest.approx(1 - noise**2 / WORKERS * rate / (1 - rate), abs=0.05)


def test_agreement_of_integer_vectors_needs_two_exchanges() -> None:
    measured, vector = Agreement(), np.array([3, -4], np.int32)
    measured.note(vector, 2 * vector)
    assert measured.facts() == {}
    measured.note(-vector, -vector)
    assert measured.facts() == pytest.approx({"agreement": 1.0, "agreement_after": -1.0})
    measured.note(vector, 2 * vector)
    assert measured.facts() == pytest.approx({"agreement": 1.0, "agreement_after": -1.0}), "the others sent nothing"
