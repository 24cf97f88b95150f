"""One P4Runtime stream to one switch, from arbitration to its end.

It uses finsy's P4Client, not its Switch. When a task fails, the latter logs that and tries again ten seconds later, but
a daemon has to report why a switch cannot be brought up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import finsy as fy
import grpc
from finsy.grpcutil import GRPCOptions, grpc_channel
from finsy.p4entity import decode_entity, decode_stream, encode_entities, encode_updates
from finsy.proto import U128, p4r, p4r_grpc

from serene.controller.switch.encoding import decoded, encoded, encoded_updates
from serene.entries import Cell, Entity, Entry, Updates, mac_text
from serene.errors import SereneError

LOG = logging.getLogger("serene.controller")

PUSH_TIMEOUT_S = 120.0  # the embedded switch compiles a program that it does not have in its cache
SEND_TIMEOUT_S = 10.0  # finsy's timeout of requests

NO_ANSWER = (fy.GRPCStatusCode.UNAVAILABLE, fy.GRPCStatusCode.CANCELLED, fy.GRPCStatusCode.DEADLINE_EXCEEDED)

T = TypeVar("T")
Read = TypeVar("Read", fy.P4TableEntry, fy.P4MulticastGroupEntry)


@dataclass(frozen=True)
class PacketIn:
    """A frame that the switch punts, and the port at which it arrived."""

    port: int
    frame: bytes


@dataclass(frozen=True)
class Learned:
    """Unknown sources of frames: MAC address and port. ack: for `Connection.acknowledge`."""

    sources: Sequence[tuple[str, int]]
    ack: object


class SwitchError(SereneError):
    """The switch refused a request, for the reason in the message, or is unreachable."""


class Unreachable(SwitchError):
    """There is no connection to the switch."""


class Unanswered(Unreachable):
    """The connection was lost before the switch answered. It may have executed the request."""


class NotPrimary(SwitchError):
    """Another controller holds the switch."""


class IdInUse(NotPrimary):
    """Another stream has this election id: a second controller's, or that of a controller that has just ended, which
    the switch has not noticed yet."""


async def within(timeout_s: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``. Raises asyncio.TimeoutError if it takes longer. Before Python 3.12, `asyncio.wait_for`
    loses a cancellation that arrives together with the result: an endless task would then never end."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait([task], timeout=timeout_s)
        if not task.done():
            raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Options(GRPCOptions):
    """finsy's options, and a TCP connection for each channel. gRPC would let a channel share an earlier one's
    connection to the same address. That connection stays as long as anything refers to one of its calls, such as an
    error's traceback. If the earlier channel was closed because it got no answers, the next one would get none
    either."""

    def to_native(self) -> list[tuple[str, Any]]:
        return [*super().to_native(), ("grpc.use_local_subchannel_pool", 1)]


class _Client(fy.P4Client):
    """finsy's client with these options, which cannot be set there."""

    @property
    def stream_has_ended(self) -> bool:
        """Whether the stream has ended. `send` would begin another one, without arbitration; and gRPC blocks a sender
        for ever on a stream that is closed before it has begun."""
        return self._stream is None or self._stream.done()

    async def open(
        self, *, schema: fy.P4Schema | None = None, complete_request: Callable[[Any], None] | None = None
    ) -> None:
        options = _Options(max_metadata_size=64 << 10, max_reconnect_backoff_ms=15_000)
        self._channel = grpc_channel(self._address, credentials=self._credentials, options=options)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._schema, self._complete_request = schema, complete_request


class Connection(Protocol):
    """A connection to a switch that this controller commands. Operations raise SwitchError."""

    election_id: int

    @property
    def unsettled(self) -> bool:
        """Whether the switch may still execute an unanswered request."""

    async def open(self) -> None:
        """Connects, and returns once this controller is primary. Raises Unreachable, NotPrimary or SwitchError."""

    async def close(self) -> None:
        """Ends the connection; requests under way raise Unreachable."""

    async def install_program(self) -> bool:
        """Pushes the program unless it runs already. Returns True if it was pushed, so that all state is new."""

    async def write(self, updates: Updates, *, missing_ok: bool = False) -> None:
        """Writes updates by one request, in order. missing_ok: updates of missing entities are no error."""

    async def put(self, entity: Entity) -> None:
        """Inserts an entity, or replaces it if the switch has it already."""

    async def entries(self) -> list[Entry]:
        """The entries of all tables."""

    async def packets(self, cells: Sequence[Cell]) -> dict[Cell, int]:
        """The packets in cells of counters."""

    async def send(self, port: int, frame: bytes) -> None:
        """Makes the switch send a frame from a port."""

    async def acknowledge(self, acks: Sequence[object]) -> None:
        """Acknowledges a list of digests (`Learned`)."""

    def messages(self) -> AsyncIterator[PacketIn | Learned]:
        """The switch's messages, until the connection ends (raises Unreachable) or another controller takes over
        (raises NotPrimary)."""


class P4RuntimeConnection:
    """A stream on which this controller asks to be primary. address: HOST:PORT. schema: of the program for the switch.
    others: names of programs by their cookies. They are not replaced: a switch that runs one is another switch than
    intended. credentials: None: the connection is not encrypted. name: of the switch, if there are several. with_slots:
    returns the cookie of the program with a number of slots. A switch that runs it with another number keeps that
    program, because replacing it would end its jobs. None: it is replaced.
    """

    def __init__(
        self,
        address: str,
        device_id: int,
        election_id: int,
        schema: fy.P4Schema,
        credentials: fy.GRPCCredentialsTLS | None = None,
        name: str = "",
        others: Mapping[int, str] | None = None,
        with_slots: Callable[[int], int | None] | None = None,
    ) -> None:
        self._others, self._with_slots = others or {}, with_slots
        self._switch = f"switch {name} at {address}" if name else f"switch at {address}"
        self._no_connection = f"no connection to {'the' if name else 'a'} {self._switch}"
        self._silent = f"the {self._switch} did not answer in time; it may be stopped"
        self.device_id = device_id
        self.election_id = election_id
        self.is_primary = False
        self._ended: str | None = None  # why
        self._unanswered = 0  # changes that the switch may or may not have executed
        self._sending = asyncio.Lock()  # gRPC takes one message for a stream at a time
        self._schema = schema
        self._client = _Client(address, credentials, wait_for_ready=False)

    @property
    def unsettled(self) -> bool:
        return self._unanswered > 0

    async def open(self) -> None:
        try:
            await self._client.open(schema=self._schema, complete_request=self._sign)
            await self._learn_version()
            await self._ask_to_be_primary()
            while not self.is_primary:
                message = await self._receive()
                if message.WhichOneof("update") == "arbitration":
                    await self._arbitrate(message.arbitration)
        except fy.P4ClientError as error:
            raise self._explained(error) from None

    async def close(self) -> None:
        await self._end(self._no_connection)

    async def _end(self, why: str) -> None:
        self.is_primary = False
        self._ended = self._ended or why
        await self._client.close()

    @contextlib.asynccontextmanager
    async def _while_open(self) -> AsyncIterator[None]:
        """A context for a request: raises Unreachable when the connection ends before or during it. A request without
        an answer in time ends the connection: the switch's entries have to be read again before the next request.

        gRPC cancels the requests of a connection that ends. This must not count as a cancellation of the waiting task.
        """
        if self._ended is not None:
            raise Unreachable(self._ended)
        try:
            yield
        except asyncio.CancelledError:
            cancelling = getattr(asyncio.current_task(), "cancelling", lambda: 0)()  # from Python 3.11 on
            if self._ended is not None and not cancelling:
                raise Unanswered(self._ended) from None
            raise
        except fy.P4ClientError as error:
            if error.code == fy.GRPCStatusCode.DEADLINE_EXCEEDED:
                await self._end(str(self._explained(error)))
            raise

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """A context for a request that changes the switch."""
        self._unanswered += 1
        try:
            yield
        except fy.P4ClientError as error:
            self._unanswered -= error.code not in NO_ANSWER
            raise
        self._unanswered -= 1

    async def install_program(self) -> bool:
        running = await self._running_cookie()
        if running == self._schema.p4cookie:
            return False
        if running is not None and running in self._others:
            raise SwitchError(
                f"the {self._switch} runs {self._others[running]}, a program of another level of the tree. "
                "Check the names in --switch, or restart the switch"
            )
        if running is not None:
            await self._check_slots(running)
            await self._forget_replication()
        assert self._client.channel is not None
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._schema.get_pipeline_config(),
        )
        self._sign(request)
        stub: Any = p4r_grpc.P4RuntimeStub(self._client.channel)
        try:
            with self._changing():
                try:
                    await stub.SetForwardingPipelineConfig(request, timeout=PUSH_TIMEOUT_S)
                except grpc.RpcError as error:
                    raise fy.P4ClientError(error, "SetForwardingPipelineConfig") from None
        except fy.P4ClientError as error:
            refusal = self._explained(error)
            if isinstance(refusal, Unreachable | NotPrimary):
                raise refusal from None
            raise SwitchError(f"{refusal} (while pushing the program)") from None
        return True

    async def _check_slots(self, running: int) -> None:
        """Raises SwitchError if the switch runs this program with another number of slots and the user chose none."""
        if self._with_slots is None:
            return
        config = await self._running_config(p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE)
        sizes = [] if config is None else [register.size for register in config.p4info.registers]
        slots = min(sizes, default=0)
        if slots and self._with_slots(slots) == running:
            raise SwitchError(
                f"the {self._switch} runs this program with {slots} slots. --slots {slots} takes over its jobs; "
                "another number ends them"
            )

    async def _forget_replication(self) -> None:
        """Removes the previous program's multicast groups: BMv2 keeps their members when a program is pushed, and would
        then send each packet twice."""
        await self._write([-group for group in await self._read([fy.P4MulticastGroupEntry()])])

    async def write(self, updates: Updates, *, missing_ok: bool = False) -> None:
        await self._write(encoded_updates(updates), missing_ok)

    async def send(self, port: int, frame: bytes) -> None:
        await self._write([fy.P4PacketOut(frame, egress_port=port, padding=0)])

    async def acknowledge(self, acks: Sequence[object]) -> None:
        await self._write(acks)

    async def _write(self, updates: Iterable[Any], missing_ok: bool = False) -> None:
        """Writes finsy's updates by one WriteRequest, but stream messages at once."""
        batch = []
        try:
            for update in encode_updates(updates, self._schema):
                if isinstance(update, p4r.StreamMessageRequest):
                    await self._send(update)
                else:
                    batch.append(update)
            if batch:
                await self._change(batch)
        except fy.P4ClientError as error:
            if missing_ok and error.is_not_found_only:
                return
            raise self._explained(error) from None

    async def _send(self, message: p4r.StreamMessageRequest) -> None:
        """Sends on the stream, which has no deadline: a stopped switch accepts some MB, and then nothing more."""
        async with self._sending, self._while_open():
            if self._client.stream_has_ended:
                raise Unreachable(self._no_connection)
            try:
                await within(SEND_TIMEOUT_S, self._client.send(message))
            except asyncio.TimeoutError:
                await self._end(self._silent)
                raise Unanswered(self._silent) from None

    async def put(self, entity: Entity) -> None:
        made = encode_entities([encoded(entity)], self._schema)
        inserts = [p4r.Update(type=p4r.Update.INSERT, entity=one) for one in made]
        try:
            await self._change(inserts)
        except fy.P4ClientError as error:
            if all(detail.canonical_code != fy.GRPCStatusCode.ALREADY_EXISTS for detail in error.details.values()):
                raise self._explained(error) from None
            await self._write(p4r.Update(type=p4r.Update.MODIFY, entity=one) for one in made)

    async def _change(self, updates: list[p4r.Update]) -> None:
        async with self._while_open():
            with self._changing():
                await self._client.request(p4r.WriteRequest(device_id=self.device_id, updates=updates))

    async def entries(self) -> list[Entry]:
        return decoded(await self._read([fy.P4TableEntry()]))

    async def packets(self, cells: Sequence[Cell]) -> dict[Cell, int]:
        # Encoded here: finsy takes several times as long, and automatic strategies read cells many times a second.
        ids = {name: self._schema.counters[name].id for name in {cell.counter for cell in cells}}
        names = {number: name for name, number in ids.items()}
        wanted = [
            p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=ids[cell.counter], index=p4r.Index(index=cell.index)))
            for cell in cells
        ]
        read = [entity.counter_entry for entity in await self._entities(wanted)]
        return {Cell(names[entry.counter_id], entry.index.index): entry.data.packet_count for entry in read}

    async def _read(self, entities: Sequence[Read]) -> list[Read]:
        """The requested entities that the switch has, all of one kind."""
        found = await self._entities(encode_entities(entities, self._schema))
        return [cast("Read", decode_entity(entity, self._schema)) for entity in found]

    async def _entities(self, wanted: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """As `_read`, encoded."""
        request = p4r.ReadRequest(device_id=self.device_id, entities=wanted)
        try:
            async with self._while_open():
                return [entity async for reply in self._client.request_iter(request) for entity in reply.entities]
        except fy.P4ClientError as error:
            raise self._explained(error) from None

    async def messages(self) -> AsyncIterator[PacketIn | Learned]:
        while True:
            message = await self._receive()
            kind = message.WhichOneof("update")
            if kind == "arbitration":
                await self._arbitrate(message.arbitration)
            elif kind in ("packet", "digest"):
                decoded = decode_stream(message, self._schema)
                if isinstance(decoded, fy.P4DigestList):
                    yield Learned([(mac_text(seen["source"]), seen["port"]) for seen in decoded], decoded.ack())
                else:
                    yield PacketIn(int(decoded["ingress_port"]), decoded.payload)
            elif kind == "error":
                LOG.warning("the switch refused a packet-out: %s", message.error.message)

    async def _receive(self) -> p4r.StreamMessageResponse:
        try:
            async with self._while_open():
                return await self._client.receive()
        except fy.P4ClientError as error:
            if error.code == fy.GRPCStatusCode.INVALID_ARGUMENT:  # P4Runtime's answer to an election id in use
                raise IdInUse(self._held_by(self.election_id)) from None
            raise self._explained(error) from None
        except RuntimeError:  # P4Client's error if the switch closed the stream
            raise Unreachable(f"the {self._switch} closed the connection") from None

    async def _learn_version(self) -> None:
        """Reads the version of P4Runtime: in 1.5 the encoding of multicast replicas changed."""
        try:
            reply = await self._client.request(p4r.CapabilitiesRequest())
        except fy.P4ClientError as error:
            if error.code != fy.GRPCStatusCode.UNIMPLEMENTED:
                raise
        else:
            self._schema.set_p4runtime_version(fy.P4RuntimeVersion.parse(reply.p4runtime_api_version))

    async def _running_cookie(self) -> int | None:
        config = await self._running_config(p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY)
        return config.cookie.cookie if config is not None and config.HasField("cookie") else None

    async def _running_config(self, response_type: Any) -> Any | None:
        """The switch's running configuration; None if it runs no program."""
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=response_type)
        try:
            return (await self._client.request(request)).config
        except fy.P4ClientError as error:
            if error.is_pipeline_missing:
                return None
            raise self._explained(error) from None

    async def _ask_to_be_primary(self) -> None:
        await self._client.send(
            p4r.StreamMessageRequest(
                arbitration=p4r.MasterArbitrationUpdate(
                    device_id=self.device_id, election_id=U128.encode(self.election_id)
                )
            )
        )

    async def _arbitrate(self, update: p4r.MasterArbitrationUpdate) -> None:
        highest = U128.decode(update.election_id)
        self.is_primary = update.status.code == fy.GRPCStatusCode.OK.value
        if update.status.code == fy.GRPCStatusCode.NOT_FOUND.value and highest > self.election_id:
            # There is no primary any more, but a switch accepts no id below the highest that it has seen (P4Runtime
            # specification).
            self.election_id = highest
            await self._ask_to_be_primary()
        elif not self.is_primary:
            raise NotPrimary(self._held_by(highest))

    def _held_by(self, primary: int) -> str:
        return (
            f"another controller (election id {primary}) is primary for the {self._switch}; "
            f"take over with --election-id N > {primary}"
        )

    def _sign(self, request: Any) -> None:
        if isinstance(request, p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest):
            request.election_id.CopyFrom(U128.encode(self.election_id))

    def _explained(self, error: fy.P4ClientError) -> SwitchError:
        if error.code in (fy.GRPCStatusCode.UNAVAILABLE, fy.GRPCStatusCode.CANCELLED):
            return Unreachable(self._no_connection)
        if error.code == fy.GRPCStatusCode.PERMISSION_DENIED:
            return NotPrimary(f"another controller is primary for the {self._switch}: {error.message}")
        if error.code == fy.GRPCStatusCode.DEADLINE_EXCEEDED:
            return Unanswered(self._silent)
        reasons = [detail.message for detail in error.details.values() if detail.message] or [error.message]
        return SwitchError(f"the {self._switch} refused: {'; '.join(dict.fromkeys(reasons))} ({error.code.name})")
