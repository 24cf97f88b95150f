"""Collectives of the process group `serene` return what gloo's return."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from serene.torch.gloo import GlooGroup
from serene.torch.gloo import collectives as collectives_of_pytorch
from serene.torch.group import SwitchGroup
from tests.controller.processes import until
from tests.torch import collectives
from tests.torch.comparison import Case
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
def test_serene_collectives_match_gloo(results: list[dict[str, tuple[str, int]]], case: Case) -> None:
    for rank, outcomes in enumerate(results):
        problem, summed = outcomes[case.name]
        assert not problem, f"rank {rank}: {problem}"
        assert summed >= case.summed if case.name in TRAININGS else summed == case.summed


def test_destroying_groups_finishes_their_jobs(results: object, local: Local) -> None:
    until(lambda: {job.state.value for job in local.client.jobs()} == {"finished"}, "the jobs have finished")


@pytest.mark.parametrize("backend", ["serene", "cpu:serene"])
def test_groups_beyond_the_switchs_jobs_use_gloo(results: object, local: Local, backend: str) -> None:
    """Rank 0 reports it once."""
    texts = outputs(start_ranks(local, 2, ["-m", "tests.torch.ranks", "many_groups", backend, "9"]))
    for text in texts:
        assert sorted(jobs_of(text.splitlines()[-1])) == [*range(8), 99, 99]
    notice = "the group of the ranks 0, 1 goes through gloo: rank 0 of the group could not create a job: all 8 job ids"
    assert [text.count(notice) for text in texts] == [1, 0]


def jobs_of(line: str) -> list[int]:
    """Parses the output of many_groups: the groups' jobs, 99 for none."""
    jobs, right = line.rsplit(" ", 1)
    assert right == "True", line
    return list(json.loads(jobs.replace("None", "99")))


def test_recreated_groups_get_new_jobs(local: Local) -> None:
    """More of them than there are unused job ids."""
    rounds = [5] * 4  # beside the default group
    for text in outputs(start_ranks(local, 2, ["-m", "tests.torch.ranks", "many_groups", "serene", *map(str, rounds)])):
        lines = [line for line in text.splitlines() if line.startswith("[")]
        assert [len({*jobs_of(line)} & {*range(8)}) for line in lines] == [1 + groups for groups in rounds], text


# What PyTorch's C++ code looks for in Python besides collectives: none of these waits for gloo's threads. gloo has no
# coalescing, so that the two begin nothing.
SAFE = {
    "abort", "getBackendName", "getGroupDesc", "getGroupName", "getRank", "getSize", "get_reconfigure_handle",
    "mergeRemoteGroup", "setGroupDesc", "setGroupName", "splitGroup", "start_coalescing", "end_coalescing",
    "supports_reconfigure",
}  # fmt: skip


def looked_up_in_python() -> set[str]:
    """The names that PyTorch's C++ code looks for in a Python subclass of `ProcessGroup`: its header comes with it."""
    folder = Path(torch.__file__).parent / "include/torch/csrc/distributed/c10d"
    (header,) = folder.rglob("PyProcessGroup.hpp")
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\\\n", "", header.read_text(), flags=re.DOTALL)
    overrides = re.findall(r"\bWORK_OVERRIDE\(\s*ProcessGroup,\s*(\w+)", text)
    overrides += re.findall(r"\bPYBIND11_OVERRIDE\(\s*[^;()]*?\bProcessGroup,\s*(\w+)", text)
    others = re.findall(r"get_override\(\s*static_cast<const ProcessGroup\*>\(this\),\s*\"(\w+)\"", text)
    found = {*overrides, *others}
    assert {"allreduce", "broadcast", "recv", "all_gather_single_coalesced"} <= found, "the header has another form"
    assert len(re.findall(r"get_override\(", text)) == len(others) + 2  # that of `Work`, and the macro's
    return found


def test_no_fallback_collective_holds_the_gil() -> None:
    """A collective that none of our classes defines can deadlock with gloo's threads."""
    ours = {*vars(SwitchGroup), *vars(GlooGroup)}
    assert looked_up_in_python() - ours - SAFE == set()
    assert not SAFE & collectives_of_pytorch()


def test_every_pytorch_collective_is_overridden() -> None:
    """Also those that C++ code does not look up yet."""
    some = "allreduce allgather gather scatter reduce alltoall send recv_anysource barrier"
    assert {*some.split()} <= collectives_of_pytorch()
    assert collectives_of_pytorch() <= {*vars(SwitchGroup), *vars(GlooGroup)}


def test_gloo_collectives_do_not_wait_for_gloo_threads(local: Local) -> None:
    """With the GIL held, four ranks hang after a few collectives: `outputs` has a deadline."""
    for text in outputs(start_ranks(local, 4, ["-m", "tests.torch.ranks", "busy_gloo"])):
        assert text.splitlines()[-1] == "over"


def test_profiler_shows_sums_and_debug_detail_compares_calls(local: Local) -> None:
    detail = [{"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}] * 2
    for text in outputs(start_ranks(local, 2, ["-m", "tests.torch.ranks", "watched"], detail)):
        assert "serene:all_reduce serene:reduce_scatter_single\n" in text
        assert "Detected mismatch between collectives on ranks" in text
