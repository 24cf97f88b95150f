"""The switch as the controller sees it: everything P4Runtime is behind this object.

It keeps one connection alive, and whenever it gets hold of a switch, puts the program, the switch's address,
the flood group and the digests in place. A program that runs already is taken over as it is, with its jobs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import finsy as fy

from controller import entries
from controller.connection import Connection, NotPrimary, SwitchError, Unreachable
from controller.learning import Learning
from controller.plans import Endpoint, Readmission, Start, Swap
from serene.program import Program

LOG = logging.getLogger("serene.controller")

RETRY_S = 0.5
CONNECT_TIMEOUT_S = 10.0

WORKER_COUNTERS = ("contributions", "repeats", "blocked", "answers", "releases", "nudges")
STALENESS_CLASSES = 16  # of the data plane's histogram: 0, 1, ... 14 rounds, 15 or more
DROPPED = "dropped_"


@dataclass(frozen=True)
class SwitchOptions:
    """Which switch, and how it is to be set up."""

    address: str
    device_id: int
    election_id: int
    ports: Sequence[int]
    own: entries.SwitchAddress


@dataclass(frozen=True)
class TakenOver:
    """A switch is in hand, with the jobs it holds: none when its program had to be pushed."""

    jobs: Mapping[int, entries.InstalledJob]


class Switch:
    """One switch, connected or being looked for. Its operations raise SwitchError."""

    def __init__(
        self,
        options: SwitchOptions,
        program: Program,
        *,
        on_packet: Callable[[int, bytes], Awaitable[None]],
        on_taken_over: Callable[[TakenOver], Awaitable[None]],
    ) -> None:
        self.options = options
        self.program = program
        self.trouble: str | None = f"not connected to {options.address} yet"
        self._on_packet = on_packet
        self._on_taken_over = on_taken_over
        self._schema = fy.P4Schema(program.p4info_path, program.config_path)
        self._connection: Connection | None = None
        self._learning = Learning()
        self.drop_reasons = [
            counter.alias.removeprefix(DROPPED)
            for counter in self._schema.counters
            if counter.alias.startswith(DROPPED)
        ]

    @property
    def connected(self) -> bool:
        return self.trouble is None

    # The life of the connection

    async def bring_up(self, deadline_s: float) -> None:
        """Connect and set the switch up, waiting ``deadline_s`` seconds for one that is starting."""
        end = time.monotonic() + deadline_s
        while self._connection is None:
            try:
                await self._connect(max(end - time.monotonic(), RETRY_S))
            except Unreachable:
                if time.monotonic() >= end:
                    raise Unreachable(
                        f"no P4Runtime switch answered at {self.options.address} within {deadline_s:g} s"
                        ": is it running, and is --switch HOST:PORT right?"
                    ) from None
                await asyncio.sleep(RETRY_S)
        await self._take_over()

    async def run(self) -> None:
        """Deliver what the switch says, for ever; connect again when the connection is lost."""
        while True:
            try:
                if self._connection is None:
                    await self._connect(CONNECT_TIMEOUT_S)
                    await self._take_over()
                await self._deliver()
            except SwitchError as error:
                await self._lost(str(error))
            except Exception as error:
                # Whatever it is, the HTTP side stays, says so, and the next connection may go better.
                LOG.exception("the connection to the switch failed")
                await self._lost(f"{type(error).__name__}: {error}")

    async def _lost(self, trouble: str) -> None:
        if self.trouble != trouble:
            LOG.warning("%s", trouble)
        self.trouble = trouble
        await self._disconnect()
        await asyncio.sleep(RETRY_S)

    async def close(self) -> None:
        """Let go of the switch, which goes on forwarding and aggregating."""
        await self._disconnect()

    async def _connect(self, timeout_s: float) -> None:
        options = self.options
        connection = Connection(options.address, options.device_id, options.election_id, self._schema)
        try:
            await asyncio.wait_for(connection.open(), timeout_s)
        except BaseException as error:
            await connection.close()
            if isinstance(error, asyncio.TimeoutError):
                raise Unreachable(f"no answer from {options.address}") from None
            raise
        self._connection = connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _take_over(self) -> None:
        assert self._connection is not None
        connection = self._connection
        try:
            pushed = await connection.install_program()
            await connection.put(entries.switch_address(self.options.own))
            await connection.put(entries.flood_group(self.options.ports))
            await connection.put(entries.learning_digest())
            found = entries.installed(await connection.read([fy.P4TableEntry()]))
        except SwitchError:
            await self._disconnect()
            raise
        self._learning.port_of = dict(found.learned)
        self.trouble = None
        LOG.info(
            "primary at %s with election id %d; program %s %s",
            self.options.address,
            connection.election_id,
            self.program.name,
            "pushed" if pushed else "was running already",
        )
        await self._on_taken_over(TakenOver(found.jobs))

    async def _deliver(self) -> None:
        assert self._connection is not None
        async for message in self._connection.messages():
            if isinstance(message, fy.P4DigestList):
                await self._learn(message)
            else:
                await self._on_packet(int(message["ingress_port"]), message.payload)

    async def _learn(self, digest: fy.P4DigestList) -> None:
        for seen in digest:
            mac, port = entries.mac_text(seen["source"]), seen["port"]
            updates = self._learning.updates(mac, port)
            try:
                await self._write(updates)
            except (Unreachable, NotPrimary):
                raise
            except SwitchError as error:
                self._learning.forget(mac)
                LOG.warning("address %s on port %d is not learned: %s", mac, port, error)
        await self._write([digest.ack()])

    # Jobs

    async def start(self, plan: Start) -> None:
        """Write a job, all of it; a job that could not be written whole is taken back."""
        await self._zero_counters(plan.job, sorted(plan.members))
        try:
            await self._write(entries.start(plan, self.options.own))
        except SwitchError:
            await self.remove(plan.job, plan.members)
            raise

    async def swap(self, plan: Swap) -> None:
        """One MODIFY of one entry."""
        await self._write(entries.swap(plan))

    async def readmit(self, plan: Readmission) -> None:
        await self._write(entries.readmission(plan, self.options.own))

    async def remove(self, job: int, members: Mapping[int, Endpoint]) -> None:
        await self._write(entries.removal(job, members), missing_ok=True)

    async def send(self, port: int, frame: bytes) -> None:
        """A frame out of a port."""
        await self._write([fy.P4PacketOut(frame, egress_port=port, padding=0)])

    # Counters

    async def read_worker_counters(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], dict[str, int]]:
        """Packets by counter name for each (job, worker) of ``members`` (workers by job)."""
        index_of = {(job, worker): self._index(job, worker) for job, workers in members.items() for worker in workers}
        wanted = [fy.P4CounterEntry(name, index=index) for index in index_of.values() for name in WORKER_COUNTERS]
        packets = {(entry.counter_id, entry.index): entry.packet_count for entry in await self._read(wanted)}
        return {who: {name: packets[name, index] for name in WORKER_COUNTERS} for who, index in index_of.items()}

    async def read_staleness(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[int]]:
        """For each (job, worker) of ``members``: contributions by staleness, 0 to 15 rounds (and more)."""
        first = {(job, worker): self._staleness_index(job, worker) for job, ids in members.items() for worker in ids}
        wanted = [
            fy.P4CounterEntry("staleness", index=at + i) for at in first.values() for i in range(STALENESS_CLASSES)
        ]
        packets = {entry.index: entry.packet_count for entry in await self._read(wanted)}
        return {who: [packets[at + i] for i in range(STALENESS_CLASSES)] for who, at in first.items()}

    async def read_drops(self) -> dict[str, int]:
        """Packets dropped since the program was pushed, by reason."""
        read = await self._read([fy.P4CounterEntry(DROPPED + reason, index=0) for reason in self.drop_reasons])
        return {entry.counter_id.removeprefix(DROPPED): entry.packet_count for entry in read}

    async def _zero_counters(self, job: int, workers: Sequence[int]) -> None:
        await self._write(
            [
                ~fy.P4CounterEntry(name, index=self._index(job, worker), data=fy.P4CounterData())
                for name in WORKER_COUNTERS
                for worker in workers
            ]
            + [
                ~fy.P4CounterEntry("staleness", index=self._staleness_index(job, worker) + i, data=fy.P4CounterData())
                for worker in workers
                for i in range(STALENESS_CLASSES)
            ]
        )

    def _index(self, job: int, worker: int) -> int:
        return job * self.program.counted_workers + worker

    def _staleness_index(self, job: int, worker: int) -> int:
        return self._index(job, worker) * STALENESS_CLASSES

    async def _write(self, updates: entries.Updates, *, missing_ok: bool = False) -> None:
        await self._primary().write(updates, missing_ok=missing_ok)

    async def _read(self, wanted: list[fy.P4CounterEntry]) -> list[fy.P4CounterEntry]:
        return await self._primary().read(wanted)

    def _primary(self) -> Connection:
        if self._connection is None or self.trouble is not None:
            raise Unreachable(f"the switch is out of reach: {self.trouble}")
        return self._connection
