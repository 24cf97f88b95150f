"""The P4 program in this process, with one job: what the simulated engine's packets pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serene.fixedpoint import DEFAULT_SCALE
from serene.program import Program
from serene.strategy import Strategy
from serene.switch import Exact, Switch
from serene.wire import (
    ENCAPSULATION_BYTES,
    SERENE_UDP_PORT,
    SWITCH_IP,
    SWITCH_MAC,
    encapsulation,
    mac_bytes,
)

JOB, SESSION, FIRST_EPOCH = 0, 1, 1
UDP_PORT = 49152
JOB_GROUPS = 16  # p4src/include/sizes.p4
CPU_PORT = 255
STALENESS_CLASSES = 16


class DataPlane:
    """Workers 0 to n-1 of one job, behind a port each."""

    def __init__(self, program: Program, workers: int, vector_length: int, strategy: Strategy) -> None:
        self.program = program
        self.slots = -(-vector_length // program.lanes)
        self._switch = Switch.load(program.config_path, cpu_port=CPU_PORT)
        self._names = {
            name.rpartition(".")[2]: name for name in (*self._switch.program.tables, *self._switch.program.counters)
        }
        self._ports = np.array([_port(worker) for worker in range(workers)], np.uint32)
        self._worker_at = {int(port): worker for worker, port in enumerate(self._ports)}
        self._heads = [_head(program, worker) for worker in range(workers)]
        for worker in range(workers):
            place = [_mac(worker), _ip(worker), UDP_PORT]
            switch = [int.from_bytes(mac_bytes(SWITCH_MAC), "big"), _number(SWITCH_IP)]
            self._insert("member", [int(self._ports[worker]), *place, JOB, worker], "admit", [])
            self._insert("address", [JOB, worker], "to_member", [*place, *switch])
        self._switch.multicast_set(
            JOB_GROUPS + JOB, [(int(port), worker + 1) for worker, port in enumerate(self._ports)]
        )
        share = -(-65536 // workers)
        self._insert("job", [JOB], "set_job", [0, self.slots, vector_length, DEFAULT_SCALE, workers & 0xFF, 0, share])
        self._policy = self._insert("policy", [JOB], "set_policy", _policy(FIRST_EPOCH, strategy, range(workers)))

    def close(self) -> None:
        self._switch.close()

    def _action(self, table: str, action: str) -> str:
        actions = self._switch.program.tables[table].actions
        return next(name for name in actions if name.rpartition(".")[2] == action)

    def _insert(self, table: str, match: list[int], action: str, params: list[int]) -> int:
        name = self._names[table]
        return self._switch.table_add(name, [Exact(value) for value in match], self._action(name, action), params)

    def install(self, epoch: int, strategy: Strategy, members: list[int]) -> None:
        """A new policy; one entry, so one step for packets."""
        name = self._names["policy"]
        self._switch.table_modify(
            name, self._policy, self._action(name, "set_policy"), _policy(epoch, strategy, members)
        )

    def pushes(self, worker: int, payloads: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Packets of one worker, one after the other.

        payloads: uint8[n, bytes]. Yields, for each worker that is sent something, the worker, the index of the packet
        that caused each row (int64[m]), and the rows: uint8[m, bytes], all of the same length.
        """
        count = len(payloads)
        frames = np.empty((count, ENCAPSULATION_BYTES + payloads.shape[1]), np.uint8)
        frames[:, :ENCAPSULATION_BYTES] = self._heads[worker]
        frames[:, ENCAPSULATION_BYTES:] = payloads
        ports = np.full(count, self._ports[worker], np.uint32)
        lengths = np.full(count, frames.shape[1], np.uint32)
        until, items, data = self._switch.process_batch(ports, lengths, frames.reshape(-1))
        if not len(items):
            return
        cause = np.searchsorted(until, np.arange(len(items)), side="right")
        keys = items["port"].astype(np.int64) << 32 | items["length"]
        for key in np.unique(keys):
            chosen = np.flatnonzero(keys == key)
            width = int(key & 0xFFFFFFFF)
            rows = np.empty((len(chosen), width - ENCAPSULATION_BYTES), np.uint8)
            for row, offset in zip(rows, items["offset"][chosen].tolist(), strict=True):
                row[:] = data[offset + ENCAPSULATION_BYTES : offset + width]
            yield self._worker_at[int(key >> 32)], cause[chosen], rows

    def count(self, counter: str, worker: int) -> int:
        """Packets in a counter that has a cell for each worker."""
        index = JOB * self.program.max_workers + worker
        return self._switch.counter_read(self._names[counter], index).packets

    def staleness(self, worker: int) -> np.ndarray:
        """The worker's contributions (packets) by how many rounds old they were: int64[16], the last 15 or more."""
        first = (JOB * self.program.max_workers + worker) * STALENESS_CLASSES
        values = self._switch.counter_read_all(self._names["staleness"], first, STALENESS_CLASSES)
        return np.array([value.packets for value in values], np.int64)

    def dropped(self) -> int:
        """Packets that the program refused, for whatever reason."""
        names = [name for name in self._names if name.startswith("dropped_")]
        return sum(self._switch.counter_read(self._names[name], 0).packets for name in names)


def _port(worker: int) -> int:
    """1 and up, but for the switch's CPU port."""
    return worker + 1 if worker + 1 < CPU_PORT else worker + 2


def _mac_text(worker: int) -> str:
    return f"02:00:00:00:{worker >> 8:02x}:{worker & 0xFF:02x}"


def _ip_text(worker: int) -> str:
    return f"10.1.{worker >> 8}.{worker & 0xFF}"


def _mac(worker: int) -> int:
    return int.from_bytes(mac_bytes(_mac_text(worker)), "big")


def _number(ip: str) -> int:
    return int.from_bytes(bytes(int(part) for part in ip.split(".")), "big")


def _ip(worker: int) -> int:
    return _number(_ip_text(worker))


def _head(program: Program, worker: int) -> np.ndarray:
    """Ethernet, IPv4 and UDP of everything that the worker sends: its packets have one length."""
    head = encapsulation(
        40 + 4 * program.lanes,
        source=(_mac_text(worker), _ip_text(worker), UDP_PORT),
        destination=(SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT),
    )
    return np.frombuffer(head, np.uint8)


def _policy(epoch: int, strategy: Strategy, members: range | list[int]) -> list[int]:
    fields = strategy.compile(members)
    return [SESSION, epoch, fields.sync_mask, fields.staleness, fields.quorum, int(fields.read_mode)]
