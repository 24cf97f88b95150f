"""What is between a controller and a switch of a run: requests and their answers, which take time.

Requests to a switch are served one after the other. Packets go through it between two of them, and sometimes between
two updates of one. A controller that dies leaves the request that the switch is at done whole, and the later ones
not at all. A switch that restarts loses them, its state, and the connection.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from serene.controller.switch.connection import Learned, PacketIn, SwitchError, Unanswered, Unreachable
from serene.entries import Cell, Digest, Entity, Entry, Group, Kind, Update, Updates
from serene.experiments.correctness.virtual.clock import Timeline
from serene.experiments.correctness.virtual.plan import Plan
from serene.experiments.correctness.virtual.switch import CommandedSwitch

SILENT_S = 10.0  # after which the controller ends a connection (`serene.controller.switch.connection`)
PIECEMEAL = 0.25  # how often packets may go through between two updates of a request


class Commander(Protocol):
    """The controller at the other end."""

    def writes(self) -> bool:
        """It is about to write. False: it dies instead."""

    def failed(self, error: BaseException) -> None:
        """The switch refuses what it writes, for which there is never a reason."""

    def wrote(self, switch: CommandedSwitch, entry: Entry) -> None:
        """An entry is about to be inserted or replaced."""


@dataclass(eq=False)
class Request:
    owner: InProcess
    steps: Sequence[Callable[[], None]]
    answer: asyncio.Future[None]
    done: int = 0
    silent: bool = False  # it gets no answer
    errors: list[str] = field(default_factory=list)


class Server:
    """One switch, which controllers come to one after the other. packet_out: called with a port and a frame that the
    controller has the switch send."""

    def __init__(
        self, switch: CommandedSwitch, time: Timeline, plan: Plan, number: int, packet_out: Callable[[int, bytes], None]
    ) -> None:
        self.slow, seed = plan.slow, f"server{number or ''}/{plan.seed}"
        self._packet_out = packet_out
        self.switch = switch
        self.counters = switch.counters
        self._time = time
        self._rng, self._late = random.Random(seed), random.Random(f"late/{seed}")
        self._requests: deque[Request] = deque()
        self._unanswered: dict[Request, None] = {}  # in the order in which they were sent
        self._streamed = {"in": 0.0, "out": 0.0}  # when the last of the stream's packets comes
        self.last_write = 0.0
        self.up = True

    def restart(self, away_s: float) -> None:
        """It ends, and is there again after so many seconds, without its state."""
        self.up = False
        for request in list(self._unanswered):
            self._answer(request, Unreachable("the switch has ended"))
        self._requests.clear()
        self.switch.restart()
        self._time.at(away_s, self._come_back)

    def _come_back(self) -> None:
        self.up = True

    def _after(self, most_s: float, action: Callable[[], None]) -> None:
        """Acts after up to so many seconds; at once if it is none."""
        if most_s:
            self._time.at(self._late.uniform(0.0, most_s), action)
        else:
            action()

    def ask(self, request: Request, late_s: float = 0.0) -> None:
        """late_s: after up to so many seconds the switch has it."""
        self._unanswered[request] = None
        if self.slow.silence and self._late.random() < self.slow.silence:
            request.silent = True
            self._time.at(SILENT_S, lambda: self._end(request))
            if self._late.random() < 0.5:
                return
        self._after(late_s, lambda: self._receive(request))

    def _end(self, request: Request) -> None:
        """Its controller has got no answer in time, and ends the connection."""
        if request in self._unanswered and not request.owner.closed:
            request.owner.lose(Unanswered("no answer in time"))
            for each in [each for each in self._unanswered if each.owner is request.owner]:
                self._answer(each, Unanswered("no answer in time"))

    def _receive(self, request: Request) -> None:
        if request in self._unanswered:
            self._requests.append(request)
            if len(self._requests) == 1:
                self._time.at(0.0, self._serve)

    def _answer(self, request: Request, error: SwitchError | None = None) -> None:
        self._unanswered.pop(request, None)
        if request.owner.closed or request.answer.done():
            return
        if error is None:
            request.answer.set_result(None)
        else:
            request.answer.set_exception(error)

    def packet_in(self, action: Callable[[], None]) -> None:
        """Acts when the controller gets what the switch punts now."""
        self._stream("in", self.slow.punts, action)

    def packet_out(self, port: int, frame: bytes) -> None:
        self._stream("out", self.slow.messages, lambda: self._packet_out(port, frame))

    def _stream(self, way: str, most_s: float, action: Callable[[], None]) -> None:
        """As `_after`, but one after the other: P4Runtime's stream keeps the order."""
        if most_s:
            now = self._time.now
            self._streamed[way] = max(self._streamed[way], now + self._late.uniform(0.0, most_s))
            self._time.at(self._streamed[way] - now, action)
        else:
            action()

    def _serve(self) -> None:
        if not self._requests:
            return
        request = self._requests[0]
        left = request.steps[request.done :]
        if request.owner.closed and not request.done:
            left = []
        elif len(left) > 1 and self._rng.random() < PIECEMEAL:
            left = left[: self._rng.randrange(1, len(left))]
        for step in left:
            try:
                step()
            except SwitchError as error:
                request.errors.append(str(error))
        request.done += len(left)
        self.last_write = self._time.now
        if request.done == len(request.steps) or not left:
            self._requests.popleft()
            if not request.silent:
                self._after(self.slow.answers, lambda: self._answer(request))
        if self._requests:
            self._time.at(0.0, self._serve)


class InProcess:
    """A controller's connection to a server (`serene.controller.switch.connection.Connection`)."""

    def __init__(self, server: Server, commander: Commander, election_id: int) -> None:
        self.election_id = election_id
        self.closed = self.unsettled = False
        self._server, self._switch, self._commander = server, server.switch, commander
        self._inbox: asyncio.Queue[PacketIn | Learned | None] = asyncio.Queue()
        self._lost: SwitchError | None = None

    async def open(self) -> None:
        if not self._server.up:
            raise Unreachable("the switch is away")

    def lose(self, why: SwitchError) -> None:
        """The switch restarts, or does not answer."""
        self._lost, self.unsettled = why, isinstance(why, Unanswered)
        self._inbox.put_nowait(None)

    async def close(self) -> None:
        self.closed = True

    async def install_program(self) -> bool:
        return False

    async def write(self, updates: Updates, *, missing_ok: bool = False) -> None:
        if not self._commander.writes():
            await asyncio.get_running_loop().create_future()
        steps = [lambda update=update: self._apply(update) for update in updates]
        errors = await self._ask(steps, self._server.slow.writes)
        if errors and not (missing_ok and all(error.startswith("there is no") for error in errors)):
            refused = SwitchError("; ".join(errors))
            self._commander.failed(refused)
            raise refused

    def _apply(self, update: Update) -> None:
        entity = update.entity
        if not isinstance(entity, Entry):
            self._set(
                entity if update.kind is not Kind.DELETE or not isinstance(entity, Group) else Group(entity.number)
            )
            return
        there = self._switch.has(entity)
        if there and update.kind is Kind.INSERT:
            raise SwitchError(f"there is an entry already: {entity.key}")
        if not there and update.kind is not Kind.INSERT:
            raise SwitchError(f"there is no such entry: {entity.key}")
        if update.kind is Kind.DELETE:
            self._switch.delete(entity)
        else:
            self._set(entity)

    def _set(self, entity: Entity) -> None:
        if isinstance(entity, Entry):
            self._commander.wrote(self._switch, entity)
            self._switch.put(entity)
        elif isinstance(entity, Group):
            self._switch.set_group(entity)
        elif isinstance(entity, Cell):
            self._switch.zero(entity)
        else:
            assert isinstance(entity, Digest)  # the switch sends them unasked

    async def put(self, entity: Entity) -> None:
        if not self._commander.writes():
            await asyncio.get_running_loop().create_future()
        await self._ask([lambda: self._set(entity)], self._server.slow.writes)

    async def entries(self) -> list[Entry]:
        found: list[Entry] = []
        await self._ask([lambda: found.extend(self._switch.entries())], self._server.slow.reads)
        return found

    async def packets(self, cells: Sequence[Cell]) -> dict[Cell, int]:
        found: dict[Cell, int] = {}
        count = lambda: found.update((cell, self._switch.packets(cell)) for cell in cells)  # noqa: E731
        await self._ask([count], self._server.slow.reads)
        return found

    async def send(self, port: int, frame: bytes) -> None:
        await self._ask([lambda: self._server.packet_out(port, frame)])

    async def acknowledge(self, acks: Sequence[object]) -> None: ...

    async def messages(self) -> AsyncIterator[PacketIn | Learned]:
        while True:
            message = await self._inbox.get()
            if message is None:
                assert self._lost is not None
                raise self._lost
            yield message

    def hear(self, message: PacketIn | Learned) -> None:
        """The switch sends something."""
        if not self.closed:
            self._inbox.put_nowait(message)

    async def _ask(self, steps: Sequence[Callable[[], None]], late_s: float = 0.0) -> list[str]:
        if self.closed or self._lost is not None:
            raise Unreachable("the controller is about to end, or the switch has")
        request = Request(self, steps, asyncio.get_running_loop().create_future())
        if steps:
            self._server.ask(request, late_s)
            await request.answer
        return request.errors
