"""Gradients in 16 and 8 bits, under a fixed scale and IntSGD's, with error feedback, while the precision changes: in
DistributedDataParallel, by `SERENE_PRECISION`, `SERENE_SCALE` and `serenectl precision`."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from serene.client import FrameTransport, Pool
from serene.client.allreduce.scale import Scale
from serene.controller.http.client import ControllerClient
from serene.errors import SereneError
from serene.torch import ErrorFeedback
from serene.torch.feedback import PerParameter
from serene.torch.scaling import Scaling
from tests.controller.processes import until
from tests.torch import gradients
from tests.torch.gradients import STEPS
from tests.torch.local import Local, outputs, start_ranks

WORKERS = 2  # the mean is half the sum, to the bit


def trained(local: Local, scale: str, bits: int, *arguments: str) -> list[dict[str, Any]]:
    """Returns each rank's findings."""
    given = {"SERENE_SCALE": scale, "SERENE_PRECISION": str(bits)}
    ranks = start_ranks(local, WORKERS, ["-m", "tests.torch.gradients", *arguments], [given] * WORKERS)
    found = [json.loads(text.splitlines()[-1]) for text in outputs(ranks)]
    for text in found:
        assert [step["digest"] for step in text["steps"]] == [step["digest"] for step in found[0]["steps"]]
        assert max(abs(step["other"]) for step in text["steps"]) < 1e-6
        assert text.get("joined", {"repeated": 0})["repeated"] == 0
    return found


def largest(report: dict[str, Any]) -> float:
    return float(max(step["largest"] for step in report["steps"]))


def formats(report: dict[str, Any]) -> list[int]:
    """One after the other, without repeats."""
    assert len(report["steps"]) == STEPS
    return [bits for bits, _ in groupby(step["bits"] for step in report["steps"])]


def created(local: Local) -> int:
    """How many jobs so far."""
    return sum(log.read_text().count("created: waits for 2 workers") for log in local.folder.glob("*.log"))


def test_gradient_error_is_bounded_by_the_levels_of_its_format(local: Local) -> None:
    """While the precision changes; the switch's counters equal what the ranks sent. A sum may be off by one level for
    each worker. Levels divide a block's limit T, which is at most four times (16 bits) or twice (8 bits) the largest
    value."""
    before = created(local)
    found = trained(local, "voted", 32, "5=16", "12=8")
    assert created(local) == before + 1
    levels = {bits: (2 ** (bits - 1) - 1) // WORKERS for bits in (16, 8)}
    most = {32: 1e-6, 16: 4 * WORKERS / levels[16], 8: 2 * WORKERS / levels[8]}
    contributions: dict[int, set[int]] = {32: set(), 16: set(), 8: set()}
    for report in found:
        assert formats(report) == [32, 16, 8]
        for step in report["steps"]:
            contributions[step["bits"]].add(step["contributions"])
            assert step["error"] / step["largest"] < most[step["bits"]]
        for bits in (16, 8):  # or they would not have so few bits
            errors = [step["error"] / step["largest"] for step in report["steps"] if step["bits"] == bits]
            assert max(errors) > most[bits] / 100
        assert not report["warnings"] and not report["clipped"] and not report["lost"]
    assert max(contributions[8]) < min(contributions[16]) <= max(contributions[16]) < min(contributions[32])
    assert [report["joined"]["steps"] for report in found] == [2, 3]
    with ControllerClient(local.client.url) as client:
        job = until(lambda: client.job(found[0]["job"]), "the job is listed")
        assert job.precision == 8
        assert [epoch.reason for epoch in job.history][:3] == ["started", "precision 16", "precision 8"]
        assert all(worker.contributions == worker.contributions_sent for worker in job.workers)


@pytest.mark.parametrize("scale", ["voted", "fixed:0.02", "intsgd"])
def test_error_feedback_in_ddp_loses_nothing(local: Local, scale: str) -> None:
    """8 -> 16 -> 8 bits: reads plus residuals equal the gradients' sum, to the bit. IntSGD's first step uses 32 bits,
    whose sums are rounded to float32."""
    found = trained(local, scale, 8, "feedback", "7=16", "14=8")
    for report in found:
        assert formats(report) == [8, 16, 8] and report["buckets"] > 1
        assert report["apart"] <= (WORKERS * largest(report) * 2.0**-24 if scale == "intsgd" else 0)
        assert report["held"] > 0 and report["steps"][-1]["error"] > 0
        assert report["kept"] == [True, scale != "voted"], "under a voted scale nothing is lost"
        assert not report["warnings"] and not report["clipped"] and not report["lost"]
        assert report["sparse"] == [0.5, 0.5, 0, 0, 0, 1]


def test_clipping_without_feedback_warns_at_the_users_line(local: Local) -> None:
    """The warning names the line of the program that ran the backward pass."""
    source = Path(gradients.__file__).read_text().splitlines()
    lines = [number for number, line in enumerate(source, 1) if "# the user's line" in line]
    for rank, report in enumerate(trained(local, "fixed:0.0001", 8)):
        assert report["clipped"] > 0 and not report["lost"] and report["joined"]["steps"] == 2 + rank
        for filename, line, text in report["warnings"]:
            assert (Path(filename).name, [line]) == ("gradients.py", lines)
            assert text.startswith(f"rank {rank}: ") and "gradient values so far exceeded the limit of 0.000" in text
            assert "that fixed:0.0001 has in 8 bits and were clipped; " in text
        counts = [int(text.split()[2]) for _, _, text in report["warnings"]]
        assert counts and all(later >= 10 * earlier for earlier, later in pairwise(counts)), "not at each step"


def test_residual_overflow_is_lost_with_warning(local: Local) -> None:
    for rank, report in enumerate(trained(local, "fixed:1e-12", 8, "feedback")):
        assert report["lost"] > 0 and not report["clipped"]
        assert report["apart"] == 0
        (first, *_) = report["warnings"]
        assert Path(first[0]).name == "gradients.py"
        assert first[2].startswith(f"rank {rank}: ")
        assert "are lost: residuals are limited to 2^22 times" in first[2]


def test_intsgd_scale_follows_the_gradients(local: Local) -> None:
    """With 16 bits nothing is clipped, and a sum is off by a level for each rank: 1 / alpha, about half of the mean's
    root mean square times sqrt(2 n). What a joined rank sums beside its backward pass, the others sum within theirs: so
    it changes no rank's scale, and all ranks have the same one afterwards."""
    for rank, report in enumerate(trained(local, "intsgd", 16)):
        first, *errors = [step["error"] for step in report["steps"]]
        assert first < 1e-6 * largest(report)
        assert max(errors) < WORKERS * largest(report) and min(errors) > 1e-6 * largest(report)
        assert not report["warnings"] and report["joined"]["steps"] == 2 + rank


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"SERENE_SCALE": "intsgd"}, {"SERENE_SCALE": "fixed:1"}],
         "rank 1 of the group: $SERENE_SCALE is fixed:1 here and intsgd on rank 0 of the group"),
        ([{"SERENE_PRECISION": "16"}, {"SERENE_PRECISION": "8"}],
         "rank 1 of the group: $SERENE_PRECISION is 8 here and 16 on rank 0 of the group"),
        ([{"SERENE_PRECISION": "4"}] * 2,
         "rank 0 of the group could not create a job: $SERENE_PRECISION is '4': expected 32, 16 or 8"),
        ([{"SERENE_PRECISION": "4"}], "$SERENE_PRECISION is '4': expected 32, 16 or 8"),
        ([{"SERENE_SCALE": "fixed:0"}], "$SERENE_SCALE is 'fixed:0': expected voted, fixed:LIMIT or intsgd, with a "
                                        "limit from 1e-25"),
    ],
    ids=["scales", "precisions", "precision", "precision of one rank", "scale of one rank"],
)  # fmt: skip
def test_differing_or_bad_group_settings_are_refused_on_all_ranks(
    local: Local, given: list[dict[str, str]], message: str
) -> None:
    """Before a job exists: torchrun ends rank 0 as soon as another rank has failed, and the job would never be
    deleted."""
    before = created(local)
    for text in outputs(start_ranks(local, len(given), ["-m", "tests.torch.gradients"], given), expect=1):
        assert f"NotOpened: {message}" in text
    assert created(local) == before


def test_buckets_of_one_backward_pass_share_a_scale() -> None:
    """The scale follows the passes before, whatever the first buckets have read."""
    transport = FrameTransport(0, local=("127.0.0.1", 0), switch=("127.0.0.1", 9))
    with Pool(transport, 0, 0, slots=4, lanes=320, precision=8) as pool:
        scaling = Scaling(Scale.of("intsgd"), pool, 0, 2)
        for size in (1e3, 1.0):
            assert scaling.of(1) == (32, None), "nothing is known before the first pass has ended"
            scaling.learn(np.full(10, size, np.float32))
        bits, unit = scaling.of(2)
        assert bits == 8 and unit is not None
        scaling.learn(np.full(10, 1e9, np.float32))
        assert scaling.of(2) == (bits, unit)
        assert scaling.of(None) == (32, None), "these are no gradients"
        bits, later = scaling.of(3)
        assert bits == 8 and later is not None and later > unit


def test_residual_follows_its_parameter_between_buckets() -> None:
    """DistributedDataParallel rebuilds its buckets."""
    kept = PerParameter()
    first, second, third = (nn.Parameter(torch.zeros(size)) for size in (3, 4, 5))
    held = kept.of_bucket([first, second])
    held[:] = torch.arange(7.0)
    assert kept.of_bucket([first, second]) is held
    kept.of_bucket([third])[:] = 9.0
    assert kept.of_bucket([second, third]).tolist() == [3, 4, 5, 6, 9, 9, 9, 9, 9]
    assert kept.of_bucket([first]).tolist() == [0, 1, 2]
    assert kept.of(third).tolist() == [9] * 5
    assert len(kept._by_bucket) == 2


def test_error_feedback_refuses_other_process_groups() -> None:
    with pytest.raises(SereneError, match="error feedback needs a process group 'serene' with a job"):
        ErrorFeedback(object())  # type: ignore[arg-type]
