"""The same random packets to BMv2 and to the embedded switch: every output byte is equal.

For Serene's program and for tests/embedded/programs/shapes.p4. What the P4 language leaves open (an invalid header's
fields, the time, a random number) is in none of them: there BMv2 and this switch may well differ.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from serene.program import Program
from tests.embedded import bmv2
from tests.embedded.packets import shapes, trial
from tests.embedded.sanitizers import PROGRAMS
from tests.embedded.serene_job import seeds, start_job
from tests.embedded.stf import Target
from tests.embedded.stf_embedded import EmbeddedTarget
from tests.suites.checkouts import QUICK
from tests.suites.random_packets import difference

PACKETS = 250

pytestmark = [
    pytest.mark.bmv2,
    pytest.mark.skipif(bool(bmv2.why_not()), reason=bmv2.why_not() or "there"),
]


def compare(
    json: Path,
    p4info: Path,
    prepare: Callable[[Target], None],
    packets: Sequence[tuple[int, bytes]],
    flags: tuple[str, ...] = (),
) -> None:
    with contextlib.closing(EmbeddedTarget(json.read_bytes(), flags)) as ours, bmv2.running_bmv2(json, p4info) as peer:
        prepare(ours)
        prepare(bmv2.Bmv2Target(peer, json))
        why_not, came_out = difference(ours, peer, packets)
        assert not why_not
        assert came_out > PACKETS // 10, "BMv2 dropped nearly everything: this compares nothing"


@pytest.mark.parametrize("strategy", [{"staleness": 0, "read_mode": 1}, {"staleness": 2}, {"quorum": 2}])
def test_serene_program_gives_the_same_bytes_as_on_bmv2(strategy: dict[str, int]) -> None:
    program = Program.load("serene")
    packets = trial(random.Random(str(strategy)), seeds(program.lanes), PACKETS)
    compare(program.config_path, program.p4info_path, lambda target: start_job(target, **strategy), packets)


@pytest.mark.parametrize("seed", range(3))
def test_every_shape_of_header_gives_the_same_bytes_as_on_bmv2(seed: int) -> None:
    json, _ = PROGRAMS["shapes"]
    packets = trial(random.Random(seed), shapes(), PACKETS)
    compare(json, json.with_suffix(".p4info.txtpb"), lambda target: None, packets, QUICK)
