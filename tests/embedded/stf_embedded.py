"""The embedded switch, in this process, as a target of STF scripts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from serene.embedded import Match, Program, Switch
from serene.embedded.program.ir import Action, Table


class EmbeddedTarget:
    def __init__(self, json: bytes, compiler_flags: tuple[str, ...] = ()) -> None:
        self.switch = Switch.load(json, cpu_port=None, compiler_flags=compiler_flags)
        self._outputs: dict[int, list[bytes]] = defaultdict(list)

    @property
    def program(self) -> Program:
        return self.switch.program

    def close(self) -> None:
        self.switch.close()

    def add(self, table: Table, match: Sequence[Match], action: Action, params: Sequence[int], priority: int) -> int:
        return self.switch.table_add(table.name, match, action.name, params, priority)

    def set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        self.switch.table_set_default(table.name, action.name, params)

    def group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        self.switch.multicast_set(group, replicas)

    def clone_session(self, session: int, replicas: Sequence[tuple[int, int]]) -> None:
        self.switch.clone_session_set(session, replicas)

    def send(self, port: int, data: bytes) -> None:
        for out, packet in self.switch.process(port, data):
            self._outputs[out].append(packet)

    def counter(self, name: str, index: int) -> tuple[int, int]:
        value = self.switch.counter_read(name, index)
        return value.packets, value.bytes

    def direct_counter(self, table: Table, handle: int) -> tuple[int, int]:
        value = self.switch.direct_counter_read(table.name, handle)
        return value.packets, value.bytes

    def forget(self) -> None:
        """Discards the packets that have come out so far."""
        self._outputs.clear()

    def outputs(self) -> dict[int, list[bytes]]:
        return dict(self._outputs)
