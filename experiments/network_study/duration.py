"""Estimates how long a study's simulations will take."""

from __future__ import annotations

from collections.abc import Sequence

from serene.experiments.network_study.cells import Answers, Cell, ExchangeCell
from serene.experiments.network_study.methods import METHODS
from serene.experiments.network_study.training import BY_SERVERS
from serene.experiments.shared import estimate, machine

# Seconds that a simulation takes at r = 1, as measured on an Intel Xeon: with servers for each pair of hosts, else for
# each host; of training, for each iteration of a host.
SERVERS_S, OTHERS_S = 1.2e-6, 1e-5
TRAINING_BY_SERVERS_S, TRAINING_S = 1.5e-4, 2e-5


def expected_s(cell: Cell) -> float:
    """Seconds that a simulation takes, about. Methods with servers have a step for each server, and in a thinned
    network a step has more events."""
    hosts, ratio = cell.network.hosts, cell.network.ratio
    if not isinstance(cell, ExchangeCell):
        return (TRAINING_BY_SERVERS_S if cell.how in BY_SERVERS else TRAINING_S) * hosts * cell.iterations
    return (SERVERS_S * hosts**2 if METHODS[cell.method].servers else OTHERS_S * hosts) / ratio


def announced(cells: Sequence[Cell], answers: Answers, at_once: int) -> str:
    """What to print before the simulations begin. at_once: how many run at a time."""
    asked, missing = list(dict.fromkeys(cells)), answers.missing(cells)
    still = set(missing)
    done = [cell for cell in asked if cell not in still]
    here = [cell for cell in done if answers.conditions(cell).machine == machine.here()]
    pace = estimate.pace((answers[cell]["engine_s"], expected_s(cell)) for cell in here) or 1.0
    seconds = pace * sum(expected_s(cell) for cell in missing) / at_once
    return estimate.announcement(len(done), len(asked), seconds, len(here))
