"""Max-min fair rates, compared with cases worked out by hand and with the definition."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from serene.experiments.network_study.flows.maxmin import Floats, rates

FREE = np.inf


def solve(
    capacity: Sequence[float] | Floats,
    uses: Sequence[tuple[int, int, float]],
    weight: Sequence[float] | Floats | None = None,
    limit: Sequence[float] | Floats | None = None,
) -> Floats:
    """uses: (flow, link, share)."""
    flow, link, share = (np.array(column) for column in zip(*uses, strict=True))
    count = int(flow.max()) + 1
    return rates(
        np.array(capacity, dtype=float), flow, link, share.astype(float),
        np.ones(count) if weight is None else np.array(weight, dtype=float),
        np.full(count, FREE) if limit is None else np.array(limit, dtype=float),
    )  # fmt: skip


def test_max_min_rates_match_the_textbook_case() -> None:
    """One flow over both links, and one over each: the first link is the bottleneck."""
    found = solve([1.0, 3.0], [(0, 0, 1), (0, 1, 1), (1, 0, 1), (2, 1, 1)])
    assert np.allclose(found, [0.5, 0.5, 2.5])


def test_max_min_rates_respect_weights_limits_and_shares() -> None:
    assert np.allclose(solve([6.0], [(0, 0, 1), (1, 0, 1)], weight=[1, 2]), [2, 4])
    assert np.allclose(solve([6.0], [(0, 0, 1), (1, 0, 1)], limit=[1, FREE]), [1, 5])
    # The second flow takes half of its rate of the link.
    assert np.allclose(solve([6.0], [(0, 0, 1), (1, 0, 0.5)]), [4, 4])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_random_max_min_rates_satisfy_the_definition(data: st.DataObject) -> None:
    """Each flow is at its limit, or has a full link on which its rate over weight is the largest."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    links, flows = int(random.integers(1, 8)), int(random.integers(1, 12))
    capacity = random.uniform(1, 10, links)
    uses = [
        (flow, link, random.choice([0.05, 0.5, 1.0]))
        for flow in range(flows)
        for link in random.choice(links, int(random.integers(1, links + 1)), replace=False)
    ]
    weight = random.uniform(0.5, 2, flows)
    limit = np.where(random.random(flows) < 0.3, random.uniform(0.1, 5, flows), FREE)
    found = solve(capacity, uses, weight, limit)
    load = np.zeros(links)
    for flow, link, share in uses:
        load[link] += share * found[flow]
    assert (load <= capacity * (1 + 1e-9)).all()
    assert (found > 0).all()
    for flow in range(flows):
        tight = [
            link
            for who, link, _ in uses
            if who == flow
            and load[link] >= capacity[link] * (1 - 1e-9)
            and all(
                found[other] / weight[other] <= found[flow] / weight[flow] * (1 + 1e-9)
                for other, where, _ in uses
                if where == link
            )
        ]
        assert tight or found[flow] >= limit[flow] * (1 - 1e-9)
