"""What the controller sees of a program that trains with `Session` and says nothing of its computing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from serene.client import Client, Session
from serene.strategy import BSP
from tests.controller.processes import ControllerProcess, SwitchProcess, until

VALUES = 700


def session_of(switch: SwitchProcess, worker: int) -> Session:
    return Session(Client(switch.transport(worker), 0, worker, VALUES))


def test_between_its_exchanges_it_computes(switch: SwitchProcess, controller: ControllerProcess) -> None:
    """Worker 0 keeps no account of its time, worker 1 does."""
    controller.client.create_job(2, BSP())
    sessions = [session_of(switch, worker) for worker in range(2)]

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
