"""Switches with another number of slots than the program was compiled with, on each target.

What these tests cannot see: which registers have to grow (tests/unit/test_slots.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from serene.embedded import Switch, load_program
from serene.embedded.program import memory
from serene.embedded.program.errors import NoMemory
from serene.errors import SereneError
from serene.experiments.performance import any_size
from serene.program import Program
from serene.strategy import BSP
from serene.wire import Op
from tests.controller.hosts import Host, join
from tests.controller.processes import Start, SwitchProcess, serenectl, started

SLOTS = 8200  # more than compiled, so every register must grow, too; in all tests, for each number is compiled anew
VALUES = 320 * SLOTS


def test_larger_slot_count_is_usable_to_its_last_slot(start: Start, hosts: list[Host]) -> None:
    controller = start("--slots", str(SLOTS))
    client = controller.client
    status = client.status().switch
    assert (status.slots, status.bytes_per_slot) == (SLOTS, 3096)
    client.create_job(2, BSP())
    session = join(hosts[:2], 0, VALUES)[0]["session"]
    for number, host in enumerate(hosts[:2]):
        host.push(0, number, [number + 1, 7], session=session, epoch=1, seq=1, slot=SLOTS - 1)
    answer = hosts[1].ask(
        lambda: hosts[1].push(0, 1, [2, 7], session=session, epoch=1, seq=1, slot=SLOTS - 1), Op.ANSWER
    )
    assert answer["total"] == 2
    client.create_job(1, BSP())
    refused = hosts[2].ask(lambda: hosts[2].hello(1, 0, 1), Op.REFUSED)
    assert f"the longest free range has 0 of {SLOTS} slots" in refused.text


def test_other_slot_count_over_a_running_job_needs_the_option(
    start: Start, switch: SwitchProcess, hosts: list[Host]
) -> None:
    first = start("--slots", str(SLOTS))
    started(first.client, hosts[:1], BSP())
    first.kill()
    asked = ["up", "--foreground", "--switch", switch.grpc, "--election-id", "9"]
    asked += ["--http", first.url.removeprefix("http://")]
    refused = serenectl(*asked)
    assert refused.returncode == 1
    assert (
        f"runs this program with {SLOTS} slots. --slots {SLOTS} takes over its jobs; another number" in refused.stderr
    )
    again = start("--slots", str(SLOTS), "--election-id", "10")
    assert [job.state for job in again.client.jobs()] == ["running"]
    again.kill()
    other = start("--slots", "10", "--election-id", "11")
    assert (other.client.jobs(), other.client.status().switch.slots) == ([], 10)


def test_too_many_slots_error_names_largest_count_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program.load()
    needed = memory.state_bytes(load_program(program.with_slots(SLOTS).config))
    monkeypatch.setattr(memory, "free_bytes", lambda: needed)
    with pytest.raises(NoMemory, match=f"{SLOTS + 1} slots; the largest number that fits is {SLOTS}$"):
        Switch.load(program.with_slots(SLOTS + 1).config)
    Switch.load(program.with_slots(SLOTS).config).close()


def test_large_vector_trains_under_quorum_with_live_swaps(tmp_path: Path) -> None:
    """Only on the embedded switch: BMv2 has its ports in Mininet."""
    workers, exchanges = 3, 5
    done = any_size.run(VALUES, workers, exchanges, tmp_path)
    assert done["slots"] == SLOTS
    assert done["swaps"] >= 1
    assert [(worker["complete"], worker["wrong"]) for worker in done["workers"]] == [(True, 0)] * workers
    assert done["applied"] == [exchanges * SLOTS] * workers, "each contribution counts once"
    for worker in done["workers"]:
        assert worker["memory"] - worker["before"] < 5.5 * 4 * VALUES + 18e6, "18 MB, however long the vector is"


def test_training_without_memory_is_refused_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_size, "free_bytes", lambda: 10**9)
    with pytest.raises(
        SereneError, match=r"^training 1,000 values on 4 workers takes about 3 GB of memory, and 1 GB are"
    ):
        any_size.run(1000, 4, 1, tmp_path, train="gpt2")
    assert not [*tmp_path.iterdir()]
