"""How long the questions that are open will take."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.network_study.cells import Answers, Cell, ExchangeCell
from experiments.network_study.methods import METHODS
from experiments.network_study.training import SERVERS
from experiments.shared import estimate, machine

SERVERS_S, OTHERS_S = 1.2e-6, 1e-5  # for each pair of hosts and for each host, at r = 1; measured on an Intel Xeon
TRAINING_BY_SERVERS_S, TRAINING_S = 1.5e-4, 2e-5  # for each iteration of a host


def expected_s(cell: Cell) -> float:
    """Of one simulation. Servers need a step a server, and thinned networks more events a step."""
    hosts, ratio = cell.network.hosts, cell.network.ratio
    if not isinstance(cell, ExchangeCell):
        return (TRAINING_BY_SERVERS_S if cell.how == SERVERS else TRAINING_S) * hosts * cell.iterations
    return (SERVERS_S * hosts**2 if METHODS[cell.method].servers else OTHERS_S * hosts) / ratio


def announced(cells: Sequence[Cell], answers: Answers, at_once: int) -> str:
    """In a sentence or two. at_once: simulations side by side."""
    asked, missing = list(dict.fromkeys(cells)), answers.missing(cells)
    still = set(missing)
    done = [cell for cell in asked if cell not in still]
    here = [cell for cell in done if answers.conditions(cell).machine == machine.here()]
    pace = estimate.pace((answers[cell]["engine_s"], expected_s(cell)) for cell in here) or 1.0
    seconds = pace * sum(expected_s(cell) for cell in missing) / at_once
    return estimate.announcement(len(done), len(asked), seconds, len(here))
