"""BMv2 with packets over gRPC: it needs neither interfaces nor root, takes packets of any size, and says when it is
done.

simple_switch_grpc takes packets from a stream of their own (``--dp-grpc-server-addr``). After the client's last packet,
BMv2 closes the stream once it has processed everything, so tests need not wait until nothing comes out any more.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4i, p4r
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from serene.switch import Exact, Lpm, Match, Optional, Program, Range, Ternary, load_program
from serene.switch.expressions import mask
from serene.switch.program import Action, Table
from serene.topologies.processes import bmv2
from tests.p4rt import Controller
from tests.ports import some_ports

SWITCH = "simple_switch_grpc"
PATIENCE_S = 120.0


def why_not() -> str:
    """What BMv2 lacks here to be used by tests; empty if nothing is missing."""
    return "" if shutil.which(SWITCH) else f"needs {SWITCH}"


@cache
def _packet_message() -> Any:
    """The class of one protobuf message that serves as PacketStreamRequest and as PacketStreamResponse: both have the
    fields id, device, port and packet."""
    file = descriptor_pb2.FileDescriptorProto(name="serene/bmv2_packets.proto", package="serene.bmv2", syntax="proto3")
    message = file.message_type.add(name="Packet")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate(
        (("id", kinds.TYPE_UINT64), ("device_id", kinds.TYPE_UINT64), ("port", kinds.TYPE_UINT32),
         ("packet", kinds.TYPE_BYTES)), 1
    ):  # fmt: skip
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("serene.bmv2.Packet"))


class Bmv2:
    """A running switch with a program. Raises grpc.RpcError where BMv2 refuses the program or an entry."""

    def __init__(self, json: Path, p4info: Path, log: Path) -> None:
        grpc_port, packets_port, thrift_port = some_ports(3)
        command = [*bmv2(thrift_port), "--", "--grpc-server-addr", f"127.0.0.1:{grpc_port}"]
        command += ["--dp-grpc-server-addr", f"127.0.0.1:{packets_port}"]
        with log.open("w") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out, cwd=log.parent)
        self._stack = contextlib.ExitStack()
        self._stack.callback(self._end)
        try:
            self._channel = self._stack.enter_context(
                grpc.insecure_channel(f"127.0.0.1:{packets_port}", [("grpc.max_receive_message_length", -1)])
            )
            grpc.channel_ready_future(self._channel).result(PATIENCE_S)
            self.controller = Controller(f"127.0.0.1:{grpc_port}", json, p4info)
            self._stack.callback(self.controller.close)
            self.controller.push()
        except BaseException:
            self.close()
            raise
        message = _packet_message()
        self._packets = self._channel.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream",
            request_serializer=message.SerializeToString,
            response_deserializer=message.FromString,
        )

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._stack.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Sends (port, packet) pairs in order, and returns the pairs that came out until BMv2 had processed all of
        them."""
        message = _packet_message()
        requests = [message(port=port, packet=packet) for port, packet in packets]
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return [(answer.port, answer.packet) for answer in self._packets(iter(requests), timeout=PATIENCE_S)]
            except grpc.RpcError as error:
                # So it says, before it takes a packet, while the stream before this one is not over yet.
                if error.details() != "not ready" or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    # -- entries ---------------------------------------------------------------------------------------------

    def add(
        self, table: Table, match: Sequence[Match], action: Action, params: Sequence[int], priority: int
    ) -> p4r.TableEntry:
        """Inserts an entry, and returns it as it was written."""
        info = self._info(self.controller.p4info.tables, table.name)
        entry = p4r.TableEntry(table_id=info.preamble.id)
        for field, value in zip(info.match_fields, match, strict=True):
            _add_match(entry, field, value)
        needs = p4i.MatchField.MatchType
        if any(f.match_type in (needs.TERNARY, needs.RANGE, needs.OPTIONAL) for f in info.match_fields):
            entry.priority = priority + 1  # P4Runtime's priorities begin at 1
        self._set_action(entry, action, params)
        self.controller.write(p4r.Update.INSERT, {"table_entry": entry})
        return entry

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """One cell of a counter: (packets, bytes)."""
        info = self._info(self.controller.p4info.counters, name)
        entry = p4r.CounterEntry(counter_id=info.preamble.id, index=p4r.Index(index=index))
        data = self._read(p4r.Entity(counter_entry=entry)).counter_entry.data
        return data.packet_count, data.byte_count

    def direct_counter(self, entry: p4r.TableEntry) -> tuple[int, int]:
        wanted = p4r.DirectCounterEntry(table_entry=entry)
        wanted.table_entry.ClearField("action")
        data = self._read(p4r.Entity(direct_counter_entry=wanted)).direct_counter_entry.data
        return data.packet_count, data.byte_count

    def _read(self, entity: p4r.Entity) -> p4r.Entity:
        request = p4r.ReadRequest(device_id=0, entities=[entity])
        answers: Iterator[p4r.ReadResponse] = self.controller.stub.Read(request, timeout=PATIENCE_S)
        found: p4r.Entity = next(entity for answer in answers for entity in answer.entities)
        return found

    def set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        info = self._info(self.controller.p4info.tables, table.name)
        entry = p4r.TableEntry(table_id=info.preamble.id, is_default_action=True)
        self._set_action(entry, action, params)
        self.controller.write(p4r.Update.MODIFY, {"table_entry": entry})

    def group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        self.controller.group(group, replicas)

    def clone_session(self, session: int, replicas: Sequence[tuple[int, int]]) -> None:
        entry = p4r.CloneSessionEntry(session_id=session)
        for port, instance in replicas:
            entry.replicas.add(egress_port=port, instance=instance)
        pre = p4r.PacketReplicationEngineEntry(clone_session_entry=entry)
        self.controller.write(p4r.Update.INSERT, {"packet_replication_engine_entry": pre})

    def _set_action(self, entry: p4r.TableEntry, action: Action, params: Sequence[int]) -> None:
        info = self._info(self.controller.p4info.actions, action.name)
        entry.action.action.action_id = info.preamble.id
        for param, value in zip(info.params, params, strict=True):
            entry.action.action.params.add(param_id=param.id, value=_bytes(value))

    @staticmethod
    def _info(items: Sequence[Any], name: str) -> Any:
        found = [item for item in items if item.preamble.name == name]
        if not found:
            raise LookupError(f"{name!r} is not in the P4Info")
        return found[0]


def _add_match(entry: p4r.TableEntry, field: p4i.MatchField, value: Match) -> None:
    """Adds one field's match to the entry. A field that matches everything is left out, as P4Runtime demands."""
    if isinstance(value, Exact):
        entry.match.add(field_id=field.id).exact.value = _bytes(value.value)
    elif isinstance(value, Lpm) and value.prefix_len:
        keep = mask(field.bitwidth) ^ mask(field.bitwidth - value.prefix_len)
        lpm = entry.match.add(field_id=field.id).lpm
        lpm.value, lpm.prefix_len = _bytes(value.value & keep), value.prefix_len
    elif isinstance(value, Ternary) and value.mask:
        if field.match_type == p4i.MatchField.MatchType.OPTIONAL:
            entry.match.add(field_id=field.id).optional.value = _bytes(value.value)
            return
        ternary = entry.match.add(field_id=field.id).ternary
        ternary.value, ternary.mask = _bytes(value.value), _bytes(value.mask)
    elif isinstance(value, Range) and (value.low, value.high) != (0, mask(field.bitwidth)):
        span = entry.match.add(field_id=field.id).range
        span.low, span.high = _bytes(value.low), _bytes(value.high)
    elif isinstance(value, Optional) and value.value is not None:
        entry.match.add(field_id=field.id).optional.value = _bytes(value.value)


def _bytes(value: int) -> bytes:
    return value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")


@contextlib.contextmanager
def running_bmv2(json: Path, p4info: Path) -> Iterator[Bmv2]:
    with tempfile.TemporaryDirectory() as scratch:
        switch = Bmv2(json, p4info, Path(scratch) / "bmv2.log")
        try:
            yield switch
        finally:
            switch.close()


class Bmv2Target:
    """BMv2 as a target of STF scripts. Packets are sent when their outcome is asked for, or before the next entry."""

    def __init__(self, switch: Bmv2, json: Path) -> None:
        self.program: Program = load_program(json)
        self._switch = switch
        self._waiting: list[tuple[int, bytes]] = []
        self._outputs: dict[int, list[bytes]] = defaultdict(list)
        self._groups: dict[int, list[tuple[int, int]]] = {}
        self._entries: list[p4r.TableEntry] = []

    def _flush(self) -> None:
        if self._waiting:
            for port, packet in self._switch.process(self._waiting):
                self._outputs[port].append(packet)
            self._waiting = []

    def add(self, table: Table, match: Sequence[Match], action: Action, params: Sequence[int], priority: int) -> int:
        self._flush()
        self._entries.append(self._switch.add(table, match, action, params, priority))
        return len(self._entries) - 1

    def set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        self._flush()
        self._switch.set_default(table, action, params)

    def group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        self._flush()
        if group in self._groups:
            self._switch.controller.delete_group(group)
        self._groups[group] = list(replicas)
        self._switch.group(group, replicas)

    def clone_session(self, session: int, replicas: Sequence[tuple[int, int]]) -> None:
        self._flush()
        self._switch.clone_session(session, replicas)

    def send(self, port: int, data: bytes) -> None:
        self._waiting.append((port, data))

    def counter(self, name: str, index: int) -> tuple[int, int]:
        return self._switch.counter(name, index)

    def direct_counter(self, table: Table, handle: int) -> tuple[int, int]:
        return self._switch.direct_counter(self._entries[handle])

    def outputs(self, expected: Mapping[int, int]) -> dict[int, list[bytes]]:
        self._flush()
        return dict(self._outputs)
