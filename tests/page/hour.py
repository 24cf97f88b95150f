"""A controller that looks as after an hour with 32 workers: its jobs and records are made up, and it has no switch.

``python -m tests.page.hour`` serves it, to be looked at in a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Iterator
from functools import partial

import uvicorn

from serene.controller.coordinator import Coordinator
from serene.controller.http.guard import Guard
from serene.controller.http.server import application
from serene.controller.jobs.plans import Swap
from serene.controller.settings import settings
from serene.controller.status.recorder import BIN_S, BINS
from serene.report import Facts
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from tests.controller.planning import at
from tests.controller.processes import listens, until
from tests.ports import some_port

WORKERS = 32
HOUR_S = BIN_S * BINS
SWAPS: dict[int, Strategy] = {600: SSP(3), 1200: ASP(), 1800: Quorum(31), 2400: BSP(), 3000: SSP(10), 3500: BSP()}


def filled() -> Coordinator:
    """A coordinator with a job that began an hour ago and whose iterations take about a second."""
    there = Coordinator(settings(switch=f"127.0.0.1:{some_port()}"))
    began = time.time() - HOUR_S
    there.jobs.create(WORKERS, BSP())
    plan = None
    for worker in range(WORKERS):
        plan = there.jobs.hello(0, worker, at(worker + 1), 79510, began)
    assert plan is not None
    there.jobs.started(plan, began)  # type: ignore[arg-type]  # the last one starts the job
    for after, strategy in SWAPS.items():
        swap = there.jobs.plan_swap(0, strategy)
        assert isinstance(swap, Swap)
        there.jobs.swapped(swap, began + after)
    chance, t, step = random.Random(1), began, 0
    while t < began + HOUR_S:
        t, step = _round(there, chance, t, step), step + 1
    return there


def _round(there: Coordinator, chance: random.Random, t: float, step: int) -> float:
    """Plays one round: all workers compute, send, and wait for the slowest. Returns when the next round begins."""
    computing = [0.4 + 0.3 * chance.random() + (chance.random() < 0.05) for _ in range(WORKERS)]
    end = t + max(computing) + 0.1
    for worker, seconds in enumerate(computing):
        loss = 2.3 * 0.998**step + 0.2 * chance.random()
        facts: Facts = {"loss": loss, "accuracy": 1 - loss / 3, "iteration": step, "at_epoch": 7, "at_round": step}
        for state, at_s in (("computing", t), ("exchanging", t + seconds), ("waiting", t + seconds + 0.1)):
            there.recorder.note(0, worker, {"state": state, **facts}, at_s)
        there.jobs[0].workers[worker].report = {"state": "waiting" if worker else "computing", **facts}
        there.jobs[0].workers[worker].reported_at = time.monotonic()
    return end


async def _serve(there: Coordinator, port: int, stop: threading.Event) -> None:
    app = application(there, partial(Guard, token=None, on_loopback=True), lambda: None, asyncio.Event())
    server = uvicorn.Server(uvicorn.Config(app, port=port, http="h11", ws="none", log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    turn = 0
    while not stop.is_set():
        for worker in range(WORKERS):
            state = ("computing", "computing", "exchanging", "waiting")[(turn + worker) % 4]
            report: Facts = {
                "state": state,
                "loss": 0.1,
                "accuracy": 0.97,
                "iteration": 4000 + turn // 4,
                "at_epoch": 7,
            }
            there.recorder.note(0, worker, report, time.time())
        turn += 1
        await asyncio.sleep(0.25)  # the interval of the workers' reports, in s
    server.should_exit = True
    await serving


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Serves the page, and yields its address. Meanwhile the workers continue to report."""
    there, port, stop = filled(), some_port(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(there, port, stop)))
    thread.start()
    try:
        until(lambda: not thread.is_alive() or listens(f"127.0.0.1:{port}"), "it listens")
        yield f"http://127.0.0.1:{port}"
    finally:
        stop.set()
        thread.join()


if __name__ == "__main__":
    with serving() as url:
        print(url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
