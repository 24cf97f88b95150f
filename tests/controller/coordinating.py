"""A coordinator in the test's own process, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from controller.coordinator import Coordinator
from controller.settings import settings
from tests.controller.processes import PORTS, SwitchProcess

PATIENCE_S = 60.0


@asynccontextmanager
async def commanding(switch: SwitchProcess, **changes: object) -> AsyncIterator[Coordinator]:
    """A coordinator that commands the switch, until the end of the block. changes: of its settings."""
    coordinator = Coordinator(settings(ports=f"1-{PORTS}").model_copy(update={"switch": switch.grpc, **changes}))
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
