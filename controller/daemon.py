"""The process: a coordinator and its HTTP interface in one event loop, from start to SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

import uvicorn

from controller.coordinator import Coordinator
from controller.http.server import application
from controller.settings import Settings, host_and_port
from serene.errors import SereneError

LOG = logging.getLogger("serene.controller")


class PortInUse(SereneError):
    """Somebody listens where the HTTP interface should be."""


def run(settings: Settings) -> None:
    """Serve until SIGINT, SIGTERM or POST /v1/shutdown. Raises SereneError when the start fails."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)-7s %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    stopped_early = suppress(asyncio.CancelledError, KeyboardInterrupt)  # while it was connecting to the switch
    with _listen(settings.http) as listener, stopped_early:
        asyncio.run(_serve(settings, listener))


def _listen(http: str) -> socket.socket:
    """Bound before the switch is connected: a second controller must not disturb the first one's switch."""
    host, port = host_and_port(http)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol spelt out, asyncio turns Nagle's algorithm off, which costs 40 ms an answer otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortInUse(
            f"cannot listen on {http}: {error.strerror}; is a controller running already ('serenectl "
            "status')? --http HOST:PORT chooses another port"
        ) from None
    return listener


async def _serve(settings: Settings, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    this = asyncio.current_task()
    assert this is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, this.cancel)

    coordinator = Coordinator(settings)
    await coordinator.bring_up()
    for number in (signal.SIGINT, signal.SIGTERM):  # from here on they are the server's
        loop.remove_signal_handler(number)
    server = _Server(coordinator, loop)
    work = asyncio.create_task(coordinator.run())
    work.add_done_callback(lambda _: server.stop())
    LOG.info("listening on http://%s", settings.http)
    try:
        await server.serve(sockets=[listener])
    finally:
        work.cancel()
        await asyncio.wait([work])
    if not work.cancelled():
        work.result()  # raises what ended it
    LOG.info("stopped; the switch goes on")


class _Server(uvicorn.Server):
    """uvicorn, which ends the live streams before it waits for its connections to end."""

    def __init__(self, coordinator: Coordinator, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stopping = asyncio.Event()
        app = application(coordinator, self.stop, self._stopping)
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",  # the one of uvicorn's parsers that bounds what it takes as headers
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
