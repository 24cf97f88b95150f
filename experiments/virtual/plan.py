"""A run in virtual time, before it begins and after it has ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.virtual.checks import Balance
from serene.errors import choices
from serene.faults import Action, BadFaults, Faults


@dataclass(frozen=True)
class Plan:
    """A run before it begins. iterations, mean_s (compute time in seconds): one for each worker.

    ``swaps`` further strategies come one after the other, at random times ``swap_every_s`` apart on average.
    """

    seed: int
    slots: int
    iterations: tuple[int, ...]
    mean_s: tuple[float, ...]
    faults: Faults = field(default_factory=Faults)
    swaps: int = 0
    swap_every_s: float = 2.0
    too_late_s: float = 2000.0  # in virtual time; who has not finished by then is stuck

    @property
    def workers(self) -> int:
        return len(self.iterations)

    def check(self) -> None:
        """Raises BadFaults."""
        self.faults.check_workers(self.workers)
        for event in self.faults.events:
            if event.action is Action.RESTART_SWITCH:
                others = choices(action.value for action in Action if action is not Action.RESTART_SWITCH)
                raise BadFaults(
                    f"{event.action.value}: not in process, where the switch is no process; expected {others}"
                )


@dataclass(frozen=True)
class Outcome:
    """What a run did. contributions: packets' worth (iterations times slots). packets: that reached the switch.
    lost, duplicated, reordered: what befell packets on the links."""

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
