"""A P4Runtime controller of Serene's own programs: entries, groups and counters by their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from finsy.proto import p4r

from serene.entries import Entry
from tests.embedded import p4rt_controller
from tests.embedded.p4rt_controller import load_p4info, multicast_group, number


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
