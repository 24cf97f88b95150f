"""What the command line shows of workers' reports: whatever they say, it is shown and nothing breaks."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from controller.commands.live import LiveView
from controller.commands.view import whole
from serene.strategy import BSP, to_dict

REPORTS: list[dict[str, Any]] = [
    {},
    {"state": 5},
    {"state": True, "loss": True},
    {"state": "[/red]"},
    {"state": "x", "loss": "[/red]", "accuracy": "[link=x]here", "round": "[bold"},
    {"compute_s": -9e15, "network_s": 9e15, "waiting_s": 1e-300},
    {"compute_s": -1, "network_s": 1, "waiting_s": 0},
    {"at_epoch": True, "at_round": -(2**53), "state": "waiting"},
]


def status_with(report: dict[str, Any]) -> dict[str, Any]:
    counts = dict.fromkeys(("contributions", "repeats", "blocked", "answers", "releases", "nudges"), 0)
    worker = {
        "worker": 0,
        "state": "running",
        "iteration": 3,
        "silent_s": 0.1,
        "staleness": [1],
        "report": report,
        **counts,
    }
    job = {
        "job": 0, "state": "running", "session": 1, "epoch": 1, "strategy": to_dict(BSP()), "automatic": None,
        "restoring": False, "lost_sessions": 0, "vector_length": 5, "slots": 1, "workers_expected": 1, "history": [],
        "workers": [worker],
    }  # fmt: skip
    switch = {
        "address": "127.0.0.1:9559", "device_id": 0, "program": "serene", "slots": 1, "lanes": 320, "connected": True,
        "trouble": None, "drops": {}, "totals": counts,
    }  # fmt: skip
    return {"switch": switch, "jobs": [job]}


def printed(what: Any, width: int) -> str:
    console = Console(width=width, height=40)
    with console.capture() as text:
        console.print(what)
    return text.get()


@pytest.mark.parametrize("report", REPORTS, ids=str)
@pytest.mark.parametrize("width", [80, 150])
def test_status_and_watch_show_any_report(report: dict[str, Any], width: int) -> None:
    status = status_with(report)
    live = LiveView()
    live.hear({"event": "status", "status": status}, 0.0)
    told = printed(whole(status), 150)
    watched = printed(live, width)
    for name in ("state", "loss", "accuracy", "round"):
        if isinstance(report.get(name), str):
            assert report[name] in told, "as it was said, not as markup"
    assert "job 0" in told and "job 0" in watched
