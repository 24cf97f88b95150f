"""One event loop for all tests of a process.

gRPC's poller serves all loops of a process by one pair of sockets. An event of a closed loop raises in the next one,
which then may wait for answers that never come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LOOP = asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns. As by `asyncio.run`, tasks that it has left are cancelled."""
    asyncio.set_event_loop(LOOP)
    try:
        return LOOP.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(LOOP)
        for task in left:
            task.cancel()
        LOOP.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        LOOP.run_until_complete(LOOP.shutdown_asyncgens())
