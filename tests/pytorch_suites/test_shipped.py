"""A part of PyTorch's own tests passes on the process group `serene`; `make pytorch-suites` plays them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from serene.experiments.shared import page_tables
from tests.controller.processes import missing
from tests.pytorch_suites.__main__ import PAGE, parts, read
from tests.pytorch_suites.playing import Ended, play, shipped
from tests.torch.local import local_switch

# Of each of its files, and of what tests/torch/collectives.py has not.
PART = [
    "Distributed.test_all_gather_object_subgroup",
    "Distributed.test_ddp_create_graph",
    "Distributed.test_send_recv_any_source",
    "Comparison.test_ddp_comparison",
    "UnderAutograd.test_backward_ddp_outside",
]


def test_suites_page_matches_the_committed_results() -> None:
    assert page_tables.filled(PAGE, parts(read())) == PAGE.read_text()


def test_part_of_pytorchs_suite_passes_on_serene(tmp_path: Path) -> None:
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")
    with local_switch(tmp_path) as local:
        ended = play("serene", shipped((), "", 3), local.environment, PART)
    assert ended == dict.fromkeys(PART, Ended("passed"))
