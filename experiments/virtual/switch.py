"""The compiled P4 program in this process, with one job at a time.

A job that follows another gets a newer session, which is all it takes to begin from zero (docs/protocol.md): the
program is loaded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from serene.program import Program
from serene.strategy import PolicyFields
from serene.switch import Exact, Switch
from serene.wire import SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, ReadMode, encapsulation, mac_bytes

JOB, JOB_GROUP = 0, 16
FIRST_UDP_PORT = 40000  # of a worker's first process; the next one has the next
SCALE = 2**20
_ADMISSION, _BARRIER, _ANSWER = "SereneIngress.admission.", "SereneIngress.barrier.", "SereneEgress.answer."
_MEMBER, _ADDRESS = _ADMISSION + "member", _ANSWER + "address"


def mac(worker: int) -> str:
    return f"02:00:00:00:00:{worker + 1:02x}"


def ip(worker: int) -> str:
    return f"10.0.0.{worker + 1}"


def port(worker: int) -> int:
    """The switch's port that a worker is behind."""
    return worker + 1


def _number(address: bytes) -> int:
    return int.from_bytes(address, "big")


def _ip_number(text: str) -> int:
    return _number(bytes(int(part) for part in text.split(".")))


class VirtualSwitch:
    """``max_workers`` workers may take part; each job says how many do."""

    def __init__(self, program: Program, max_workers: int) -> None:
        self.program = program
        self.session = self.epoch = 0
        self.fields = PolicyFields(0, 0, 0, ReadMode.LATEST)
        self._switch = Switch.load(program.config_path)
        self._job: int | None = None
        self._policy: int | None = None
        self._udp_ports = [FIRST_UDP_PORT] * max_workers
        self._heads: dict[tuple[int, int, int], bytes] = {}
        self._entries = [self._admit(worker) for worker in range(max_workers)]

    def _admit(self, worker: int) -> tuple[int, int]:
        """A worker's entries, `member` and `address`."""
        place = [_number(mac_bytes(mac(worker))), _ip_number(ip(worker)), self._udp_ports[worker]]
        keys = [Exact(value) for value in (port(worker), *place, JOB, worker)]
        here = [_number(mac_bytes(SWITCH_MAC)), _ip_number(SWITCH_IP)]
        return (
            self._switch.table_add(_MEMBER, keys, _ADMISSION + "admit"),
            self._switch.table_add(_ADDRESS, [Exact(JOB), Exact(worker)], _ANSWER + "to_member", [*place, *here]),
        )

    def readmit(self, worker: int) -> None:
        """A worker's process started anew, at another UDP port: what the old one sent is a stranger's."""
        member, address = self._entries[worker]
        self._switch.table_delete(_MEMBER, member)
        self._switch.table_delete(_ADDRESS, address)
        self._udp_ports[worker] += 1
        self._entries[worker] = self._admit(worker)

    def udp_port(self, worker: int) -> int:
        return self._udp_ports[worker]

    def frame_head(self, worker: int, payload_bytes: int) -> bytes:
        """Ethernet, IPv4 and UDP headers of a worker's packets."""
        key = worker, self._udp_ports[worker], payload_bytes
        if key not in self._heads:
            source, switch = (mac(worker), ip(worker), key[1]), (SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT)
            self._heads[key] = encapsulation(payload_bytes, source=source, destination=switch)
        return self._heads[key]

    def begin(self, workers: int, slots: int, fields: PolicyFields) -> int:
        """A new session under its epoch 1; the session."""
        self.session += 1
        self._switch.multicast_set(JOB_GROUP + JOB, [(port(worker), worker + 1) for worker in range(workers)])
        share = -(-65536 // workers)
        place = [0, slots, slots * self.program.lanes, SCALE, workers, 0, share]
        self._job = self._set("job", self._job, "set_job", place)
        self.set_policy(1, fields)
        return self.session

    def set_policy(self, epoch: int, fields: PolicyFields) -> None:
        """A live swap: one entry is replaced."""
        self.epoch, self.fields = epoch, fields
        values = [self.session, epoch, fields.sync_mask, fields.staleness, fields.quorum, int(fields.read_mode)]
        self._policy = self._set("policy", self._policy, "set_policy", values)

    def _set(self, table: str, handle: int | None, action: str, values: Sequence[int]) -> int:
        name, action = _ADMISSION + table, _ADMISSION + action
        if handle is None:
            return self._switch.table_add(name, [Exact(JOB)], action, values)
        self._switch.table_modify(name, handle, action, values)
        return handle

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Frames by port, one after the other; every frame that they cause, by port."""
        return [packet for caused in self._switch.process_many(packets) for packet in caused]

    def contributions(self, worker: int) -> int:
        """Packets of the worker that the switch has added up, in all sessions."""
        return self._switch.counter_read(_BARRIER + "contributions", worker).packets

    def bases(self, slots: int) -> list[int]:
        """Rounds of the present epoch that are complete, per slot."""
        return self._switch.register_read_all(_BARRIER + "base_of", 0, slots)

    def close(self) -> None:
        self._switch.close()
