"""What the command line shows of workers' reports, whatever these contain."""

from __future__ import annotations

import pytest

from serene.controller.commands.live import LiveView
from serene.controller.commands.view import fabric_line, switch_lines, whole
from serene.controller.status.model import Snapshot
from serene.report import Facts
from tests.controller.statuses import job_status, printed, status_of, worker_status

REPORTS: list[Facts] = [
    {},
    {"state": 5},
    {"state": True, "loss": True},
    {"state": "[/red]"},
    {"state": "x", "loss": "[/red]", "accuracy": "[link=x]here", "round": "[bold"},
    {"compute_s": -9e15, "network_s": 9e15, "waiting_s": 1e-300},
    {"compute_s": -1, "network_s": 1, "waiting_s": 0},
    {"at_epoch": True, "at_round": -(2**53), "state": "waiting"},
]


@pytest.mark.parametrize("report", REPORTS, ids=str)
@pytest.mark.parametrize("width", [80, 150])
def test_status_and_watch_show_any_report(report: Facts, width: int) -> None:
    status = status_of(job_status(worker_status(0, report)))
    live = LiveView()
    live.add(Snapshot(status=status), 0.0)
    output = printed(whole(status), 150)
    watched = printed(live, width)
    for name in ("state", "loss", "accuracy", "round"):
        value = report.get(name)
        if isinstance(value, str):
            assert value in output, "as it was reported, not as markup"
    assert "job 0" in output and "job 0" in watched


def test_status_names_the_switch_that_is_away() -> None:
    status = status_of(job_status(worker_status(0)))
    (one,) = status.switches
    away = {"connected": False, "trouble": "it does not answer"}
    changes = ({"name": "root", "level": "root"}, {"name": "leaf1", "level": "leaf", "rack": 0},
               {"name": "leaf2", "level": "leaf", "rack": 1})  # fmt: skip
    switches = [one.model_copy(update=change) for change in changes]
    assert fabric_line(status.model_copy(update={"switches": switches})) == "root and 2 racks: all connected"
    status = status.model_copy(update={"switches": [*switches[:2], switches[2].model_copy(update=away)]})
    assert fabric_line(status) == "root and 2 racks: leaf2 NOT connected: it does not answer"
    states = [line.rpartition("; ")[2] for line in switch_lines(status)[1:]]
    assert states == ["connected", "connected", "NOT connected: it does not answer"]


def test_live_view_lists_running_jobs_before_finished_ones() -> None:
    workers = [worker_status(number) for number in range(4)]
    # The ids are not in the order in which the jobs began.
    finished = [job_status(*workers, job=number, state="finished", session=9 - number) for number in range(7)]
    status = status_of(*finished[:3], job_status(*workers, job=7), *finished[3:])
    live = LiveView()
    live.add(Snapshot(status=status), 0.0)
    watched = printed(live, 80).splitlines()[:24]
    assert watched[1].startswith("job 7 runs"), "before the finished ones"
    assert [line.split()[0] for line in watched[3:7]] == ["0", "1", "2", "3"], "all of its workers"
    assert [line.split()[1] for line in watched if "has finished:" in line] == list("210")
    assert [line for line in watched if "more" in line] == ["4 more jobs have finished"]
    output = printed(whole(status), 80)
    assert output.index("job 0: finished") < output.index("job 7: running"), "next to the prompt"
    assert "4 more jobs have finished: 'serenectl status --all'" in output and "job 3: finished" not in output
    assert "1 more job has finished" in printed(whole(status, 6), 80)
    output = printed(whole(status, None), 80)
    assert all(f"job {number}: finished" in output for number in range(7)) and "have finished" not in output


def test_status_line_of_a_worker_fits_80_columns() -> None:
    report: Facts = {
        "state": "exchanging", "round": 99999, "loss": 12.3456, "accuracy": 0.987,
        "compute_s": 1.0, "network_s": 1.0, "waiting_s": 2.0,
    }  # fmt: skip
    worker = worker_status(31, report, iteration=1234567, blocked=1234567, repeats=1234567)
    output = printed(whole(status_of(job_status(worker))), 80)
    assert output.splitlines().count("worker state      iteration round    loss accuracy waiting blocked repeats") == 1
    assert "    31 exchanging   1234567 99999 12.3456    0.987     50% 1234567 1234567" in output
