"""The process: a coordinator and its HTTP interface in one event loop, from start to an interrupt."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from serene.controller.coordinator import Coordinator
from serene.controller.http.connections import Connection
from serene.controller.http.guard import Guard
from serene.controller.http.listeners import tcp_listener, unix_listener
from serene.controller.http.server import application
from serene.controller.settings import Settings, host_and_port, is_loopback
from serene.http import UNIX, token
from serene.process.interrupts import Interrupted, allowed, coming, held

LOG = logging.getLogger("serene.controller")


def run(settings: Settings) -> None:
    """Serves until an interrupt (`serene.process.interrupts`) or POST /v1/shutdown. Raises SereneError if the start
    fails."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)-7s %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with suppress(Interrupted), held():
        _run(settings)
        with allowed():
            pass  # raises the interrupt that has ended `_run`: it is no error


def _run(settings: Settings) -> None:
    with ExitStack() as open_:
        # First: a second controller fails here, before it can disturb the first one's switch.
        listeners = [open_.enter_context(tcp_listener(settings.http))]
        if settings.socket:
            listeners.append(open_.enter_context(unix_listener(settings.socket)))
        open_.enter_context(suppress(asyncio.CancelledError))  # by an interrupt while it connects to the switch
        asyncio.run(_serve(settings, listeners))


async def _serve(settings: Settings, listeners: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    this = asyncio.current_task()
    assert this is not None
    interrupt = coming()

    def on_interrupt(do: Callable[[], object]) -> None:
        def once() -> None:
            loop.remove_reader(interrupt)
            do()

        loop.add_reader(interrupt, once)

    on_interrupt(this.cancel)
    coordinator = Coordinator(settings)
    await coordinator.bring_up()
    host, _ = host_and_port(settings.http)
    guard = partial(Guard, token=token(), on_loopback=is_loopback(host))
    server = _Server(coordinator, guard)
    work = asyncio.create_task(coordinator.run())
    work.add_done_callback(lambda _: server.stop())
    on_interrupt(server.stop)
    LOG.info("listening on http://%s%s", settings.http, f" and {UNIX}{settings.socket}" if settings.socket else "")
    try:
        await server.serve(sockets=listeners)
    finally:
        work.cancel()
        await asyncio.wait([work])
    if not work.cancelled():
        work.result()  # raises its error
    LOG.info("stopped")  # the command that started it may now stop the switch


class _Server(uvicorn.Server):
    """A uvicorn server that ends the live streams, then waits for its connections to end."""

    def __init__(self, coordinator: Coordinator, guard: Callable[[ASGIApp], Guard]) -> None:
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

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures no signals: `run` handles interrupts from the process's start to its end, also while no server
        runs."""
        yield
