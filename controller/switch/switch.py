"""One switch, for the rest of the controller, which does not use P4Runtime itself.

It keeps one connection open. After each connecting it installs the program, the switch's address, the flood group and
the digests. A program that runs already is taken over unchanged, with its jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import finsy as fy

from serene import entries
from serene.controller.jobs.plans import Readmission, Start, Swap
from serene.controller.settings import Settings, ShmPort, UdpPort
from serene.controller.switch import plan_entries
from serene.controller.switch.connection import (
    Connection,
    IdInUse,
    Learned,
    NotPrimary,
    P4RuntimeConnection,
    SwitchError,
    Unreachable,
    within,
)
from serene.controller.switch.counters import STALENESS_CLASSES, WORKER_COUNTERS, Counters
from serene.controller.switch.encoding import schema
from serene.controller.switch.learning import Learning
from serene.entries import Cell, Endpoint, Entity, SwitchAddress, Updates
from serene.errors import SereneError
from serene.program import Program

LOG = logging.getLogger("serene.controller")

RETRY_S = 0.5
ID_BECOMES_FREE_S = 5.0  # a starting controller waits so long for an election id that another stream has
CONNECT_TIMEOUT_S = 10.0
LEARNING_PAUSE_S = 0.02  # between two writes, each of which may delay an admission

DROPPED = "dropped_"  # prefix of the names of counters of dropped packets


@dataclass(frozen=True)
class SwitchOptions:
    """A switch and its set-up."""

    address: str  # HOST:PORT of its P4Runtime server
    device_id: int
    election_id: int
    ports: Sequence[int]  # ports to which ordinary traffic is flooded
    own: SwitchAddress
    udp_ports: Sequence[UdpPort] = ()  # of an embedded switch on this machine, for the status
    shm_ports: Sequence[ShmPort] = ()  # likewise
    credentials: fy.GRPCCredentialsTLS | None = None  # None: the connection is not encrypted
    name: str = ""  # if there are several switches
    others: Sequence[Program] = ()  # programs of the other switches: a switch that runs one is another than intended
    slots_given: bool = False  # the user chose the number of slots: a program with another number is replaced

    @property
    def called(self) -> str:
        return f"the switch {self.name}" if self.name else "the switch"


def credentials(settings: Settings) -> fy.GRPCCredentialsTLS | None:
    """The connection's TLS credentials; None: it is not encrypted."""
    if not settings.switch_ca:
        return None
    cert, key = (Path(name) if name else None for name in (settings.switch_cert, settings.switch_key))
    return fy.GRPCCredentialsTLS(cacert=Path(settings.switch_ca), cert=cert, private_key=key)


@dataclass(frozen=True)
class SwapPhases:
    """The times of a swap's phases over several switches: preparing the leaves, and putting it in force."""

    prepare_ms: float
    flip_ms: float


class Reach(Protocol):
    """Makes connections to a switch. counters: the names of its program's counters."""

    counters: Sequence[str]

    def connection(self, election_id: int) -> Connection:
        """A new one, which is not open yet."""


class P4Runtime:
    """By P4Runtime, at the address in the options."""

    def __init__(self, options: SwitchOptions, program: Program) -> None:
        self._options = options
        self._program, self._schema = program, schema(program)
        self._others = {schema(other).p4cookie: other.name for other in options.others}
        self.counters: Sequence[str] = [counter.alias for counter in self._schema.counters]

    def connection(self, election_id: int) -> Connection:
        to = self._options
        return P4RuntimeConnection(
            to.address, to.device_id, election_id, self._schema, to.credentials, to.name, self._others,
            None if to.slots_given else self._with_slots,
        )  # fmt: skip

    def _with_slots(self, slots: int) -> int | None:
        """The cookie of the program with another number of slots; None if it cannot have that number."""
        try:
            return schema(self._program.with_slots(slots)).p4cookie
        except SereneError:
            return None


class Switch:
    """One switch. Whenever the connection is lost, it connects again. Operations raise SwitchError.

    on_packet: called with port and frame for every punted frame; must not wait. on_connected: awaited after connecting,
    and has to call `set_up`. Jobs must not change meanwhile, since the switch may have lost its entries.

    A stopped switch may execute pending requests when it continues, after a new connection was made. So each connection
    has a higher election id, and the switch refuses requests of the one before.
    """

    def __init__(
        self,
        options: SwitchOptions,
        program: Program,
        *,
        on_packet: Callable[[int, bytes], None],
        on_connected: Callable[[], Awaitable[None]],
        reach: Callable[[SwitchOptions, Program], Reach] = P4Runtime,
    ) -> None:
        self.options = options
        self.program = program
        self.trouble: str | None = f"not connected to {options.address} yet"
        self._on_packet = on_packet
        self._on_connected = on_connected
        self._reach = reach(options, program)
        self._connection: Connection | None = None
        self._election_id = options.election_id
        self._keeping: asyncio.Task[None] | None = None  # keeps it connected
        self.drops: dict[str, int] = {}  # packets by reason, from the last read
        self._learning = Learning()
        self._seen = asyncio.Event()  # set when there is an address to learn
        self.drop_reasons: Sequence[str] = [
            name.removeprefix(DROPPED) for name in self._reach.counters if name.startswith(DROPPED)
        ]

    @property
    def switches(self) -> Sequence[Switch]:
        """This one alone."""
        return [self]

    @property
    def rack_count(self) -> int:
        """1: all workers are at this switch."""
        return 1

    @property
    def connected(self) -> bool:
        """Whether it takes operations; otherwise ``trouble`` has the reason."""
        return self.trouble is None

    @property
    def election_id(self) -> int:
        """The election id of the present connection, or else of the next."""
        return self._election_id if self._connection is None else self._connection.election_id

    # The connection

    async def bring_up(self, deadline_s: float) -> None:
        """Connects and sets the switch up, waiting up to ``deadline_s`` seconds for a starting one. From then on it
        connects again when the connection is lost."""
        now = asyncio.get_running_loop().time
        end = now() + deadline_s
        id_is_free_by = now() + ID_BECOMES_FREE_S
        while not self.connected:
            answered = False
            try:
                await self._connect(max(end - now(), RETRY_S))
                answered = True
                await self._take_over()
            except IdInUse:
                if now() >= id_is_free_by:
                    raise
                await asyncio.sleep(RETRY_S)
            except Unreachable:
                if now() >= end:
                    if answered:
                        raise
                    named = f"{self.options.name}=" if self.options.name else ""
                    raise Unreachable(
                        f"no P4Runtime switch answered at {named}{self.options.address} within {deadline_s:g} s"
                        f": check that it runs, and --switch {named}HOST:PORT"
                    ) from None
                await asyncio.sleep(RETRY_S)
        self._keeping = asyncio.create_task(self._keep_connected())

    async def run(self) -> None:
        """Delivers the switch's messages for ever; after `bring_up`."""
        assert self._keeping is not None
        await asyncio.gather(self._keeping, self._keep_learning())

    async def _keep_connected(self) -> None:
        while True:
            try:
                if self._connection is None:
                    await self._connect(CONNECT_TIMEOUT_S)
                    await self._take_over()
                await self._deliver()
            except SwitchError as error:
                await self._lost(str(error))
            except Exception as error:
                # After any error the controller continues, and its status shows the error. The next connection may
                # succeed.
                LOG.exception("the connection to the switch failed")
                await self._lost(f"{type(error).__name__}: {error}")

    async def _lost(self, trouble: str) -> None:
        if self.trouble != trouble:
            LOG.warning("%s", trouble)
        self.trouble = trouble
        await self._disconnect()
        await asyncio.sleep(RETRY_S)

    async def close(self) -> None:
        """Disconnects from the switch, which continues to forward and aggregate."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        await self._disconnect()

    async def _connect(self, timeout_s: float) -> None:
        connection = self._reach.connection(self._election_id)
        try:
            await within(timeout_s, connection.open())
        except BaseException as error:
            await connection.close()
            if isinstance(error, asyncio.TimeoutError):
                raise Unreachable(f"no answer from {self.options.called} at {self.options.address}") from None
            raise
        self._connection = connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            if self._connection.unsettled:
                self._election_id = self._connection.election_id + 1
            self.trouble = self.trouble or f"disconnected from {self.options.address}"
            await self._connection.close()
            self._connection = None

    async def _take_over(self) -> None:
        assert self._connection is not None
        try:
            pushed = await self._connection.install_program()
            await self._on_connected()
        except SwitchError as error:
            self.trouble = str(error)
            await self._disconnect()
            raise
        LOG.info(
            "primary at %s with election id %d; program %s %s",
            self.options.address,
            self.election_id,
            self.program.name,
            "pushed" if pushed else "was running already",
        )

    async def set_up(self) -> plan_entries.Installed:
        """Installs the switch's own entries, and returns all that it holds. From now on it takes operations."""
        connection, own = self._connection, self.options.own
        if connection is None:  # it was lost when another switch was connected
            raise self._out_of_reach()
        for entity in (
            *entries.own_addresses(own),
            entries.flood_group(self.options.ports),
            entries.learning_digest(),
        ):
            await connection.put(entity)
        found = plan_entries.installed(await connection.entries())
        self._learning.forget_waiting()
        await connection.write(self._learning.take_over(found), missing_ok=True)
        self.trouble = None
        return found

    async def read_entries(self) -> plan_entries.Installed:
        """The switch's present entries."""
        return plan_entries.installed(await self.primary().entries())

    async def _deliver(self) -> None:
        """Handles each message at once, and writes nothing to the switch; other tasks do that."""
        assert self._connection is not None
        async for message in self._connection.messages():
            if isinstance(message, Learned):
                for mac, port in message.sources:
                    self._learning.seen(mac, port)
                self._learning.to_acknowledge(message.ack)
                self._seen.set()
            else:
                self._on_packet(message.port, message.frame)

    async def _keep_learning(self) -> None:
        while True:
            await self._seen.wait()
            self._seen.clear()
            while self._learning.anything:
                await self._teach()
                await asyncio.sleep(LEARNING_PAUSE_S)

    async def _teach(self) -> None:
        updates, acks = self._learning.next()
        try:
            if updates:
                await self.write(updates)
            await self.primary().acknowledge(acks)
        except (Unreachable, NotPrimary):
            self._learning.forget_waiting()
        except SwitchError as error:
            LOG.warning("addresses could not be learned: %s", error)
            with contextlib.suppress(SwitchError):
                await self.write(self._learning.take_over(await self.read_entries()), missing_ok=True)

    # Jobs

    async def start(self, plan: Start) -> None:
        """Writes all of a job but its workers' entries in `member`. If that fails, removes what was written."""
        # Also those of free places, which an earlier job may have used.
        await self.zero_counters(plan.job, sorted({*plan.members, *range(plan.places)}))
        try:
            await self.write(plan_entries.job_entries(plan, self.options.own))
            await self.put(plan_entries.policy_entry(plan.job, plan.policy))  # of an earlier job
        except SwitchError:
            await self.remove(plan.job)
            raise

    async def admit(self, plan: Start) -> None:
        """Admits the workers of a job that `start` has written. If that fails, some may be admitted."""
        await self.write(plan_entries.members(plan))

    async def swap(self, plan: Swap) -> SwapPhases | None:
        """Swaps a policy: one MODIFY of one entry, which has no phases."""
        await self.write(plan_entries.swap(plan))
        return None

    async def readmit(self, plan: Readmission) -> None:
        """Removes the old process's entries before it writes the new one's. After any failure, this can be repeated."""
        if plan.old is not None:
            await self.write(plan_entries.no_member(plan.job, plan.worker, plan.old), missing_ok=True)
        await self.put(entries.job_group(plan.job, plan.members))
        await self.put(entries.address(plan.job, plan.worker, plan.new, self.options.own))
        await self.write(plan_entries.readmission(plan))

    async def shut_out(self, job: int, worker: int, at: Endpoint) -> None:
        """Removes a process's entry in `member`: it is not admitted any more."""
        await self.write(plan_entries.no_member(job, worker, at), missing_ok=True)

    async def remove(self, job: int) -> None:
        """Removes the switch's entries of a job, except its policy. An earlier controller may have left entries that
        this one does not know."""
        held = (await self.read_entries()).job(job)
        await self.write(plan_entries.removal(job, held), missing_ok=True)

    async def send(self, to: Endpoint, frame: bytes) -> None:
        """Sends a frame out of a worker's port."""
        await self.primary().send(to.port, frame)

    # Counters

    async def read_worker_counters(
        self, members: Mapping[int, Sequence[int]], names: Sequence[str] = WORKER_COUNTERS
    ) -> dict[tuple[int, int], Counters]:
        """The counters of each (job, worker). members: workers by job. names: of the counters to read; the others are
        0."""
        index_of = {(job, worker): self._index(job, worker) for job, workers in members.items() for worker in workers}
        packets = await self._read([Cell(name, index) for index in index_of.values() for name in names])
        return {
            who: Counters(**{name: packets[Cell(name, index)] for name in names}) for who, index in index_of.items()
        }

    async def read_staleness(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[int]]:
        """For each (job, worker), the numbers of contributions with a staleness of 0, 1, ... 14, and 15 or more rounds.
        members: workers by job."""
        first = {(job, worker): self._staleness_index(job, worker) for job, ids in members.items() for worker in ids}
        packets = await self._read(
            [Cell("staleness", at + i) for at in first.values() for i in range(STALENESS_CLASSES)]
        )
        return {
            who: [packets[Cell("staleness", at + i)] for i in range(STALENESS_CLASSES)] for who, at in first.items()
        }

    async def read_drops(self) -> dict[str, int]:
        """Packets dropped since the program was pushed, by reason."""
        read = await self._read([Cell(DROPPED + reason) for reason in self.drop_reasons])
        self.drops = {cell.counter.removeprefix(DROPPED): packets for cell, packets in read.items()}
        return self.drops

    async def zero_counters(self, job: int, workers: Sequence[int]) -> None:
        """Sets the counters of these workers to zero."""
        await self.write(
            [~Cell(name, self._index(job, worker)) for name in WORKER_COUNTERS for worker in workers]
            + [
                ~Cell("staleness", self._staleness_index(job, worker) + i)
                for worker in workers
                for i in range(STALENESS_CLASSES)
            ]
        )

    def _index(self, job: int, worker: int) -> int:
        return job * self.program.counted_workers + worker

    def _staleness_index(self, job: int, worker: int) -> int:
        return self._index(job, worker) * STALENESS_CLASSES

    async def write(self, updates: Updates, *, missing_ok: bool = False) -> None:
        """Writes updates in order. missing_ok: updates of missing entities are no error."""
        await self.primary().write(updates, missing_ok=missing_ok)

    async def put(self, entity: Entity) -> None:
        """Inserts an entity, or replaces the existing one."""
        await self.primary().put(entity)

    async def _read(self, wanted: Sequence[Cell]) -> dict[Cell, int]:
        return await self.primary().packets(wanted)

    def primary(self) -> Connection:
        """The connection that takes operations. Raises Unreachable."""
        if self._connection is None or self.trouble is not None:
            raise self._out_of_reach()
        return self._connection

    def _out_of_reach(self) -> Unreachable:
        return Unreachable(f"{self.options.called} is unreachable: {self.trouble}")
