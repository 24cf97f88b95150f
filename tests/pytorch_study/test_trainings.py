"""Four ranks, through the switch and through gloo: the study's own way, for a few steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.client.blocks import Layout
from serene.experiments.pytorch_study.cells import GLOO, MAGNITUDES, SERENE, Cell, NotTrained, Results, train_in
from serene.experiments.pytorch_study.measures import Parting, losses
from serene.experiments.pytorch_study.mirrored import BACKEND as MIRRORED
from serene.experiments.pytorch_study.switch import local_switch
from tests.controller.processes import missing, until
from tests.support.warm import warm_python

RANKS, STEPS = 4, 12
# A sum over four ranks is off by at most 2^-24 of a block's largest value through the switch, by about as much in gloo;
# in so few steps training makes little of it.
NEAR = 1e-5

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """Where trainings are kept, while there is a switch for them."""
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")
    with pytest.MonkeyPatch.context() as patch, local_switch(RANKS) as controller:
        patch.setenv("PYTHON_EXEC", warm_python())  # torchrun starts the ranks with it
        yield Results(tmp_path_factory.mktemp("trainings"))
        until(lambda: {job.state.value for job in controller.jobs()} <= {"finished"}, "all jobs are over")


def trained(results: Results, what: str, backend: str, optimiser: str = "sgd") -> Cell:
    cell = Cell(what, backend, optimiser, steps=STEPS, ranks=RANKS)
    for missing_one in results.missing([cell]):
        results.keep(missing_one, train_in(results.directory, missing_one))
    return cell


@pytest.mark.parametrize(("what", "optimiser"), [("ddp", "adam"), ("sharded", "sgd")])
def test_the_losses_of_an_example_are_gloos(results: Results, what: str, optimiser: str) -> None:
    reference = trained(results, what, GLOO, optimiser)
    parting = Parting.of(results, trained(results, what, SERENE, optimiser), reference)
    assert len(parting.differences) == STEPS
    assert parting.largest < NEAR
    course = losses(results, reference)
    assert course[-1] < course[0], "it learns nothing"


def test_gloo_with_its_ranks_reversed_differs_by_rounding(results: Results) -> None:
    """It is what the switch's difference is compared with: not nothing, and no more than rounding."""
    parting = Parting.of(results, trained(results, "ddp", MIRRORED, "adam"), trained(results, "ddp", GLOO, "adam"))
    assert 0 < parting.largest < NEAR


def test_gradients_of_all_magnitudes_keep_their_digits(results: Results) -> None:
    """Where a layer has its blocks to itself."""
    rows = results.result(trained(results, MAGNITUDES, SERENE))
    alone = [row for row in rows if not row["beside"]]
    assert {row["magnitude"] for row in alone} >= {1e-7, 1e-3, 1e4}
    bound = RANKS * 2.0 ** (2 - 28) + 2.0**-24  # docs/decisions/block-exponents.md, and the rounding to float32
    # The bound is a part of the largest value on any rank, the error one of the largest sum, which may be smaller.
    assert max(row["error"] for row in alone) < 2 * bound
    lost = {row["magnitude"] for row in alone if row["fixed"] > 0.5}
    assert lost == {1e-7, 1e3, 1e4}, "the fixed scale has neither small nor large ones"
    assert len(rows) > len(alone)
    assert Layout(RANKS, 320).values_per_block == max(row["values"] for row in rows)


def test_a_training_that_fails_says_why(results: Results, tmp_path: Path) -> None:
    cell = Cell("ddp", "nonesuch", steps=STEPS, ranks=1)
    with pytest.raises(NotTrained, match=r"ended with status 1: .*[Nn]onesuch"):
        train_in(tmp_path, cell)
    assert list(tmp_path.iterdir()) == []
