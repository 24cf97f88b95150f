"""The compiled P4 program in this process, with one job at a time.

A job that follows another gets a newer session, which is all it takes to begin from zero (docs/protocol.md): the
program is loaded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from serene.fixedpoint import DEFAULT_SCALE
from serene.program import Program
from serene.sim import entries
from serene.sim.entries import Host
from serene.sim.switch import ProgramSwitch
from serene.strategy import PolicyFields
from serene.wire import ReadMode

JOB = 0
SCALE = DEFAULT_SCALE


@cache
def _frame_head(host: Host, payload_bytes: int) -> bytes:
    return host.frame_head(payload_bytes)


class VirtualSwitch(ProgramSwitch):
    """``max_workers`` workers may take part; each job says how many do."""

    def __init__(self, program: Program, max_workers: int) -> None:
        super().__init__(program)
        self.session = self.epoch = 0
        self.fields = PolicyFields(0, 0, 0, 0, ReadMode.LATEST)
        self.hosts = [Host.of(worker) for worker in range(max_workers)]
        for worker, host in enumerate(self.hosts):
            self.admit(worker, host)

    def readmit(self, worker: int) -> None:
        """A worker's process started anew, at the same addresses: what the old one sent is a stranger's."""
        self.expel(worker, self.hosts[worker])
        self.hosts[worker] = self.hosts[worker].restarted()
        self.admit(worker, self.hosts[worker])

    def frame_head(self, worker: int, payload_bytes: int) -> bytes:
        """Ethernet, IPv4 and UDP headers of a worker's packets."""
        return _frame_head(self.hosts[worker], payload_bytes)

    def begin(self, workers: int, slots: int, fields: PolicyFields) -> int:
        """A new session under its epoch 1; the session."""
        self.session += 1
        self.set_group(dict(enumerate(self.hosts[:workers])))
        self.put(entries.job(JOB, slots=slots, vector_length=slots * self.program.lanes, workers=workers, scale=SCALE))
        self.swap(1, fields)
        return self.session

    def swap(self, epoch: int, fields: PolicyFields) -> None:
        """A live swap: one entry is replaced."""
        self.epoch, self.fields = epoch, fields
        self.set_policy(self.session, epoch, fields)

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Frames by port, one after the other; every frame that they cause, by port."""
        return [packet for caused in self.switch.process_many(packets) for packet in caused]

    def contributions(self, worker: int) -> int:
        """Packets of the worker that the switch has added up, in all sessions."""
        return self.count("contributions", worker)

    def bases(self, slots: int) -> list[int]:
        """Rounds of the present epoch that are complete, per slot."""
        return self.switch.register_read_all(self.names["base_of"], 0, slots)
