"""A P4Runtime controller of Serene's own programs: entries, groups, counters and packets by their names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from finsy.proto import p4r

from serene.entries import Entry
from tests.embedded import p4rt_controller
from tests.embedded.p4rt_controller import PATIENCE_S, load_p4info, multicast_group, number


class Controller(p4rt_controller.Controller):
    """A P4Runtime client that has become the switch's primary controller; ``push`` gives the switch its program."""

    def __init__(self, address: str, json: Path, p4info: Path, *, device_id: int = 0, election_id: int = 1) -> None:
        super().__init__(address, device_id, load_p4info(p4info), json.read_bytes())
        self.election_id = election_id
        self.become_primary()

    def write_entry(self, kind: int, entry: Entry) -> None:
        info = self.named("tables", entry.table)
        made = p4r.TableEntry(table_id=info.preamble.id)
        for field in info.match_fields:
            made.match.add(field_id=field.id).exact.value = number(entry.match[field.name])
        if entry.action and kind != p4r.Update.DELETE:
            params = [entry.params[param.name] for param in self.named("actions", entry.action).params]
            made.action.CopyFrom(self.action(entry.action, *params))
        self.write(p4r.Update(type=kind, entity=p4r.Entity(table_entry=made)))  # type: ignore[arg-type]

    def group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Adds a multicast group. replicas: (port, instance) pairs."""
        self.insert(multicast_group(group, *replicas))

    def delete_group(self, group: int) -> None:
        self.delete(multicast_group(group))

    def count(self, name: str, index: int) -> int:
        """A counter's packets."""
        wanted = p4r.CounterEntry(counter_id=self.id("counters", name), index=p4r.Index(index=index))
        return int(self.read_one(wanted).data.packet_count)

    def packet_out(self, port: int, payload: bytes) -> None:
        header = next(item for item in self.p4info.controller_packet_metadata if item.preamble.name == "packet_out")
        packet = p4r.PacketOut(payload=payload)
        for field in header.metadata:
            packet.metadata.add(metadata_id=field.id, value=number(port if field.name == "egress_port" else 0))
        self.messages.send(packet=packet)

    def packet_in(self, timeout_s: float = PATIENCE_S) -> tuple[int, bytes]:
        """The next packet-in: its ingress port and its bytes. Raises queue.Empty after ``timeout_s`` seconds without
        one."""
        end = time.monotonic() + timeout_s
        while True:
            message = self.messages.take(max(end - time.monotonic(), 0))
            if message is not None and message.WhichOneof("update") == "packet":
                return int.from_bytes(message.packet.metadata[0].value, "big"), message.packet.payload
