"""Users' own programs: a training with `Session` that reports no times, and a P4 program with the rule that
docs/tutorial/own-p4-change.md adds."""

from __future__ import annotations

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from serene.client import Client, Session
from serene.strategy import BSP
from tests.controller.processes import ROOT, Start, SwitchProcess, metrics, serenectl, until
from tests.controller.trees import adding_to

VALUES = 700


def session_of(switch: SwitchProcess, worker: int, total: np.ndarray) -> Session:
    return Session(Client(switch.transport(worker), 0, worker, VALUES), adding_to(total))


def test_worker_between_its_exchanges_is_reported_computing(switch: SwitchProcess, start: Start) -> None:
    """Worker 0 measures none of its times, worker 1 does."""
    controller = start()
    controller.client.create_job(2, BSP())
    sessions = [session_of(switch, worker, np.zeros(VALUES, np.float32)) for worker in range(2)]

    def step(session: Session) -> None:
        session.exchange(np.ones(VALUES, np.float32))

    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Session.join, sessions))
            for _ in range(3):
                sessions[1].facts["compute_s"] += 1.0
                list(pool.map(step, sessions))

        def seen() -> bool:
            report = controller.client.job(0).workers[0].report
            return report is not None and report["state"] == "computing"

        until(seen, "it is seen to compute")
        assert sessions[0].telemetry()["compute_s"] > 0
        assert sessions[1].telemetry()["compute_s"] == 3.0
    finally:
        for session in sessions:
            session.client.close()
        controller.client.delete_job(0)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Serene's program with the page's change, compiled by the page's command."""
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("needs p4c-bm2-ss")
    page = (ROOT / "docs" / "tutorial" / "own-p4-change.md").read_text()
    folder = tmp_path_factory.mktemp("own")
    shutil.copytree(ROOT / "p4src", folder / "mine" / "p4src", ignore=shutil.ignore_patterns("build"))
    (change,) = re.findall(r"^```diff\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (folder / "change.diff").write_text(change)
    for command in re.findall(r"^    \$ ((?:git apply|p4c-bm2-ss).*)$", page, re.MULTILINE):
        within = folder / "mine" / "p4src" if command.startswith("p4c") else folder
        subprocess.run(command, shell=True, cwd=within, check=True)
    return folder / "mine" / "mine.json"


def test_custom_drop_rule_appears_as_a_metric(start: Start, switch: SwitchProcess, changed: Path) -> None:
    """It drops contributions, so workers retransmit them; each still counts exactly once."""
    controller = start("--program", str(changed))
    controller.client.create_job(2, BSP())
    totals = np.zeros((2, VALUES), np.float32)
    sessions = [session_of(switch, worker, totals[worker]) for worker in range(2)]

    def dropped() -> float:
        name = r'^serene_switch_dropped_packets_total{reason="on_purpose"} (.*)$'
        found = re.search(name, metrics(controller.client).text, re.MULTILINE)
        assert found is not None
        return float(found[1])

    steps = 0
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Session.join, sessions))
            for steps in range(1, 5001):
                list(pool.map(lambda session: session.exchange(np.ones(VALUES, np.float32)), sessions))
                if steps % 50 == 0 and dropped():
                    break
            assert dropped() > 0
            assert all(pool.map(lambda session: session.finish(60), sessions))
    finally:
        for session in sessions:
            session.client.close()
    assert (totals == 2 * steps).all()
    assert "dropped packets: on purpose " in serenectl("status", controller=controller.url).stdout
    controller.client.delete_job(0)
