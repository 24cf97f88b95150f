"""A run in virtual time: its plan and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from serene.errors import choices
from serene.experiments.correctness.virtual.checks import Balance
from serene.faults import Action, BadFaults, Faults


class What(str, Enum):
    """Events of a run that a fault file does not have."""

    JOINS_AGAIN = "joins again"  # a client that is a member joins once more, between two iterations
    GIVES_UP = "gives up and joins again"  # the same in the middle of an iteration, which may count or not
    SECOND_PROCESS = "second process"  # a second process for the same worker, on another UDP port
    EVICTED = "evicted"  # and readmitted later
    DELETED = "job deleted"  # and another job begins, perhaps with the same id
    TAKES_BACK = "takes its place back"  # the first of a worker's two processes joins again
    SWITCH_RESTARTS = "switch restarts"  # it is away for a while, and has lost its state


@dataclass(frozen=True)
class Happening:
    """An event, and when it comes: when ``worker`` has done so many iterations, or every worker if it is None. seconds:
    how long it lasts, if it lasts."""

    iteration: int
    what: What
    worker: int | None = None
    seconds: float = 1.0


@dataclass(frozen=True)
class Slow:
    """What is slow in a run: up to how many seconds each of these takes longer, drawn anew each time.

    writes, reads: the controller's requests, until the switch executes them. answers: the switch's to these. punts,
    messages: packets to the controller, and from it to workers. silence: the probability that a request gets no answer,
    executed or not. clocks: how many seconds a worker's clock counts in a second, one for each worker.
    """

    writes: float = 0.0
    reads: float = 0.0
    answers: float = 0.0
    punts: float = 0.0
    messages: float = 0.0
    silence: float = 0.0
    clocks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What is to happen in a run. iterations, mean_s (mean compute time in seconds): one for each worker.

    ``swaps`` further strategies come one after the other, at random times ``swap_every_s`` apart on average.
    ``clock_steps_s``: by how much the clocks of controllers differ from their predecessors', the last of them first.
    ``hostile_every_s``: mean time between packets of a host that belongs to no job; None: there is none.
    ``frames_together``: a worker's process gets at most so many frames of a tick at once. One at a time, a run passes
    through every state between two frames; many at a time, it takes a third of the processor time.
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
    slow: Slow = field(default_factory=Slow)
    frames_together: int = 1
    too_late_s: float = 2000.0  # virtual time after which a worker that has not finished is stuck

    @property
    def workers(self) -> int:
        return len(self.iterations)

    def check(self) -> None:
        """Raises BadFaults for events that cannot be played in one process."""
        for event in self.faults.events:
            if event.action.of_switch:
                others = choices(action.value for action in Action if not action.of_switch)
                raise BadFaults(
                    f"{event.action.value}: not in process, where the switch is no process; expected {others}"
                )
        self.faults.check(self.workers)


@dataclass(frozen=True)
class Outcome:
    """Counts of a run. contributions: iterations times slots. packets: that reached the switch. lost, duplicated,
    reordered: packets on the links. bsp_reads: sums under BSP that were compared with other workers'. virtual_s: how
    long it took in virtual time. happened: how often each other event came, by name."""

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
