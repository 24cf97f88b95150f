"""What the controller commands: one switch, or a tree of them, with the same operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from serene.controller.jobs.plans import Readmission, Start, Swap
from serene.controller.settings import Settings, port_numbers, shm_port_paths, udp_port_numbers
from serene.controller.switch.counters import Counters
from serene.controller.switch.plan_entries import Installed
from serene.controller.switch.switch import SwapPhases, Switch, SwitchOptions, credentials
from serene.controller.switch.tree import Tree
from serene.entries import Endpoint, SwitchAddress
from serene.program import Program, chosen_program
from serene.wire import SWITCH_IP, SWITCH_MAC

OnPacket = Callable[[int, int, bytes], None]  # rack, port, frame
OnConnected = Callable[[], Awaitable[None]]


class Fabric(Protocol):
    """One switch or several; `Switch` and `Tree` document the operations, which raise SwitchError."""

    @property
    def options(self) -> SwitchOptions: ...
    @property
    def program(self) -> Program:
        """The program of the switch, or switches, that workers talk to."""

    @property
    def drop_reasons(self) -> Sequence[str]: ...
    @property
    def election_id(self) -> int: ...
    @property
    def connected(self) -> bool: ...
    @property
    def trouble(self) -> str | None:
        """Why not all of it is connected; None: it is."""

    @property
    def switches(self) -> Sequence[Switch]:
        """The one switch, or the root and the leaves."""

    @property
    def rack_count(self) -> int:
        """How many switches have workers."""

    async def bring_up(self, deadline_s: float) -> None: ...
    async def run(self) -> None: ...
    async def close(self) -> None: ...
    async def set_up(self) -> Installed: ...
    async def start(self, plan: Start) -> None: ...
    async def swap(self, plan: Swap) -> SwapPhases | None: ...
    async def readmit(self, plan: Readmission) -> None: ...
    async def shut_out(self, job: int, worker: int, at: Endpoint) -> None: ...
    async def remove(self, job: int) -> None: ...
    async def send(self, to: Endpoint, frame: bytes) -> None: ...
    async def read_worker_counters(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], Counters]: ...
    async def read_staleness(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[int]]: ...
    async def read_drops(self) -> dict[str, int]: ...


def fabric(settings: Settings, on_packet: OnPacket, on_connected: OnConnected) -> Fabric:
    """The switch or switches that the settings name. on_connected: awaited when all of it is connected, and has to call
    `set_up`."""
    options = SwitchOptions(
        settings.switch,
        settings.device_id,
        settings.election_id,
        port_numbers(settings.ports),
        SwitchAddress(SWITCH_IP, SWITCH_MAC),
        udp_port_numbers(settings.udp_ports),
        shm_port_paths(settings.shm_ports),
        credentials(settings),
        slots_given=settings.slots is not None,
    )
    named = settings.switches
    if not named:
        program = chosen_program(settings.program, settings.slots)
        return Switch(
            options, program, on_packet=lambda port, frame: on_packet(0, port, frame), on_connected=on_connected
        )
    root, *leaves = (replace(options, name=switch.name, address=switch.address) for switch in named)
    return Tree(root, leaves, settings.uplink, slots=settings.slots, on_packet=on_packet, on_connected=on_connected)
