"""A P4Runtime client made of bare gRPC stubs, so that tests say and see exactly what is on the wire."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import pytest
from finsy.proto import p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format
from google.protobuf.message import Message
from typing_extensions import Self

PATIENCE_S = 120.0
KINDS = (
    "tables", "actions", "action_profiles", "value_sets", "counters", "direct_counters", "meters", "registers",
    "digests",
)  # fmt: skip
GONE = object()
Code: TypeAlias = grpc.StatusCode
_CODES = {code.value[0]: code for code in Code}
_election_ids = itertools.count(100)  # a switch never forgets the highest one


def new_election_id() -> int:
    """An election id that is higher than all that this process has used."""
    return next(_election_ids)


class WriteFailed(Exception):
    """A Write that was refused; has the status codes and messages, one for each update."""

    def __init__(self, error: grpc.RpcError) -> None:
        super().__init__(error.details())
        self.code, self.message = error.code(), error.details()
        details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
        self.status = rpc_status.Status.FromString(details)
        self.errors = [p4r.Error.FromString(detail.value) for detail in self.status.details]

    @property
    def codes(self) -> list[grpc.StatusCode]:
        return [_CODES[error.canonical_code] for error in self.errors]

    @property
    def messages(self) -> list[str]:
        return [error.message for error in self.errors]


def number(value: int, size: int = 0) -> bytes:
    """An integer as big-endian bytes: ``size`` of them, or the fewest that hold it."""
    return value.to_bytes(size or max((value.bit_length() + 7) // 8, 1), "big")


class Stream:
    """One StreamChannel call. ``ended`` is the gRPC error with which it ended, None while it lasts."""

    def __init__(self, stub: p4r_grpc.P4RuntimeStub, device_id: int) -> None:
        self._device_id = device_id
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._responses: queue.SimpleQueue[p4r.StreamMessageResponse | None] = queue.SimpleQueue()
        self.ended: grpc.RpcError | None = None
        self.done = threading.Event()
        self._call = stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for response in self._call:
                self._responses.put(response)
        except grpc.RpcError as error:
            self.ended = error
        self.done.set()
        self._responses.put(None)

    def send(self, **message: Any) -> None:
        self._requests.put(p4r.StreamMessageRequest(**message))

    def introduce(self, election_id: int | None, *, device_id: int | None = None, role: p4r.Role | None = None) -> None:
        update = p4r.MasterArbitrationUpdate(device_id=self._device_id if device_id is None else device_id, role=role)
        if election_id is not None:
            update.election_id.high, update.election_id.low = election_id >> 64, election_id & (1 << 64) - 1
        self.send(arbitration=update)

    def take(self, timeout_s: float) -> p4r.StreamMessageResponse | None:
        """The next message; None at the end of the stream. Raises queue.Empty."""
        return self._responses.get(timeout=timeout_s)

    def next_message(self, timeout_s: float = PATIENCE_S) -> p4r.StreamMessageResponse:
        try:
            response = self.take(timeout_s)
        except queue.Empty:
            raise AssertionError(f"no message within {timeout_s} s") from None
        assert response is not None, f"the stream ended: {self.ended}"
        return response

    def receive(self, kind: str, timeout_s: float = PATIENCE_S) -> Any:
        """Waits for the next message, which has to be of this kind."""
        response = self.next_message(timeout_s)
        assert response.WhichOneof("update") == kind, response
        return getattr(response, kind)

    def status(self) -> grpc.StatusCode:
        """The status code in the next arbitration update: OK for the primary."""
        return _CODES[self.receive("arbitration").status.code]

    def end_code(self) -> grpc.StatusCode:
        """Waits until the server ends the stream, and returns the status code with which it does."""
        assert self.done.wait(PATIENCE_S), "the stream did not end"
        assert self.ended is not None, "the stream ended without an error"
        return self.ended.code()

    def end_words(self) -> str:
        """The message of that error."""
        return str(self.ended.details()) if self.ended is not None else ""

    def half_close(self) -> None:
        """Closes the sending side of the stream."""
        self._requests.put(None)

    def close(self) -> None:
        self.half_close()
        self._call.cancel()
        self.done.wait(PATIENCE_S)


class Controller:
    """A channel to a switch, a P4Info to build messages from, and a stream on demand."""

    def __init__(self, address: str, device_id: int, p4info: p4i.P4Info, program: bytes) -> None:
        self.device_id = device_id
        self.p4info = p4info
        self.program = program
        self.election_id = new_election_id()
        self._channel = grpc.insecure_channel(address)
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._streams: list[Stream] = []
        self._ids = {
            kind: {name: item for item in getattr(p4info, kind) for name in (item.preamble.name, item.preamble.alias)}
            for kind in KINDS
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        self._channel.close()

    def stream(self) -> Stream:
        self._streams.append(Stream(self.stub, self.device_id))
        return self._streams[-1]

    def become_primary(self) -> Stream:
        self.messages = self.stream()
        self.messages.introduce(self.election_id)
        assert self.messages.status() is Code.OK
        return self.messages

    @property
    def election(self) -> p4r.Uint128:
        return p4r.Uint128(high=self.election_id >> 64, low=self.election_id & (1 << 64) - 1)

    # -- pipelines -------------------------------------------------------------------------------------------

    def push(
        self,
        program: bytes | None = None,
        p4info: p4i.P4Info | None = None,
        *,
        action: str = "VERIFY_AND_COMMIT",
        cookie: int = 0,
    ) -> None:
        """Sets the pipeline: this controller's own program and P4Info, where no others are given."""
        request = self._pipeline_request(action)
        request.config.p4_device_config = self.program if program is None else program
        request.config.p4info.CopyFrom(p4info or self.p4info)
        if cookie:
            request.config.cookie.cookie = cookie
        self.stub.SetForwardingPipelineConfig(request, timeout=60)

    def push_nothing(self, action: str = "COMMIT") -> None:
        self.stub.SetForwardingPipelineConfig(self._pipeline_request(action), timeout=60)

    def _pipeline_request(self, action: str) -> p4r.SetForwardingPipelineConfigRequest:
        kind = p4r.SetForwardingPipelineConfigRequest
        return kind(device_id=self.device_id, election_id=self.election, action=kind.Action.Value(action))

    def get_pipeline(self, kind: str = "ALL") -> p4r.ForwardingPipelineConfig:
        request = p4r.GetForwardingPipelineConfigRequest
        answer: p4r.GetForwardingPipelineConfigResponse = self.stub.GetForwardingPipelineConfig(
            request(device_id=self.device_id, response_type=request.ResponseType.Value(kind)), timeout=PATIENCE_S
        )
        return answer.config

    # -- writes and reads ------------------------------------------------------------------------------------

    def write(self, *updates: p4r.Update, **fields: Any) -> None:
        """Raises WriteFailed. fields: of the request, in place of this controller's; None leaves one out."""
        request = p4r.WriteRequest(device_id=self.device_id, election_id=self.election, updates=updates)
        for name, value in fields.items():
            request.ClearField(name)  # type: ignore[arg-type]
            if value is not None:
                request.MergeFrom(p4r.WriteRequest(**{name: value}))
        try:
            self.stub.Write(request, timeout=PATIENCE_S)
        except grpc.RpcError as error:
            raise WriteFailed(error) from None

    def insert(self, *entities: Any) -> None:
        self.write(*(update("INSERT", entity) for entity in entities))

    def modify(self, *entities: Any) -> None:
        self.write(*(update("MODIFY", entity) for entity in entities))

    def delete(self, *entities: Any) -> None:
        self.write(*(update("DELETE", entity) for entity in entities))

    def outcome(self, operation: str, entity: Any) -> tuple[Code, str]:
        """The code and the message with which the switch answers one update, or one READ."""
        try:
            if operation == "READ":
                self.read(entity)
            else:
                self.write(update(operation, entity))
        except WriteFailed as failed:
            assert failed.code is Code.UNKNOWN and len(failed.errors) == 1, failed
            return failed.codes[0], failed.messages[0]
        except grpc.RpcError as error:
            return error.code(), error.details()
        return Code.OK, ""

    def code(self, operation: str, entity: Any) -> Code:
        return self.outcome(operation, entity)[0]

    def read(self, *wanted: Any) -> list[Any]:
        request = p4r.ReadRequest(device_id=self.device_id, entities=[as_entity(item) for item in wanted])
        found = [item for answer in self.stub.Read(request, timeout=PATIENCE_S) for item in answer.entities]
        return [getattr(item, item.WhichOneof("entity")) for item in found]

    def read_one(self, wanted: Any) -> Any:
        (found,) = self.read(wanted)
        return found

    # -- messages by name ------------------------------------------------------------------------------------

    def named(self, kind: str, name: str) -> Any:
        """A part of the P4Info, by its name or alias. Raises KeyError."""
        return self._ids[kind][name]

    def id(self, kind: str, name: str) -> int:
        return int(self.named(kind, name).preamble.id)

    def key(
        self, table: str, match: Mapping[str, Sequence[int] | int] | None = None, priority: int = 0
    ) -> p4r.TableEntry:
        """A table entry without an action. match: by field, an int, (value, length), (value, mask) or (low, high)."""
        info = self.named("tables", table)
        entry = p4r.TableEntry(table_id=info.preamble.id, priority=priority)
        for field in info.match_fields:
            if field.name in (match or {}):
                entry.match.append(_field_match(field, match[field.name]))  # type: ignore[index]
        return entry

    def entry(
        self,
        table: str,
        match: Mapping[str, Sequence[int] | int] | None,
        action: str,
        *params: int,
        priority: int = 0,
        **fields: Any,
    ) -> p4r.TableEntry:
        entry = self.key(table, match, priority)
        entry.action.CopyFrom(self.action(action, *params))
        entry.MergeFrom(p4r.TableEntry(**fields))
        return entry

    def default(self, table: str, action: str | None = None, *params: int) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=self.id("tables", table), is_default_action=True)
        if action:
            entry.action.CopyFrom(self.action(action, *params))
        return entry

    def action(self, name: str, *params: int) -> p4r.TableAction:
        info = self.named("actions", name)
        result = p4r.TableAction()
        result.action.action_id = info.preamble.id
        for param, value in zip(info.params, params, strict=True):
            result.action.params.add(param_id=param.id, value=number(value))
        return result


def load_p4info(path: Path) -> p4i.P4Info:
    info = p4i.P4Info()
    text_format.Parse(path.read_text(), info)
    return info


def as_entity(item: Any) -> p4r.Entity:
    if isinstance(item, p4r.Entity):
        return item
    entity = p4r.Entity()
    field = next(f for f in p4r.Entity.DESCRIPTOR.fields if f.message_type is item.DESCRIPTOR)
    getattr(entity, field.name).CopyFrom(item)
    return entity


def update(type_: str, item: Any) -> p4r.Update:
    return p4r.Update(type=p4r.Update.Type.Value(type_), entity=as_entity(item))


def multicast_group(id_: int, *replicas: tuple[int, int], **fields: Any) -> p4r.PacketReplicationEngineEntry:
    """Of (port, instance)s. fields: one more replica."""
    group = p4r.MulticastGroupEntry(multicast_group_id=id_, replicas=_replicas(replicas))
    if fields:
        group.replicas.add(**fields)
    return p4r.PacketReplicationEngineEntry(multicast_group_entry=group)


def clone_session(id_: int, *replicas: tuple[int, int], **fields: Any) -> p4r.PacketReplicationEngineEntry:
    session = p4r.CloneSessionEntry(session_id=id_, replicas=_replicas(replicas), **fields)
    return p4r.PacketReplicationEngineEntry(clone_session_entry=session)


def _replicas(replicas: Sequence[tuple[int, int]]) -> list[p4r.Replica]:
    return [p4r.Replica(egress_port=port, instance=instance) for port, instance in replicas]


def but(message: Any, path: str, value: Any = GONE) -> Any:
    """A copy of the message with another value at a path: ``match.0.exact.value``, ``tables.by_lpm.preamble.name``.
    Elements of a list are named by their index, alias or name; + is a new one. GONE: what is there is removed."""
    copy = type(message)()
    copy.CopyFrom(message)
    *way, last = path.split(".")
    node = copy
    for step in way:
        node = _part(node, step)
    if value is GONE and isinstance(node, Message):
        node.ClearField(last)
    elif value is GONE:
        node.remove(_part(node, last))
    elif isinstance(value, Message):
        getattr(node, last).SetInParent()
        getattr(node, last).CopyFrom(value)
    else:
        setattr(node, last, value)
    return copy


def _part(node: Any, step: str) -> Any:
    if isinstance(node, Message):
        return getattr(node, step)
    if hasattr(node, "keys"):
        return node[step]
    if step == "+":
        return node.add()
    return node[int(step)] if step.isdigit() else next(one for one in node if step == alias(one))


def alias(item: Any) -> str:
    """The name of a part of a P4Info."""
    return str(item.name if "name" in item.DESCRIPTOR.fields_by_name else item.preamble.alias)


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Polls ``condition`` and returns its first true value. Fails, naming ``what``, after ``patience_s`` seconds."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {patience_s} s: {what}"
        time.sleep(0.01)


def _field_match(field: p4i.MatchField, value: Sequence[int] | int) -> p4r.FieldMatch:
    result = p4r.FieldMatch(field_id=field.id)
    kind = p4i.MatchField.MatchType.Name(field.match_type)
    if kind == "EXACT":
        result.exact.value = number(value)  # type: ignore[arg-type]
    elif kind == "OPTIONAL":
        result.optional.value = number(value)  # type: ignore[arg-type]
    else:
        first, second = value  # type: ignore[misc]
        if kind == "LPM":
            result.lpm.value, result.lpm.prefix_len = number(first), second
        elif kind == "TERNARY":
            result.ternary.value, result.ternary.mask = number(first), number(second)
        else:
            result.range.low, result.range.high = number(first), number(second)
    return result


def everything(controller: Controller) -> list[list[bytes]]:
    """All that can be read, with direct counters and meters. simple_switch_grpc answers no such requests."""
    tables, defaults = p4r.TableEntry(), p4r.TableEntry(is_default_action=True)
    for wanted in (tables, defaults):
        wanted.counter_data.SetInParent()
        wanted.meter_config.SetInParent()
    kinds = (
        p4r.CounterEntry(), p4r.MeterEntry(), p4r.RegisterEntry(), p4r.ValueSetEntry(), p4r.ActionProfileMember(),
        p4r.ActionProfileGroup(), p4r.PacketReplicationEngineEntry(), p4r.DigestEntry(),
    )  # fmt: skip
    read = [controller.read(wanted) for wanted in (tables, defaults, *kinds)]
    return [[entry.SerializeToString(deterministic=True) for entry in ordered(entries)] for entries in read]


def ordered(entries: Iterable[Any]) -> list[Any]:
    """The entries in an order that depends on their content alone."""
    return sorted(entries, key=lambda entry: entry.SerializeToString(deterministic=True))


def refused(code: grpc.StatusCode, call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """The message with which the switch refuses a call; the status code has to be this one."""
    with pytest.raises((grpc.RpcError, WriteFailed)) as caught:
        call(*arguments, **options)
    error: Any = caught.value
    found, message = (error.code, error.message) if isinstance(error, WriteFailed) else (error.code(), error.details())
    assert found is code, message
    return str(message)
