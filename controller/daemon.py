"""The process: a coordinator and its HTTP interface in one event loop, from start to SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from controller.coordinator import Coordinator
from controller.http.connections import Connection
from controller.http.guard import Guard
from controller.http.listeners import tcp_listener, unix_listener
from controller.http.server import application
from controller.settings import Settings, host_and_port, is_loopback
from serene.http import UNIX, token

LOG = logging.getLogger("serene.controller")


def run(settings: Settings) -> None:
    """Serve until SIGINT, SIGTERM or POST /v1/shutdown. Raises SereneError when the start fails."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)-7s %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with ExitStack() as open_:
        # Before the switch is connected: a second controller must not disturb the first one's switch.
        listeners = [open_.enter_context(tcp_listener(settings.http))]
        if settings.socket:
            listeners.append(open_.enter_context(unix_listener(settings.socket)))
        # While it was connecting to the switch.
        open_.enter_context(suppress(asyncio.CancelledError, KeyboardInterrupt))
        asyncio.run(_serve(settings, listeners))


async def _serve(settings: Settings, listeners: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    this = asyncio.current_task()
    assert this is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, this.cancel)

    coordinator = Coordinator(settings)
    await coordinator.bring_up()
    for number in (signal.SIGINT, signal.SIGTERM):  # from here on they are the server's
        loop.remove_signal_handler(number)
    host, _ = host_and_port(settings.http)
    guard = partial(Guard, token=token(), on_loopback=is_loopback(host))
    server = _Server(coordinator, guard, loop)
    work = asyncio.create_task(coordinator.run())
    work.add_done_callback(lambda _: server.stop())
    LOG.info("listening on http://%s%s", settings.http, f" and {UNIX}{settings.socket}" if settings.socket else "")
    try:
        await server.serve(sockets=listeners)
    finally:
        work.cancel()
        await asyncio.wait([work])
    if not work.cancelled():
        work.result()  # raises what ended it
    LOG.info("stopped; the switch goes on")


class _Server(uvicorn.Server):
    """uvicorn, which ends the live streams before it waits for its connections to end."""

    def __init__(
        self, coordinator: Coordinator, guard: Callable[[ASGIApp], Guard], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._loop = loop
        self._stopping = asyncio.Event()
        app = application(coordinator, guard, self.stop, self._stopping)
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=2,
            )
        )

    def stop(self) -> None:
        self._stopping.set()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal, which uvicorn catches outside the loop."""
        self._loop.call_soon_threadsafe(self.stop)
