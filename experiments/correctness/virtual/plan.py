"""A run in virtual time: its plan and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from experiments.correctness.virtual.checks import Balance
from serene.errors import choices
from serene.faults import Action, BadFaults, Faults


class What(str, Enum):
    """What befalls a run, beside what a fault file can say."""

    JOINS_AGAIN = "joins again"  # a client that is a member says HELLO anew, between two iterations
    GIVES_UP = "gives up and joins again"  # the same in the middle of an iteration, which may count or not
    SECOND_PROCESS = "second process"  # the same worker once more, on another UDP port, while the first one lives
    EVICTED = "evicted"  # and readmitted
    DELETED = "job deleted"  # and another one begins, with the same id or another


@dataclass(frozen=True)
class Happening:
    """``worker`` has done so many iterations; for a job, every worker has. seconds: for how long, where that means
    anything."""

    iteration: int
    what: What
    worker: int | None = None
    seconds: float = 1.0


@dataclass(frozen=True)
class Plan:
    """A run before it begins. iterations, mean_s (compute time in seconds): one for each worker.

    ``swaps`` further strategies come one after the other, at random times ``swap_every_s`` apart on average.
    ``clock_steps_s``: the clocks of controllers that come back differ by these from the one before.
    ``hostile_every_s``: mean time between packets of a host that belongs to no job; None: there is none.
    """

    seed: int
    slots: int
    iterations: tuple[int, ...]
    mean_s: tuple[float, ...]
    faults: Faults = field(default_factory=Faults)
    swaps: int = 0
    swap_every_s: float = 2.0
    happenings: tuple[Happening, ...] = ()
    clock_steps_s: tuple[float, ...] = ()
    hostile_every_s: float | None = None
    too_late_s: float = 2000.0  # in virtual time; who has not finished by then is stuck

    @property
    def workers(self) -> int:
        return len(self.iterations)

    def check(self) -> None:
        """Raises BadFaults."""
        for event in self.faults.events:
            if event.action.of_switch:
                others = choices(action.value for action in Action if not action.of_switch)
                raise BadFaults(
                    f"{event.action.value}: not in process, where the switch is no process; expected {others}"
                )
        self.faults.check(self.workers)


@dataclass(frozen=True)
class Outcome:
    """What a run did. contributions: packets' worth (iterations times slots). packets: that reached the switch.
    lost, duplicated, reordered: what befell packets on the links. happened: what else there was, by name."""

    contributions: int
    packets: int
    lost: int
    duplicated: int
    reordered: int
    retransmissions: int
    swaps: int
    epochs: int
    bsp_reads: int
    balance: Balance
    virtual_s: float
    happened: dict[str, int]
