"""The study's cells, which are questions about one exchange or one training run, and their answers."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from serene.errors import SereneError, choices
from serene.experiments.network_study.exchange import SERVER_SHARE, Exchange, SwitchSizes
from serene.experiments.network_study.flows import simgrid_engine, solver
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.flows.solver import LV08, model
from serene.experiments.network_study.methods import method
from serene.experiments.network_study.training import BY_SERVERS, SWITCH, Training, train
from serene.experiments.shared.machine import CONDITIONS, observed
from serene.experiments.shared.store import JsonStore
from serene.program import Program
from serene.strategy import Quorum, parse
from serene.workers import stragglers

ENGINES = {solver.NAME: solver.run, simgrid_engine.NAME: simgrid_engine.run}
MB, GB = 1e6, 1e9
QUORUM_SHARE = 0.9  # of the workers, for the strategy "quorum" without a number
ANSWERS = "answers"  # the folder of answers in the study's
VERSION = 2  # of answers; to be raised when earlier ones are wrong


@dataclass(frozen=True)
class NetworkCell:
    """A network of one of the paper's sizes. ``ratio``: bisection ratio. ``bandwidth_gb``: of a link, in GB/s, each
    way. ``latency_us``: of a switch."""

    layers: int
    hosts: int
    ratio: float = 1.0
    bandwidth_gb: float = 4.0
    latency_us: float = 0.2
    routing: str = "d-mod-k"

    def clos(self) -> Clos:
        """The network. Raises BadNetwork."""
        return Clos.of_size(
            self.hosts,
            self.ratio,
            layers=self.layers,
            bandwidth=self.bandwidth_gb * GB,
            switch_latency=self.latency_us * 1e-6,
            routing=self.routing,
        )


@dataclass(frozen=True)
class ExchangeCell:
    """The question how long an exchange takes."""

    network: NetworkCell
    method: str
    gradient_mb: float = 100.0
    engine: str = solver.NAME
    model: str = LV08.name
    kind: str = "exchange"

    @property
    def unit_s(self) -> float:
        """Seconds of the gradient over a link: gradient / bandwidth."""
        return self.gradient_mb * MB / (self.network.bandwidth_gb * GB)

    def answer(self, sizes: SwitchSizes | None = None) -> dict[str, Any]:
        """``seconds`` of the exchange; ``closed_form_s``, the same by a formula, None if there is none; ``engine_s``
        that the engine took. sizes: the switch's, by default our program's. Raises SereneError."""
        if self.engine not in ENGINES:
            raise SereneError(f"no engine {self.engine!r}; expected {choices(ENGINES)}")
        exchange = _exchange(self.network, self.gradient_mb, sizes)
        began = time.perf_counter()
        how, constants = method(self.method), model(self.model)
        seconds = ENGINES[self.engine](exchange.network, how.steps(exchange), constants)
        spent = time.perf_counter() - began
        return {
            "seconds": seconds,
            "closed_form_s": how.closed_form(exchange, constants) if how.closed_form else None,
            "engine_s": spent,
        }


@dataclass(frozen=True)
class TrainingCell:
    """The question how fast training goes. how: one of `training.EXCHANGES`. The strategy "quorum" waits for nine
    workers in ten."""

    network: NetworkCell
    how: str
    strategy: str
    straggler: str = "none"
    gradient_mb: float = 100.0
    compute_ms: float = 100.0
    iterations: int = 40
    seed: int = 1
    kind: str = "training"

    def answer(self, sizes: SwitchSizes | None = None) -> dict[str, Any]:
        """The fields of a `training.Outcome`, and ``engine_s`` that the simulation took. sizes: the switch's, by
        default our program's. Raises SereneError."""
        exchange = _exchange(self.network, self.gradient_mb, sizes)
        workers = exchange.network.hosts
        if self.how in BY_SERVERS:
            workers -= workers // SERVER_SHARE
        strategy = Quorum(math.ceil(QUORUM_SHARE * workers)) if self.strategy == "quorum" else parse(self.strategy)
        began = time.perf_counter()
        outcome = train(
            Training(
                exchange, self.how, strategy, stragglers.parse(self.straggler), self.compute_ms / 1e3,
                iterations=self.iterations, seed=self.seed,
            ),
            LV08,
        )  # fmt: skip
        return {**asdict(outcome), "engine_s": time.perf_counter() - began}


Cell = ExchangeCell | TrainingCell


def _exchange(network: NetworkCell, gradient_mb: float, sizes: SwitchSizes | None) -> Exchange:
    if not 0 < gradient_mb < math.inf:
        raise SereneError(f"a gradient of {gradient_mb:g} MB; expected more than 0")
    return Exchange(network.clos(), gradient_mb * MB, sizes or our_switch())


@lru_cache(maxsize=1)
def our_switch() -> SwitchSizes:
    """The sizes of the compiled program for an MTU of 1500."""
    return SwitchSizes.of(Program.load())


def key(cell: Cell) -> str:
    """What identifies a cell's answer, as JSON: the cell, and our switch's sizes if the answer depends on them."""
    in_network = cell.how == SWITCH if isinstance(cell, TrainingCell) else method(cell.method).in_network
    switch = {"switch": asdict(our_switch())} if in_network else {}
    return json.dumps({"version": VERSION, **asdict(cell), **switch}, sort_keys=True)


class Store(JsonStore[Cell]):
    """The answers on disk, each with the conditions in which it was found."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, VERSION)

    def name(self, cell: Cell) -> str:
        return hashlib.sha256(key(cell).encode()).hexdigest()[:16]


Answers = Mapping[Cell, Mapping[str, Any]]  # what is known of each cell


def answer(cell: Cell) -> dict[str, Any]:
    """A cell's answer, with the conditions in which it was found. Raises SereneError."""
    found, conditions = observed(cell.answer)
    return {**found, CONDITIONS: conditions.to_dict()}
