"""SAI's program for P4 switches, p4c's sample pins_middleblock.p4, in both switches: `make bench PINS_JSON=...`.

An IPv4 packet of 64 bytes is admitted to layer 3, matches one of ROUTES routes and one of RULES rules of the access
list, and leaves by the port where it came, its headers as they were.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from serene.errors import SereneError
from serene.experiments.performance.tables import FRAME_BYTES, Samples, encoded, router_network, routes
from serene.wire import ipv4_checksum

ROUTES, RULES = 1000, 50
MAC = 0x02_00_00_00_EE_01  # of the router; not the host's, whose kernel would answer
INSERT = p4r.Update.INSERT
Match = Mapping[str, int | tuple[int, int]]  # a value, a prefix and its bits, or a value and its mask


class Pins:
    """The program at ``path``, with its P4Info beside it. Raises SereneError."""

    def __init__(self, path: Path) -> None:
        try:
            self.config = path.read_bytes()
            self.p4info = text_format.Parse(path.with_suffix(".p4info.txtpb").read_text(), p4i.P4Info())
            self._tables = {table.preamble.alias: table for table in self.p4info.tables}
            self._actions = {action.preamble.alias: action for action in self.p4info.actions}
            if "acl_ingress_table" not in self._tables or "set_ip_nexthop_and_disable_rewrites" not in self._actions:
                raise ValueError("it has no acl_ingress_table, or no set_ip_nexthop_and_disable_rewrites")
        except (OSError, ValueError, text_format.ParseError) as error:
            expected = "what p4c-bm2-ss makes of p4c's pins_middleblock.p4, with --p4runtime-files beside it"
            raise SereneError(f"PINS_JSON={path}: expected {expected} ({error})") from None

    def entry(
        self, table: str, match: Match, action: str, params: Sequence[int] = (), priority: int = 0
    ) -> p4r.TableEntry:
        made = p4r.TableEntry(table_id=self._tables[table].preamble.id, priority=priority)
        fields = {field.name: field for field in self._tables[table].match_fields}
        for name, value in match.items():
            field = fields[name]
            given = made.match.add(field_id=field.id)
            if isinstance(value, int) and field.match_type == p4i.MatchField.OPTIONAL:
                given.optional.value = encoded(value)
            elif isinstance(value, int):
                given.exact.value = encoded(value)
            elif field.match_type == p4i.MatchField.LPM:
                given.lpm.value, given.lpm.prefix_len = encoded(value[0]), value[1]
            else:
                given.ternary.value, given.ternary.mask = encoded(value[0]), encoded(value[1])
        made.action.action.action_id = self._actions[action].preamble.id
        for param, given_value in zip(self._actions[action].params, params, strict=True):
            made.action.action.params.add(param_id=param.id, value=encoded(given_value))
        return made

    def entries(self) -> list[p4r.TableEntry]:
        """Packets to the router's address leave by port 1."""
        keep = [1, 1, 1, 1]  # no field is rewritten
        return [
            self.entry("l3_admit_table", {"dst_mac": (MAC, (1 << 48) - 1)}, "admit_to_l3", priority=1),
            self.entry("router_interface_table", {"router_interface_id": 1}, "set_port_and_src_mac", [1, MAC]),
            self.entry(
                "neighbor_table", {"router_interface_id": 1, "neighbor_id": 1}, "set_dst_mac", [MAC + 1]
            ),
            self.entry(
                "nexthop_table", {"nexthop_id": 1}, "set_ip_nexthop_and_disable_rewrites", [1, 1, *keep]
            ),
            *(
                self.entry("ipv4_table", {"vrf_id": 0, "ipv4_dst": route}, "set_nexthop_id", [1])
                for route in routes(ROUTES, 1)
            ),
            *(
                self.entry(
                    "acl_ingress_table", {"is_ipv4": 1, "l4_dst_port": (port, 0xFFFF)}, "acl_forward",
                    priority=1 + port,
                )
                for port in range(RULES)
            ),
        ]  # fmt: skip


def frames(count: int) -> list[bytes]:
    """UDP packets to addresses of the routes and ports of the rules."""
    some, made = random.Random(2), []
    usable = [(value, bits) for value, bits in routes(ROUTES, 1) if 1 <= value >> 24 < 224 and value >> 24 != 127]
    for _ in range(count):
        value, bits = some.choice(usable)
        to = value | some.getrandbits(32) & ((1 << (32 - bits)) - 1)
        header = struct.pack("!BBHHHBBHII", 0x45, 0, FRAME_BYTES - 14, 0, 0, 64, 17, 0, 0x0A00_0001, to)
        header = header[:10] + ipv4_checksum(header).to_bytes(2, "big") + header[12:]
        udp = struct.pack("!HHHH", 4000, some.randrange(RULES), FRAME_BYTES - 34, 0)
        ethernet = MAC.to_bytes(6, "big") + bytes.fromhex("0200000000020800")
        made.append((ethernet + header + udp).ljust(FRAME_BYTES, b"\0"))
    return made


def measure(path: Path, repeats: int, seconds: float) -> dict[str, tuple[Samples, Samples]]:
    """By target: packets/s from a Mininet host and back, and for each second of the switch's processor time. Raises
    BenchFailed and NotReady."""
    found, program = {}, Pins(path)
    for target in ("bmv2", "embedded"):
        with router_network(target, program.config, program.p4info) as network:
            network.controller.write(INSERT, program.entries())
            found[target] = network.packets_s(frames(4096), repeats, seconds)[:2]
    return found
