"""Jobs read back from a switch's entries: every strategy is recognised from what it compiled to."""

from __future__ import annotations

from pathlib import Path

import finsy as fy
import pytest
from finsy.p4entity import decode_entity, encode_updates

from controller import entries
from controller.entries import SwitchAddress
from controller.jobs import Jobs
from controller.plans import Endpoint, Start
from controller.takeover import job_from, recognise
from serene.errors import SereneError
from serene.program import Program
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import SWITCH_IP, SWITCH_MAC, ReadMode

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    "strategy",
    [BSP(), SSP(1), SSP(15), ASP(), Quorum(1), Quorum(3), Mixed((3,)), Mixed((0, 2)), Mixed((1,), 4)],
)
def test_every_strategy_is_recognised(strategy: Strategy) -> None:
    assert recognise(strategy.compile(range(4)), [0, 1, 2, 3]) == (strategy, [0, 1, 2, 3])


def test_a_quorum_among_those_who_remain() -> None:
    assert recognise(Quorum(2).compile([0, 1, 3]), [0, 1, 2, 3]) == (Quorum(2), [0, 1, 3])


def test_unknown_fields() -> None:
    with pytest.raises(SereneError, match="no strategy of 2 workers compiles to"):
        recognise(PolicyFields(0b11, 0, 9, ReadMode.LATEST), [0, 1])


@pytest.mark.parametrize("strategy", [BSP(), Mixed((1,), 2)])
def test_what_is_written_is_read_back(strategy: Strategy) -> None:
    """Through the P4Runtime encoding of the compiled program and back."""
    program = Program.load("serene")
    schema = fy.P4Schema(Path(program.p4info_path), Path(program.config_path))
    jobs = Jobs(slots=8192, lanes=program.lanes, max_jobs=8, max_workers=32)
    jobs.create(2, strategy, job=5, scale=4096)
    members = {
        worker: Endpoint(worker + 1, f"02:00:00:00:00:{worker:02x}", f"10.0.0.{worker}", 40000 + worker)
        for worker in (0, 1)
    }
    for worker, endpoint in members.items():
        start = jobs.hello(5, worker, endpoint, 700, NOW)
    assert isinstance(start, Start)
    jobs.started(start, NOW)

    updates = encode_updates(entries.start(start, SwitchAddress(SWITCH_IP, SWITCH_MAC)), schema)
    written = [decode_entity(update.entity, schema) for update in updates if update.entity.HasField("table_entry")]
    found = entries.installed(written).jobs[5]
    assert found.complete
    job = job_from(5, found, NOW)
    remembered = jobs[5]
    assert (job.session, job.epoch, job.scale, job.slots, job.vector_length, job.strategy) == (
        remembered.session,
        1,
        4096,
        remembered.slots,
        700,
        strategy,
    )
    assert [worker.endpoint for worker in job.workers] == [members[0], members[1]]
    assert [worker.state for worker in job.workers] == [worker.state for worker in remembered.workers]


def test_incomplete_jobs_are_told_apart() -> None:
    entry = entries.job_entry(1, entries.SlotRange(0, 1), 5, 1024, 2, 0)
    entry.match, entry.action = fy.Match(job=1), entry.action
    assert not entries.installed([entry]).jobs[1].complete
