"""A TNA program as a data plane for tests: tables and groups as the controller writes them, frames in and out."""

from __future__ import annotations

from collections.abc import Sequence

from serene.wire import SWITCH_IP, SWITCH_MAC
from tests.dataplane.conftest import FLOOD_GROUP, WORKERS, DataPlane
from tests.frames import ip_number, mac_number
from tests.tofino.machine import Machine
from tests.tofino.p4text import Module


class TofinoDataPlane(DataPlane):
    def __init__(self, module: Module, seed: int = 0) -> None:
        self._module, self._seed = module, seed
        self.clear()

    def clear(self) -> None:
        self.machine = Machine(self._module, self._seed)
        self.lanes = len(self._module.types["values_t"][1])
        self._punted: list[tuple[int, bytes]] = []
        self.group(FLOOD_GROUP, [(port, 1) for port in range(1, WORKERS + 1)])
        self.insert("switch_address", [ip_number(SWITCH_IP)], "answer_arp", [mac_number(SWITCH_MAC)])

    def insert(self, table: str, match: Sequence[int], action: str, params: Sequence[int] = ()) -> None:
        self.machine.insert(table, match, action, params)

    def modify(self, table: str, match: Sequence[int], action: str, params: Sequence[int] = ()) -> None:
        self.machine.insert(table, match, action, params)

    def delete(self, table: str, match: Sequence[int]) -> None:
        self.machine.delete(table, match)

    def group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        self.machine.groups[group] = list(replicas)

    def counter(self, name: str, index: int = 0) -> int:
        return self.machine.counters[name, index]

    def send(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        outputs = self.machine.process(port, frame)
        cpu = self.machine.cpu_port
        # A packet-in begins with its header: seven bits of padding, nine of port.
        self._punted += [(int.from_bytes(data[:2], "big"), data[2:]) for out, data in outputs if out == cpu]
        return sorted((out, data) for out, data in outputs if out != cpu)

    def punted(self) -> tuple[int, bytes] | None:
        return self._punted.pop(0) if self._punted else None

    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return self.send(self.machine.cpu_port, port.to_bytes(2, "big") + frame)
