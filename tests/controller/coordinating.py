"""A coordinator in the test's own process, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any

import pytest
from typing_extensions import ParamSpec

from serene.client import Client, SessionLost
from serene.controller.clock import SYSTEM, Clock
from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import JobState
from serene.controller.settings import settings
from tests.controller.hosts import Host, join
from tests.controller.processes import PORTS

PATIENCE_S = 120.0

P = ParamSpec("P")


def played(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs a test in an event loop of its own, for 200 s at most."""

    @wraps(test)
    def play(*arguments: P.args, **named: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), 200))

    return play


@asynccontextmanager
async def commanding(
    switch: str, ports: int = PORTS, clock: Clock = SYSTEM, **changes: object
) -> AsyncIterator[Coordinator]:
    """A coordinator, until the end of the block. switch: the value of ``--switch``, or a Unix socket's address, which
    gRPC takes and the command line does not. ports: how many there are for workers. changes: of its settings."""
    changed = settings(ports=f"1-{ports}", wait=PATIENCE_S).model_copy(update={"switch": switch, **changes})
    coordinator = Coordinator(changed, clock=clock)
    await coordinator.bring_up()
    work = asyncio.create_task(coordinator.run())
    try:
        yield coordinator
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def until(condition: Callable[[], object], what: str) -> None:
    """Polls until ``condition`` is true. what: for the AssertionError, if it takes longer than PATIENCE_S."""

    async def holds() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    try:
        await asyncio.wait_for(holds(), PATIENCE_S)
    except asyncio.TimeoutError:
        raise AssertionError(f"not within {PATIENCE_S:g} s: {what}") from None


async def join_all(coordinator: Coordinator, hosts: list[Host], job: int = 0, vector_length: int = 5) -> int:
    """Has all hosts join a job, and returns its session. The switch answers a HELLO before the coordinator has the
    job's start on record."""
    await asyncio.to_thread(join, hosts, job, vector_length)
    known = coordinator.jobs[job]
    await until(lambda: known.state is JobState.RUNNING, f"job {job} runs")
    return known.session


def rejoin(member: Client) -> None:
    """Waits until a worker learns that its session is lost, joins it to the next one, and reads the restored sums."""
    with pytest.raises(SessionLost):
        while True:
            member.ask_while_idle()
    member.join()
    member.catch_up()
