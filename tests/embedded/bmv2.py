"""BMv2 with packets over gRPC: it needs neither interfaces nor root, takes packets of any size, and says when it is
done.

simple_switch_grpc takes packets from a stream of their own (``--dp-grpc-server-addr``). After the client's last packet,
BMv2 closes the stream once it has processed everything, so tests need not wait until nothing comes out any more.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4i, p4r
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from serene.embedded import Exact, Lpm, Match, Optional, Program, Range, Ternary, load_program
from serene.embedded.program.ir import Action, Table, mask
from serene.topologies.processes import bmv2
from tests.controller.processes import Process, listens
from tests.embedded.p4rt_controller import PATIENCE_S, but, clone_session, number
from tests.p4rt import Controller
from tests.ports import some_ports

SWITCH = "simple_switch_grpc"
# Until BMv2 hangs, for tests of a few packets. p4c's packet tests took 0.1 s at most, on two busy cores (load of 8).
HANGS_S = 10.0


def why_not() -> str:
    """What BMv2 lacks here to be used by tests; empty if nothing is missing."""
    return "" if shutil.which(SWITCH) else f"needs {SWITCH}"


@contextlib.contextmanager
def bmv2_process(log: Path, *further: str, device_id: int = 0) -> Iterator[str]:
    """The address of a simple_switch_grpc without a program. further: options after the ``--``."""
    grpc_port, thrift_port = some_ports(2)
    address = f"127.0.0.1:{grpc_port}"
    process = Process([*bmv2(thrift_port, device_id), "--", "--grpc-server-addr", address, *further], log)
    try:
        process.await_(lambda: listens(address), "BMv2 listens")
        yield address
    finally:
        process.kill()


@cache
def _packet_message() -> Any:
    """The class of one protobuf message that serves as PacketStreamRequest and as PacketStreamResponse: both have the
    fields id, device, port and packet."""
    file = descriptor_pb2.FileDescriptorProto(name="serene/bmv2_packets.proto", package="serene.bmv2", syntax="proto3")
    message = file.message_type.add(name="Packet")
    kinds = descriptor_pb2.FieldDescriptorProto
    for place, (name, kind) in enumerate(
        (("id", kinds.TYPE_UINT64), ("device_id", kinds.TYPE_UINT64), ("port", kinds.TYPE_UINT32),
         ("packet", kinds.TYPE_BYTES)), 1
    ):  # fmt: skip
        message.field.add(name=name, number=place, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("serene.bmv2.Packet"))


class Bmv2:
    """A running switch with a program. Raises RpcError where BMv2 refuses the program, WriteFailed where an entry.
    patience_s: for the answer to all packets of a call of ``process``."""

    def __init__(self, json: Path, p4info: Path, log: Path, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        (packets_port,) = some_ports(1)
        packets = f"127.0.0.1:{packets_port}"
        with contextlib.ExitStack() as stack:
            address = stack.enter_context(bmv2_process(log, "--dp-grpc-server-addr", packets))
            channel = stack.enter_context(grpc.insecure_channel(packets, [("grpc.max_receive_message_length", -1)]))
            grpc.channel_ready_future(channel).result(PATIENCE_S)
            self.controller = Controller(address, json, p4info)
            stack.callback(self.controller.close)
            self.controller.push()
            message = _packet_message()
            self._packets = channel.stream_stream(
                "/p4.bm.DataplaneInterface/PacketStream",
                request_serializer=message.SerializeToString,
                response_deserializer=message.FromString,
            )
            self.close = stack.pop_all().close

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Sends (port, packet) pairs in order, and returns the pairs that came out until BMv2 had processed all of
        them. Raises RpcError, with DEADLINE_EXCEEDED if that takes too long."""
        message = _packet_message()
        requests = [message(port=port, packet=packet) for port, packet in packets]
        until = time.monotonic() + self._patience_s
        while True:
            try:
                answers = self._packets(iter(requests), timeout=self._patience_s)
                return [(answer.port, answer.packet) for answer in answers]
            except grpc.RpcError as error:
                # So it says, before it takes a packet, while the stream before this one is not over yet.
                if error.details() != "not ready" or time.monotonic() > until:
                    raise
                time.sleep(0.01)


def _add_match(entry: p4r.TableEntry, field: p4i.MatchField, value: Match) -> None:
    """Adds one field's match to the entry. A field that matches everything is left out, as P4Runtime demands."""
    made = p4r.FieldMatch(field_id=field.id)
    if isinstance(value, Exact):
        made.exact.value = number(value.value)
    elif isinstance(value, Lpm) and value.prefix_len:
        keep = mask(field.bitwidth) ^ mask(field.bitwidth - value.prefix_len)
        made.lpm.value, made.lpm.prefix_len = number(value.value & keep), value.prefix_len
    elif isinstance(value, Ternary) and value.mask:
        if field.match_type == p4i.MatchField.MatchType.OPTIONAL:
            made.optional.value = number(value.value)
        else:
            made.ternary.value, made.ternary.mask = number(value.value), number(value.mask)
    elif isinstance(value, Range) and (value.low, value.high) != (0, mask(field.bitwidth)):
        made.range.low, made.range.high = number(value.low), number(value.high)
    elif isinstance(value, Optional) and value.value is not None:
        made.optional.value = number(value.value)
    else:
        return
    entry.match.append(made)


@contextlib.contextmanager
def running_bmv2(json: Path, p4info: Path, patience_s: float = PATIENCE_S) -> Iterator[Bmv2]:
    with (
        tempfile.TemporaryDirectory() as scratch,
        contextlib.closing(Bmv2(json, p4info, Path(scratch) / "bmv2.log", patience_s)) as switch,
    ):
        yield switch


class Bmv2Target:
    """BMv2 as a target of STF scripts. Packets are sent when their outcome is asked for, or before the next entry."""

    def __init__(self, switch: Bmv2, json: Path) -> None:
        self.program: Program = load_program(json)
        self._switch, self._controller = switch, switch.controller
        self._waiting: list[tuple[int, bytes]] = []
        self._outputs: dict[int, list[bytes]] = defaultdict(list)
        self._groups: set[int] = set()
        self._entries: list[p4r.TableEntry] = []

    def _flushed(self) -> Controller:
        if self._waiting:
            for port, packet in self._switch.process(self._waiting):
                self._outputs[port].append(packet)
            self._waiting = []
        return self._controller

    def add(self, table: Table, match: Sequence[Match], action: Action, params: Sequence[int], priority: int) -> int:
        info = self._controller.named("tables", table.name)
        entry = p4r.TableEntry(table_id=info.preamble.id, action=self._controller.action(action.name, *params))
        for field, value in zip(info.match_fields, match, strict=True):
            _add_match(entry, field, value)
        needs = p4i.MatchField.MatchType
        if any(f.match_type in (needs.TERNARY, needs.RANGE, needs.OPTIONAL) for f in info.match_fields):
            entry.priority = priority + 1  # P4Runtime's priorities begin at 1
        self._flushed().insert(entry)
        self._entries.append(entry)
        return len(self._entries) - 1

    def set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        self._flushed().modify(self._controller.default(table.name, action.name, *params))

    def group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        controller = self._flushed()
        if group in self._groups:
            controller.delete_group(group)
        self._groups.add(group)
        controller.group(group, replicas)

    def clone_session(self, session: int, replicas: Sequence[tuple[int, int]]) -> None:
        self._flushed().insert(clone_session(session, *replicas))

    def send(self, port: int, data: bytes) -> None:
        self._waiting.append((port, data))

    def counter(self, name: str, index: int) -> tuple[int, int]:
        id_ = self._controller.id("counters", name)
        return self._counts(p4r.CounterEntry(counter_id=id_, index=p4r.Index(index=index)))

    def direct_counter(self, table: Table, handle: int) -> tuple[int, int]:
        return self._counts(p4r.DirectCounterEntry(table_entry=but(self._entries[handle], "action")))

    def _counts(self, wanted: p4r.CounterEntry | p4r.DirectCounterEntry) -> tuple[int, int]:
        data = self._controller.read_one(wanted).data
        return data.packet_count, data.byte_count

    def outputs(self) -> dict[int, list[bytes]]:
        self._flushed()
        return dict(self._outputs)
