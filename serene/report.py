"""A worker's report, in REPORT and LEAVE packets, in the controller's status, and in the worker's results.

Workers create a `Report`. The controller stores `Facts`, because a process may report anything. `number`, `whole` and
`doing` read them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypedDict


class Report(TypedDict, total=False):
    """Times in seconds. Times and counts are totals since the worker began; counts of packets since it joined. None:
    unknown, or not known yet."""

    state: str  # computing, exchanging, waiting, paused, finished or stopped
    iteration: int  # number of iterations done; in a process group: collectives
    epoch: int | None  # of the last read
    round: int | None
    at_epoch: int  # the worker's present round
    at_round: int
    loss: float | None  # of the last batch
    accuracy: float | None  # of the last test
    momentum: float  # of the optimiser, 0 to less than 1
    agreement: float  # sum of cosines (serene/client/session/agreement.py), before and after the update
    agreement_after: float
    compute_s: float
    network_s: float
    waiting_s: float
    copying_s: float  # copies from and to an accelerator
    retransmissions: int | None
    packets_sent: int | None
    packets_received: int | None
    contributions_sent: int
    contributions_lost: int
    clipped_values: int
    sessions_lost: int
    iterations_repeated: int
    precision: int  # bits of a process group's gradients
    step_times: str | None  # serene/steps.py


Fact = bool | int | float | str | None
Facts = dict[str, Fact]

Number = Literal[
    "loss", "accuracy", "momentum", "agreement", "agreement_after", "compute_s", "network_s", "waiting_s", "copying_s",
    "round", "retransmissions", "packets_sent", "packets_received",
]  # fmt: skip
Whole = Literal["iteration", "epoch", "at_epoch", "at_round"]


def number(report: Mapping[str, object] | None, name: Number) -> float | None:
    """A report's finite number with this name; None for any other value."""
    value = (report or {}).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def values(report: Mapping[str, object] | None, *names: Number) -> list[float | None]:
    """A report's numbers with these names, read by `number`."""
    return [number(report, name) for name in names]


def whole(report: Mapping[str, object] | None, name: Whole) -> int | None:
    """A report's whole number with this name; None for any other value."""
    value = (report or {}).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def doing(report: Mapping[str, object] | None) -> str:
    """The state in a report, empty if it has none."""
    return str((report or {}).get("state") or "")
