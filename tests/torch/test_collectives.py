"""The process group `serene` gives what gloo gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.controller.processes import until
from tests.torch import collectives
from tests.torch.local import Local, outputs, start_ranks
from tests.torch.trainings import TRAININGS

WORKERS = 3


@pytest.fixture(scope="module")
def results(local: Local, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[str, int]]]:
    """By rank and case: what was wrong, and how many collectives the switch summed."""
    out: Path = tmp_path_factory.mktemp("collectives")
    outputs(start_ranks(local, WORKERS, ["-m", "tests.torch.collectives", str(out)]))
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(WORKERS)]


@pytest.mark.parametrize("case", collectives.cases(), ids=lambda case: case.name)
def test_what_gloo_gives(results: list[dict[str, tuple[str, int]]], case: collectives.Case) -> None:
    for rank, said in enumerate(results):
        problem, summed = said[case.name]
        assert not problem, f"rank {rank}: {problem}"
        assert summed >= case.summed if case.name in TRAININGS else summed == case.summed


def test_the_end_of_the_groups_ends_their_jobs(results: object, local: Local) -> None:
    until(lambda: {job.state.value for job in local.client.jobs()} == {"finished"}, "the jobs have finished")
