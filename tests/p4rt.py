"""A small synchronous P4Runtime controller for tests, which uses the names in the P4Info."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

from serene.entries import Entry

PATIENCE_S = 120.0


class Controller:
    """A P4Runtime client that has become the switch's primary controller and pushed a program to it."""

    def __init__(self, address: str, json: Path, p4info: Path, *, device_id: int = 0, election_id: int = 1) -> None:
        self.p4info = text_format.Parse(p4info.read_text(), p4i.P4Info())
        self._json = json
        self._device_id = device_id
        self._election_id = p4r.Uint128(low=election_id)
        self._channel = grpc.insecure_channel(address, [("grpc.max_send_message_length", 64 << 20)])
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self.messages: queue.Queue[p4r.StreamMessageResponse] = queue.Queue()
        self._stream = self.stub.StreamChannel(self._outgoing(), wait_for_ready=True)
        threading.Thread(target=self._incoming, daemon=True).start()
        hello = p4r.StreamMessageRequest()
        hello.arbitration.device_id = device_id
        hello.arbitration.election_id.CopyFrom(self._election_id)
        self._requests.put(hello)
        answer = self.messages.get(timeout=PATIENCE_S)
        assert answer.arbitration.status.code == 0, answer

    def _outgoing(self) -> Iterator[p4r.StreamMessageRequest]:
        while (request := self._requests.get()) is not None:
            yield request

    def _incoming(self) -> None:
        try:
            for message in self._stream:
                self.messages.put(message)
        except grpc.RpcError:
            pass

    def close(self) -> None:
        self._requests.put(None)
        self._stream.cancel()
        self._channel.close()

    def push(self, json: Path | None = None) -> None:
        """Pushes the program, or another one with the same P4Info; the switch loses all its entries."""
        kind = p4r.SetForwardingPipelineConfigRequest
        request = kind(device_id=self._device_id, election_id=self._election_id, action=kind.VERIFY_AND_COMMIT)
        request.config.p4info.CopyFrom(self.p4info)
        request.config.p4_device_config = (json or self._json).read_bytes()
        self.stub.SetForwardingPipelineConfig(request, timeout=60)

    # -- entries ---------------------------------------------------------------------------------------------

    def _find(self, items: Sequence, name: str):  # type: ignore[no-untyped-def,type-arg]
        return next(item for item in items if name in (item.preamble.name, item.preamble.alias))

    def write_entry(self, kind: int, entry: Entry) -> None:
        info = self._find(self.p4info.tables, entry.table)
        result = p4r.TableEntry(table_id=info.preamble.id)
        for field in info.match_fields:
            result.match.add(field_id=field.id).exact.value = _bytes(entry.match[field.name])
        if entry.action and kind != p4r.Update.DELETE:
            chosen = self._find(self.p4info.actions, entry.action)
            result.action.action.action_id = chosen.preamble.id
            for param in chosen.params:
                result.action.action.params.add(param_id=param.id, value=_bytes(entry.params[param.name]))
        self.write(kind, {"table_entry": result})

    def write(self, kind: int, entity: Mapping[str, object]) -> None:
        request = p4r.WriteRequest(device_id=self._device_id, election_id=self._election_id)
        request.updates.add(type=kind, entity=p4r.Entity(**entity))  # type: ignore[arg-type]
        self.stub.Write(request, timeout=PATIENCE_S)

    def group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Adds a multicast group. replicas: (port, instance) pairs."""
        self._write_group(p4r.Update.INSERT, group, replicas)

    def delete_group(self, group: int) -> None:
        self._write_group(p4r.Update.DELETE, group, ())

    def _write_group(self, kind: int, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        entry = p4r.MulticastGroupEntry(multicast_group_id=group)
        for port, instance in replicas:
            entry.replicas.add(egress_port=port, instance=instance)
        pre = p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        self.write(kind, {"packet_replication_engine_entry": pre})

    def counter(self, name: str, index: int) -> int:
        info = self._find(self.p4info.counters, name)
        request = p4r.ReadRequest(device_id=self._device_id)
        request.entities.add().counter_entry.CopyFrom(
            p4r.CounterEntry(counter_id=info.preamble.id, index=p4r.Index(index=index))
        )
        entities = [entity for answer in self.stub.Read(request, timeout=PATIENCE_S) for entity in answer.entities]
        return int(entities[0].counter_entry.data.packet_count)

    def packet_out(self, port: int, payload: bytes) -> None:
        header = next(item for item in self.p4info.controller_packet_metadata if item.preamble.name == "packet_out")
        request = p4r.StreamMessageRequest()
        request.packet.payload = payload
        for field in header.metadata:
            request.packet.metadata.add(metadata_id=field.id, value=_bytes(port if field.name == "egress_port" else 0))
        self._requests.put(request)

    def packet_in(self, timeout_s: float = PATIENCE_S) -> tuple[int, bytes]:
        """The next packet-in: its ingress port and its bytes. Raises queue.Empty after ``timeout_s`` seconds without
        one."""
        while True:
            message = self.messages.get(timeout=timeout_s)
            if message.WhichOneof("update") == "packet":
                return int.from_bytes(message.packet.metadata[0].value, "big"), message.packet.payload


def _bytes(value: int) -> bytes:
    return value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")
