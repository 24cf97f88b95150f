"""The data plane of the simulated engine: the compiled P4 programs in this process, with one job, as one switch or a
tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from serene import entries
from serene.program import Program
from serene.racks import Racks
from serene.sim.hosts import Host, job_of
from serene.sim.switch import ProgramSwitch
from serene.strategy import PolicyFields, Strategy
from serene.wire import ENCAPSULATION_BYTES, HEADER, ROOT

JOB, SESSION, FIRST_EPOCH = 0, 1, 1
STALENESS_CLASSES = 16  # of the program's counter: 0 to 14 rounds, and more
UPLINK = 200  # a leaf's port to the root; its workers' have lower numbers
KEPT_EPOCHS = 60  # how many epochs' policies a leaf keeps; its table has room for 64

Port = tuple[int, int]  # a switch of the plane, by its number, and a port of it


class DataPlane:
    """The switches with one job, for workers 0 to n - 1.

    slots: of the job. ends: what is at each port, a worker, or a port of another switch. entrances, numbers: for each
    worker, the port that its packets come in at, and its id in packets. incarnation: of every worker.
    """

    def __init__(self, program: Program, vector_length: int, switches: Sequence[ProgramSwitch]) -> None:
        self.program = program
        self.slots = -(-vector_length // program.lanes)
        self.switches = switches
        self.ends: dict[Port, int | Port] = {}
        self.entrances: list[Port] = []
        self.numbers: list[int] = []
        self._heads: list[np.ndarray] = []

    def close(self) -> None:
        for switch in self.switches:
            switch.close()

    def _place(self, switch: int, number: int) -> None:
        """Puts the job's next worker at a switch. number: its id in packets."""
        host = Host.of(number)
        self.incarnation = host.incarnation
        self.ends[switch, host.port] = len(self.entrances)
        self.entrances.append((switch, host.port))
        self.numbers.append(number)
        self._heads.append(np.frombuffer(host.frame_head(HEADER.itemsize + 4 * self.program.lanes), np.uint8))

    def install(self, epoch: int, strategy: Strategy, members: list[int]) -> None:
        """Puts a new policy in force. Whatever is written, it takes effect by one entry, between two packets."""
        raise NotImplementedError

    def frames(self, worker: int, payloads: np.ndarray) -> np.ndarray:
        """A worker's frames, uint8[n, bytes], from the payloads of its UDP packets, uint8[n, bytes]."""
        frames = np.empty((len(payloads), ENCAPSULATION_BYTES + payloads.shape[1]), np.uint8)
        frames[:, :ENCAPSULATION_BYTES] = self._heads[worker]
        frames[:, ENCAPSULATION_BYTES:] = payloads
        return frames

    def through(self, at: Port, frames: np.ndarray) -> Iterator[tuple[Port, np.ndarray, np.ndarray]]:
        """Processes packets one after the other. at: where they come in. frames: uint8[n, bytes].

        Yields, for each port and each length of what comes out: the port, for each frame the index of the packet that
        caused it, int64[m], and the frames, uint8[m, bytes].
        """
        count = len(frames)
        ports = np.full(count, at[1], np.uint32)
        lengths = np.full(count, frames.shape[1], np.uint32)
        until, items, data = self.switches[at[0]].switch.process_batch(ports, lengths, frames.reshape(-1))
        if not len(items):
            return
        cause = np.searchsorted(until, np.arange(len(items)), side="right")
        keys = items["port"].astype(np.int64) << 32 | items["length"]
        for key in np.unique(keys):
            chosen = np.flatnonzero(keys == key)
            width = int(key & 0xFFFFFFFF)
            rows = np.empty((len(chosen), width), np.uint8)
            for row, offset in zip(rows, items["offset"][chosen].tolist(), strict=True):
                row[:] = data[offset : offset + width]
            yield (at[0], int(key >> 32)), cause[chosen], rows

    def _index(self, worker: int) -> int:
        """The index of a worker's counters at its switch."""
        return JOB * self.program.max_workers + self.numbers[worker]

    def count(self, counter: str, worker: int) -> int:
        """A worker's packets in a counter, one of those with a cell for each worker."""
        return self.switches[self.entrances[worker][0]].count(counter, self._index(worker))

    def staleness(self, worker: int) -> np.ndarray:
        """How many of a worker's contributions had each staleness, int64[16]: 0 to 14 rounds, and 15 or more."""
        switch = self.switches[self.entrances[worker][0]]
        first = self._index(worker) * STALENESS_CLASSES
        values = switch.switch.counter_read_all(switch.names["staleness"], first, STALENESS_CLASSES)
        return np.array([value.packets for value in values], np.int64)

    def dropped(self) -> int:
        """How many packets the programs have dropped, for whatever reason."""
        return sum(sum(switch.dropped().values()) for switch in self.switches)


class OneSwitch(DataPlane):
    """One switch, with a port for each worker."""

    def __init__(self, program: Program, workers: int, vector_length: int, strategy: Strategy) -> None:
        super().__init__(program, vector_length, [ProgramSwitch(program)])
        for worker in range(workers):
            self._place(0, worker)
        self.switches[0].start_job(
            {worker: Host.of(worker) for worker in range(workers)}, strategy.compile(range(workers)), slots=self.slots,
            vector_length=vector_length, job=JOB, session=SESSION, epoch=FIRST_EPOCH,
        )  # fmt: skip

    def install(self, epoch: int, strategy: Strategy, members: list[int]) -> None:
        self.switches[0].set_policy(SESSION, epoch, strategy.compile(members), JOB)


class Tree(DataPlane):
    """A tree of switches (docs/hierarchy.md): a leaf for each rack, with the rack's number, and then the root."""

    def __init__(self, racks: Racks, vector_length: int, strategy: Strategy) -> None:
        leaf, root = Program.tree()
        leaves = [ProgramSwitch(leaf) for _ in racks.sizes]
        super().__init__(leaf, vector_length, [*leaves, ProgramSwitch(root)])
        self.racks, self.leaves, self.root = racks, leaves, self.switches[-1]
        workers = sum(racks.sizes)
        sizes = {"slots": self.slots, "vector_length": vector_length}
        for worker in range(workers):
            self._place(*racks.place(worker))
        for rack, (switch, size) in enumerate(zip(leaves, racks.sizes, strict=True)):
            switch.put(job_of(JOB, workers=workers, **sizes))
            admit_rack(switch, rack, {number: Host.of(number) for number in range(size)}, UPLINK)
            self.ends[rack, UPLINK] = (len(leaves), rack + 1)
            self.ends[len(leaves), rack + 1] = (rack, UPLINK)
        self.root.put(job_of(JOB, workers=len(leaves), **sizes))
        admit_leaves(self.root, len(leaves))
        self.install(FIRST_EPOCH, strategy, list(range(workers)))

    def install(self, epoch: int, strategy: Strategy, members: list[int]) -> None:
        leaves, root = self.racks.compile(strategy, members)
        for switch, policy in zip(self.leaves, leaves, strict=True):
            switch.put(entries.prepared(JOB, SESSION, epoch, policy))
        self._tell(self.root, epoch, root)
        for switch, policy in zip(self.leaves, leaves, strict=True):
            self._tell(switch, epoch, policy.fields)
            if epoch > KEPT_EPOCHS:
                switch.delete(entries.not_prepared(JOB, SESSION, epoch - KEPT_EPOCHS))

    @staticmethod
    def _tell(switch: ProgramSwitch, epoch: int, fields: PolicyFields) -> None:
        switch.put(entries.policy(JOB, SESSION, epoch, fields))


def admit_rack(leaf: ProgramSwitch, rack: int, hosts: Mapping[int, Host], uplink: int) -> None:
    """Writes who is at a leaf: the workers of its rack, by their ids in packets, and the root, at port uplink."""
    leaf.put(entries.uplink(JOB, rack, 0, uplink))
    leaf.put(entries.member(JOB, ROOT, entries.root_at(uplink, SESSION)))
    for number, host in hosts.items():
        leaf.admit(number, host, JOB)
    leaf.set_group(entries.leaf_group(JOB, hosts, uplink))


def admit_leaves(root: ProgramSwitch, racks: int) -> None:
    """Writes who is at a root: the leaves, at the ports from 1 on."""
    for rack in range(racks):
        root.admit(rack, entries.leaf_at(rack, 0, SESSION), JOB)
    root.set_group(entries.root_group(JOB, enumerate(range(1, racks + 1))))
