"""`SERENE_SCALE`: a fixed scale and IntSGD's in DistributedDataParallel, while the precision changes."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serene.client import FrameTransport, Pool
from serene.client.scale import Scale
from serene.controller.http.client import ControllerClient
from serene.torch.scaling import Scaling
from tests.controller.processes import until
from tests.torch import given_scales
from tests.torch.given_scales import CHANGES, STEPS
from tests.torch.local import Local, outputs, start_ranks

WORKERS = 2
WORKER = ["-m", "tests.torch.given_scales"]
NARROW = {"SERENE_PRECISION": "8"}


def scale(*texts: str, **more: str) -> list[dict[str, str]]:
    return [{"SERENE_SCALE": text, **more} for text in texts]


def trained(local: Local, text: str, *arguments: str, **more: str) -> list[dict[str, Any]]:
    """What each rank found."""
    ranks = start_ranks(local, WORKERS, [*WORKER, *arguments], scale(*[text] * WORKERS, **more))
    return [json.loads(said.splitlines()[-1]) for said in outputs(ranks)]


@pytest.mark.parametrize("text", ["voted", "fixed:0.02", "intsgd"])
def test_nothing_is_lost_while_the_precision_changes(local: Local, text: str) -> None:
    """32 -> 8 -> 32 bits, with error feedback: what was read and what is held back is the gradients' sum, to the bit
    but for the sums of 32 bits, which are rounded to float32; and the switch has counted what the ranks have sent."""
    found = trained(local, text, "feedback", "changes")
    for said in found:
        assert [bits for bits, _ in groupby(said["bits"])] == [32, *CHANGES.values()] and len(said["bits"]) == STEPS
        assert said["apart"] <= said["bits"].count(32) * WORKERS * said["largest"] * 2.0**-24
        assert not said["warnings"] and not said["clipped"] and not said["lost"]
    assert found[0]["gradients"] == found[1]["gradients"]
    with ControllerClient(local.client.url) as client:
        job = until(lambda: client.job(found[0]["job"]), "the job is listed")
        assert [worker.contributions for worker in job.workers] == [said["sent"] for said in found]


@pytest.mark.parametrize("text", ["fixed:0.02", "intsgd"])
def test_to_the_bit_in_8_bits(local: Local, text: str) -> None:
    """IntSGD's first step goes in 32 bits. Gradients that 8 bits have no room for go with the next ones."""
    for said in trained(local, text, "feedback", **NARROW):
        most = WORKERS * said["largest"] * 2.0**-24 if text == "intsgd" else 0
        assert said["apart"] <= most
        assert said["errors"][-1] > 0


def test_without_feedback_what_is_beyond_the_limit_is_clipped_and_said(local: Local) -> None:
    """At the line of the program whose backward pass it was."""
    source = Path(given_scales.__file__).read_text().splitlines()
    lines = [number for number, line in enumerate(source, 1) if "# the user's line" in line]
    for rank, said in enumerate(trained(local, "fixed:0.0001", "rounding", **NARROW)):
        assert said["clipped"] > 0 and not said["lost"]
        for filename, line, text in said["warnings"]:
            assert (Path(filename).name, [line]) == ("given_scales.py", lines)
            assert text.startswith(f"rank {rank}: ") and "gradient values so far were beyond the limit of 0.000" in text
            assert "that fixed:0.0001 has in 8 bits and were clipped to it" in text
        counts = [int(text.split()[2]) for _, _, text in said["warnings"]]
        assert counts and all(later >= 10 * earlier for earlier, later in pairwise(counts)), "not at each step"


def test_what_is_too_much_to_hold_back_is_lost_and_said(local: Local) -> None:
    for rank, said in enumerate(trained(local, "fixed:1e-12", "feedback", **NARROW)):
        assert said["lost"] > 0 and not said["clipped"]
        assert said["apart"] == 0
        (first, *_) = said["warnings"]
        assert Path(first[0]).name == "given_scales.py"
        assert first[2].startswith(f"rank {rank}: ")
        assert "are lost, neither sent nor held back: no more of a value is held back than 2^22 times" in first[2]


def test_intsgd_follows_the_gradients(local: Local) -> None:
    """In 16 bits nothing is clipped, and a sum is off by a level for each rank: 1 / alpha, about a half of the mean's
    root mean square times sqrt(2 n)."""
    for said in trained(local, "intsgd", "rounding", SERENE_PRECISION="16"):
        assert said["errors"][0] < 1e-6 * said["largest"]
        assert max(said["errors"][1:]) < WORKERS * said["largest"] and min(said["errors"][1:]) > 1e-6 * said["largest"]
        assert not said["warnings"]


def test_ranks_with_different_scales_are_told_at_once(local: Local) -> None:
    """Before there is a job: torchrun ends rank 0 as soon as another rank has failed, and nobody would delete it."""

    def created() -> int:
        return sum(log.read_text().count("created: waits for 2 workers") for log in local.folder.glob("*.log"))

    trained(local, "voted", "rounding")
    before = created()
    assert before > 0
    for text in outputs(start_ranks(local, WORKERS, [*WORKER, "rounding"], scale("intsgd", "fixed:1")), expect=1):
        assert "NotOpened: rank 1 of the group: $SERENE_SCALE is fixed:1 here and intsgd on rank 0 of the group" in text
    assert created() == before


@pytest.mark.parametrize("text", ["fixed:100", "intsgd"])
@pytest.mark.parametrize("bits", ["32", "8"])
def test_ranks_that_end_earlier_join(local: Local, text: str, bits: str) -> None:
    """What a rank that has joined sums beside its backward pass, the others sum in theirs: so it tells no rank anything
    of the scale, and afterwards all have the same one."""
    more = scale(*[text] * WORKERS, SERENE_PRECISION=bits)
    for said in outputs(start_ranks(local, WORKERS, ["-m", "tests.torch.narrow_gradients"], more)):
        found = json.loads(said.splitlines()[-1])
        assert found["joined"] in (2, 3) and found["same"] and not found["repeated"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_another_scale_is_refused_on_any_number_of_ranks(local: Local, ranks: int) -> None:
    for text in outputs(start_ranks(local, ranks, [*WORKER, "rounding"], scale(*["fixed:0"] * ranks)), expect=1):
        assert "$SERENE_SCALE is 'fixed:0': expected voted, fixed:LIMIT or intsgd, with a limit from 1e-25" in text


def test_another_precision_is_refused_where_there_is_one_rank(local: Local) -> None:
    (text,) = outputs(start_ranks(local, 1, [*WORKER, "rounding"], [{"SERENE_PRECISION": "4"}]), expect=1)
    assert "NotOpened: $SERENE_PRECISION is '4': expected 32, 16 or 8" in text


def test_the_buckets_of_a_backward_pass_have_one_scale() -> None:
    """That of the passes before, whatever was read of the first buckets."""
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
