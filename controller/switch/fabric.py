"""The commanded switches: one switch, or a tree of them, with the same operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from serene.controller.settings import Settings, port_numbers, shm_port_paths, udp_port_numbers
from serene.controller.switch.switch import Switch, SwitchOptions, credentials
from serene.controller.switch.tree import Tree
from serene.entries import SwitchAddress
from serene.program import chosen_program
from serene.wire import SWITCH_IP, SWITCH_MAC

OnPacket = Callable[[int, int, bytes], None]  # rack, port, frame
OnConnected = Callable[[], Awaitable[None]]


Fabric = Switch | Tree  # one switch or several, with the same operations


def fabric(settings: Settings, on_packet: OnPacket, on_connected: OnConnected) -> Fabric:
    """The switch or switches that the settings name. on_connected: awaited when all are connected; has to call
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
