"""Changes of a job that the controller is about to write to the switch.

Plans are values: `jobs` makes them, `entries` turns them into table entries, and only when the switch has
taken them does `jobs` remember that they happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.jobs.slots import SlotRange
from serene.racks import NO_RACKS, Racks
from serene.strategy import PolicyFields, Strategy


@dataclass(frozen=True)
class Endpoint:
    """Where a worker is: the switch's port it is behind, its addresses as text, and its incarnation, the number
    that its process drew when it joined. rack: of several switches the leaf whose port that is; one is rack 0."""

    port: int
    mac: str
    ip: str
    udp_port: int
    incarnation: int
    rack: int = 0

    @property
    def behind(self) -> tuple[int, int]:
        """Rack and port."""
        return (self.rack, self.port)

    @property
    def host(self) -> tuple[int, int, str, str]:
        """What stays the same when a worker's process starts anew."""
        return (self.rack, self.port, self.mac, self.ip)

    def __str__(self) -> str:
        where = f"port {self.port}" if not self.rack else f"port {self.port} of rack {self.rack}"
        return f"{where} ({self.mac}, {self.ip}:{self.udp_port})"


@dataclass(frozen=True)
class Policy:
    """One epoch of a job: the strategy in force and the fields it compiled to."""

    session: int
    epoch: int
    strategy: Strategy
    fields: PolicyFields


@dataclass(frozen=True)
class Start:
    """Everybody has joined: a session begins, after ``lost_sessions`` others that the switch has lost.

    scale: fixed-point units in 1.0; limit: the largest |contribution| of one worker, in units. racks: all workers of
    the job, of whom ``members`` are there.
    """

    job: int
    slots: SlotRange
    vector_length: int
    scale: int
    limit: int
    members: Mapping[int, Endpoint]
    lost_sessions: int
    policy: Policy
    racks: Racks = NO_RACKS


@dataclass(frozen=True)
class Swap:
    """A new epoch: one entry is replaced. ``evicted``: who is evicted from now on; None: as before."""

    job: int
    policy: Policy
    reason: str
    evicted: frozenset[int] | None = None


@dataclass(frozen=True)
class Leave:
    """A worker leaves; the members that remain get a policy without it. ``swap`` is None when nothing changes.

    counts: not if it was said in another session than the job is in, and came late.
    """

    job: int
    worker: int
    contributions_sent: int | None
    swap: Swap | None
    job_over: bool
    counts: bool = True


@dataclass(frozen=True)
class Readmission:
    """A worker comes back: its entries move, or are made anew (``old`` None), and a new epoch begins.

    ``members``: everybody's place from now on.
    """

    job: int
    worker: int
    old: Endpoint | None
    new: Endpoint
    members: Mapping[int, Endpoint]
    swap: Swap


@dataclass(frozen=True)
class Refusal:
    """Why a worker may not join."""

    reason: str


@dataclass(frozen=True)
class Waiting:
    """A worker has joined, and waits for these others."""

    job: int
    missing: tuple[int, ...]
