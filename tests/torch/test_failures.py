"""What each rank reports when another dies, leaves or disagrees, and when the switch or the controller is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from serene.controller.jobs.job import JobState
from tests.controller.processes import until
from tests.torch import ranks
from tests.torch.local import PATIENCE_S, Local, local_switch, outputs, start_ranks

WORKERS = 3


def start(local: Local, folder: Path, **settings: float) -> list[subprocess.Popen[str]]:
    """Ranks that sum for ever, as soon as all have begun."""
    arguments = [f"{name}={value}" for name, value in settings.items()]
    began = [folder / f"began-{rank}" for rank in range(WORKERS)]
    processes = start_ranks(local, WORKERS, ["-m", "tests.torch.failing", str(folder), *arguments])
    until(
        lambda: all(file.exists() for file in began) or any(process.poll() is not None for process in processes),
        "all ranks sum",
        PATIENCE_S,
    )
    return processes


def last_lines(texts: Sequence[str]) -> list[str]:
    """The last line of each rank."""
    return [text.strip().splitlines()[-1] if text.strip() else "" for text in texts]


@pytest.mark.parametrize("settings", [{}, {"way": 1}, {"forks": 1}], ids=["all_reduce", "DDP", "with children"])
def test_killed_rank_fails_the_others_collective(local: Local, tmp_path: Path, settings: dict[str, int]) -> None:
    """Its children keep neither its connections nor its port."""
    processes = start(local, tmp_path, **settings)
    processes[1].kill()
    try:
        lines = last_lines(outputs(processes, expect=None))
    finally:
        (tmp_path / "over").touch()
    for rank in (0, 2):
        assert lines[rank].startswith(f"rank {rank}: CollectiveFailed: all_reduce of float32["), lines[rank]
        assert lines[rank].endswith("], SUM: rank 1 of the group has died")
    assert [process.returncode for process in processes] == [0, -signal.SIGKILL, 0]


GONE = "rank 1 of the group has left it, or its program has ended"


@pytest.mark.parametrize(
    ("how", "why", "own"),
    [
        ("leaves", GONE, ""),
        ("raises", GONE, "[rank1]: ValueError: a mistake in the program"),
        ("breaks", "on rank 1: MemoryError('none left')", None),
    ],
)
def test_rank_that_leaves_raises_or_breaks_ends_all_ranks(
    local: Local, tmp_path: Path, how: str, why: str, own: str | None
) -> None:
    """At once, not at the group's timeout. own: rank 1's last line, None for the same as the others'."""
    lines = last_lines(outputs(start(local, tmp_path, **{how: 1}), expect=0 if own is None else None))
    for rank, text in enumerate(lines):
        failed = f"rank {rank}: CollectiveFailed: all_reduce of float32[7, 100], SUM: {why}"
        assert text == (failed if rank != 1 or own is None else own)


def test_rank_out_of_memory_ends_all_ranks(local: Local, tmp_path: Path) -> None:
    """Nothing was sent, but a later collective may be queued: so all ranks end, and at once."""
    for rank, text in enumerate(last_lines(outputs(start(local, tmp_path, grows=1)))):
        assert text.startswith(f"rank {rank}: CollectiveFailed: all_reduce of float32["), text
        assert "on rank 1: RuntimeError(" in text and "allocate memory" in text, text


def test_destroy_process_group_completes_pending_collectives(local: Local) -> None:
    """Also the collectives queued behind them."""
    for text in outputs(start_ranks(local, 2, ["-m", "tests.torch.ranks", "leave"])):
        assert text.split() == ["True"] * ranks.COLLECTIVES


def test_multiprocessing_ranks_leave_when_they_end(mine: Local) -> None:
    """They destroy no group, and Python runs no atexit handlers in them."""
    for text in outputs(start_ranks(mine, 2, ["-m", "tests.torch.ranks", "leave_forked"])):
        assert text.split() == ["True"] * ranks.COLLECTIVES
    assert [job.state for job in mine.client.jobs()] == [JobState.FINISHED]


def test_ranks_that_disagree_report_each_others_calls(local: Local, tmp_path: Path) -> None:
    """Every rank reports who called what; the group stays usable."""
    texts = outputs(start(local, tmp_path, uneven=2, again=1))
    calls = "ranks 0, 1: all_reduce of float32[7, 100], SUM; rank 2: all_reduce of float32[7, 101], SUM"
    for rank in range(WORKERS):
        lines = texts[rank].splitlines()
        assert lines[0] == f"rank {rank}: CollectiveFailed: the ranks' calls differ: {calls}"
        assert lines[1:] == ["again"]


@pytest.mark.parametrize("setting", ["timeout_s", "later_s"])
def test_killed_switch_ends_the_group_within_its_timeout(mine: Local, tmp_path: Path, setting: str) -> None:
    """No rank waits for another rank's timeout."""
    processes = start(mine, tmp_path, **{setting: 5})
    record = next(mine.folder.glob("switch-*.json"))
    os.kill(json.loads(record.read_text())[0], signal.SIGKILL)
    for rank, text in enumerate(last_lines(outputs(processes))):
        assert text.startswith(f"rank {rank}: CollectiveFailed: all_reduce of float32[7, 100], SUM: on rank "), text
        assert "the collective did not finish within 5 s" in text


def test_restarted_switch_ends_the_group(mine: Local, tmp_path: Path) -> None:
    """The sums are lost, so the group ends long before its timeout. `serenectl down` refuses to stop a group's
    switch."""
    processes = start(mine, tmp_path)
    refused = mine.serenectl("down")
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        "error: job 0 is running: stop the controller anyway with 'serenectl down --force'"
    ), refused
    record = next(mine.folder.glob("switch-*.json"))
    os.kill(json.loads(record.read_text())[0], signal.SIGKILL)
    assert mine.serenectl("down", "--force").returncode == 0
    mine.up()
    for rank, text in enumerate(last_lines(outputs(processes))):
        assert text.startswith(f"rank {rank}: CollectiveFailed: all_reduce of float32[7, 100], SUM: on rank "), text
        assert "is over for this worker" in text or "cannot send" in text, text


def test_group_survives_a_killed_controller(mine: Local, tmp_path: Path) -> None:
    """Ranks continue to sum, and a rank that leaves is still noticed."""
    processes = start(mine, tmp_path, leaves=0, after=400)
    os.kill(int(next(mine.folder.glob("controller-*.pid")).read_text()), signal.SIGKILL)
    lines = last_lines(outputs(processes))
    for rank in (1, 2):
        assert lines[rank].endswith("rank 0 of the group has left it, or its program has ended")
    mine.up()  # so that there is one to stop


@pytest.mark.parametrize("way", [[], ["--udp"]], ids=["shm", "udp"])
def test_job_of_killed_ranks_is_removed(embedded: None, tmp_path: Path, way: list[str]) -> None:
    """The kernel reports that their ports are free."""
    with local_switch(tmp_path, "--gone-after", "3600", *way) as local:
        processes = start(local, tmp_path)
        assert [job.pool for job in local.client.jobs()] == [True]
        for process in processes:
            process.kill()
        outputs(processes, expect=None)
        until(lambda: local.client.jobs() == [], "the job is gone")


def test_more_ranks_than_ports_are_refused(embedded: None, tmp_path: Path) -> None:
    with local_switch(tmp_path, "--ports", "1-2") as local:
        texts = outputs(start_ranks(local, WORKERS, ["-m", "tests.torch.failing", str(tmp_path)]), expect=1)
        for text in texts:
            assert "all 2 local ports of the switch are taken (the last one: " in text
            assert "); get more with 'serenectl up --local --ports 1-N'" in text
        until(lambda: local.client.jobs() == [], "the job is gone")
