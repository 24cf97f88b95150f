"""The controller of a run: the real `serene.controller.coordinator.Coordinator`, on an event loop in virtual time.

Only its connection to the switch is another one (`serene.experiments.correctness.virtual.server`). Packets go through
the switch between two of its writes, and it can die there. Its successor knows only what it reads from the switch's
entries, and has another clock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import Any

from serene.controller.clock import Clock
from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import Job
from serene.controller.jobs.jobs import Jobs
from serene.controller.settings import Settings, settings
from serene.controller.switch.connection import Connection, Learned, PacketIn, Unreachable
from serene.controller.switch.fabric import Fabric, OnConnected, OnPacket
from serene.controller.switch.switch import SwitchOptions
from serene.entries import Entry
from serene.errors import SereneError
from serene.experiments.correctness.virtual.clock import VirtualLoop
from serene.experiments.correctness.virtual.server import InProcess, Server
from serene.experiments.correctness.virtual.switch import CommandedSwitch
from serene.experiments.correctness.virtual.worker import World
from serene.program import Program

CLOCK_S = 1_700_000_000.0  # the controller's clock when a run begins, in Unix seconds
WRITES_WITHIN_S = 3.0
GRACE_S = 60.0  # so that every worker gets to read last, whatever the network does
WAIT_S = 1000.0  # for a switch that does not answer when it begins
QUIET_S = 0.05  # so long after a write, the controller is in the middle of nothing

Command = Callable[[Coordinator], Awaitable[None]]

LOG = logging.getLogger("serene.controller")


@cache
def _settings() -> Settings:
    return settings(grace_s=GRACE_S, wait=WAIT_S)


class _Overheard(logging.Handler):
    """Hears of errors that the controller logs and survives, since no request should ever cause one."""

    def __init__(self, heard: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._heard(record.exc_info[1])


class _Reach:
    """How the controller reaches one of the run's switches (`serene.controller.switch.switch.Reach`)."""

    def __init__(self, controller: VirtualController, number: int) -> None:
        self._controller, self._number = controller, number
        self.counters: Sequence[str] = controller.servers[number].counters

    def connection(self, election_id: int) -> Connection:
        return self._controller.connect(self._number, election_id)


class VirtualController:
    """A run's controllers, one after the other. ``clock_s``: the present one's clock at virtual time 0. While there is
    none, commands wait for the next one, and packets are lost. A command in whose middle it dies is given to the next
    one again.

    ``jobs``: those that the present one knows, or the last one knew. ``servers``: one for each of the run's switches.
    """

    def __init__(self, run: World) -> None:
        self._run = run
        self.servers = [
            Server(switch, run.time, run.plan, number, partial(run.packet_out, number))
            for number, switch in enumerate(run.switches)
        ]
        self._commands: deque[Command] = deque()
        self._writes_left: int | None = None  # then it dies
        self._away_s = 0.0
        self.clock_s = CLOCK_S
        self.jobs: Jobs | None = None
        self._loop: VirtualLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._asked: asyncio.Event | None = None
        self._connections: dict[int, InProcess] = {}  # by the number of the switch
        self._overheard = _Overheard(run.failed)
        self._propagate, LOG.propagate = LOG.propagate, False
        LOG.addHandler(self._overheard)

    # -- its process -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._loop = VirtualLoop(self._run.time)
        self._loop.set_exception_handler(self._unhandled)
        self._asked = asyncio.Event()
        self._main = self._loop.create_task(self._serve())

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._run.failed(context.get("exception") or RuntimeError(context["message"]))

    async def _serve(self) -> None:
        clock = Clock(unix=lambda: self.clock_s + self._run.time.now, steady=lambda: self._run.time.now)
        coordinator = Coordinator(_settings(), connect=self._connect, clock=clock)
        await coordinator.bring_up()
        self.jobs = coordinator.jobs
        tasks = [asyncio.create_task(coordinator.run()), asyncio.create_task(self._obey(coordinator))]
        try:
            await asyncio.gather(*tasks)  # which ends by an error only
        except Exception as error:
            self._run.failed(error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _obey(self, coordinator: Coordinator) -> None:
        assert self._asked is not None
        await self._run.taken_over(coordinator)
        while True:
            while self._commands:
                try:
                    await self._commands[0](coordinator)
                except SereneError:
                    self._run.happened["commands refused"] += 1
                self._commands.popleft()
            self._asked.clear()
            await self._asked.wait()

    def _connect(self, settings: Settings, on_packet: OnPacket, on_connected: OnConnected) -> Fabric:
        return self._run.fabric(self._reach, on_packet, on_connected)

    def _reach(self, options: SwitchOptions, program: Program) -> _Reach:
        return _Reach(self, int(options.address))

    def connect(self, number: int, election_id: int) -> InProcess:
        """A new connection to the switch with this number."""
        self._connections[number] = InProcess(self.servers[number], self, election_id)
        return self._connections[number]

    def die(self, away_s: float) -> None:
        """Ends it; its successor, which knows nothing, starts after so many seconds."""
        if self._main is not None:
            self._writes_left = None
            self._end()
            self._run.happened["controller restarts"] += 1
            self._run.time.at(away_s, self.start)

    def die_at_write(self, number: int, away_s: float) -> None:
        """Has it die when it is about to make one of its next writes, counted from 1, or where it makes none for
        long."""
        self._writes_left, self._away_s = number, away_s
        self._run.time.at(WRITES_WITHIN_S, self._die_all_the_same)

    def _die_all_the_same(self) -> None:
        if self._writes_left is not None:
            self.die(self._away_s)

    def die_in_quiet(self, away_s: float) -> None:
        """Has it die when it is in the middle of nothing."""
        if self._run.time.now < max(server.last_write for server in self.servers) + QUIET_S:
            self._run.time.at(QUIET_S, lambda: self.die_in_quiet(away_s))
        else:
            self.die(away_s)

    def restart_switch(self, number: int, away_s: float) -> None:
        """Has the switch with this number restart, and be away for so many seconds."""
        self.servers[number].restart(away_s)
        if number in self._connections:
            self._connections[number].lose(Unreachable("the switch closed the connection"))

    def _end(self) -> None:
        assert self._main is not None and self._loop is not None
        for connection in self._connections.values():
            connection.closed = True
        self._connections.clear()
        self._main.cancel()
        self._loop.turn()
        assert self._main.done(), "the controller continues although it was ended"
        self._loop.close()
        self._main = self._loop = None

    def close(self) -> None:
        if self._main is not None:
            self._end()
        LOG.removeHandler(self._overheard)
        LOG.propagate = self._propagate

    def known(self, job: int) -> Job | None:
        """The job with this id, if it knows it."""
        return self.jobs.get(job) if self.jobs is not None else None

    # -- what comes to it ------------------------------------------------------------------------------------

    def command(self, command: Command) -> None:
        self._commands.append(command)
        if self._asked is not None and self._main is not None:
            self._asked.set()

    def hear(self, number: int, message: PacketIn | Learned) -> None:
        """The switch with this number sends something."""
        if number in self._connections:
            self._connections[number].hear(message)

    # -- what it writes --------------------------------------------------------------------------------------

    def writes(self) -> bool:
        """It is about to write. False: it dies instead."""
        if self._writes_left is None:
            return True
        self._writes_left -= 1
        if self._writes_left:
            return True
        self._run.time.at(0.0, lambda: self.die(self._away_s))
        return False

    def failed(self, error: BaseException) -> None:
        self._run.failed(error)

    def wrote(self, switch: CommandedSwitch, entry: Entry) -> None:
        self._run.wrote(switch, entry)
