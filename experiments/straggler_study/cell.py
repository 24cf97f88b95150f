"""The study's cell: one configuration. Its digest is the name of its result's file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache, lru_cache
from typing import Any

from serene.controller.automatic import AUTOMATIC, SHIPPED, Automatic, automatic_parts, load, load_in_time, source
from serene.errors import SereneError, choices
from serene.program import Program
from serene.racks import Racks
from serene.strategy import BSP, NAMES, BadStrategy, Strategy, parse
from serene.workers import architectures, data, stragglers
from serene.workers.packets import check_packets
from serene.workers.recipe import Recipe, check_exchange

ENGINES = ("simulated", "emulated")
TARGETS = ("embedded", "bmv2")
SOFTMAX, NOTHING = "softmax", "nothing"
TREE, NO_SWITCH = "tree", "none"  # data planes of a cell, beside the compiled program's variants
LEARNERS = (*architectures.MODELS, SOFTMAX, NOTHING)
LANES = 320  # values in a packet of the MTU-1500 program, by which rates are counted
RESULTS_VERSIONS = {"simulated": 6, "emulated": 5}  # an engine's is to be raised when its earlier results are wrong
OBSERVATIONS = 1  # as RESULTS_VERSIONS, of what automatic strategies are shown in virtual time


@dataclass(frozen=True)
class Network:
    """The network of a simulated job. Rates are in packets of LANES values a second; 0: packets take no time.

    worker_pps: of a worker's host and link, each way. switch_pps: of the switch, for all workers together. latency_us:
    from a worker to the switch.
    """

    worker_pps: float = 0.0
    switch_pps: float = 0.0
    latency_us: float = 50.0


@dataclass(frozen=True)
class RackNetwork:
    """How many racks a simulated job has, and the rate and latency of each leaf's uplink, as in `Network`, each way."""

    count: int
    uplink_pps: float = 0.0
    uplink_latency_us: float = 50.0


@dataclass(frozen=True)
class Cell:
    """One run. model: one of LEARNERS. learning_rate: None for the model's own. momentum: of
    softmax regression alone, 0 to less than 1; each worker keeps a velocity, which a read moves once. until: the
    smoothed accuracy to reach, where a simulated run ends; 0: after all steps. stands_for: how many parameters the
    simulated network carries, if that is more than the model has; so timing can be studied with a small model.

    exchange, target, packets, link_mbit: as in a run's settings, for the emulated engine. network, racks: for the
    simulated one; racks None for one switch. share: of the exchange in a step without stragglers, through a switch at
    line rate; 0 if ``compute_ms`` was not chosen by it.
    """

    engine: str = "simulated"
    workers: int = 4
    model: str = "mlp"
    dataset: str = "digits"
    straggler: str = "none"
    strategy: str = "bsp"
    seed: int = 1
    steps: int = 120
    compute_ms: float = 100.0
    learning_rate: float | None = None
    momentum: float = 0.0
    eval_every: int = 3
    until: float = 0.0
    stands_for: int = 0
    batch_size: int = 32
    exchange: str = "switch"
    target: str = "embedded"
    packets: str = "compiled"
    link_mbit: float = 0.0
    share: float = 0.0
    network: Network = field(default_factory=Network)
    racks: RackNetwork | None = None

    @property
    def automatic(self) -> bool:
        """Whether the strategy is an automatic one."""
        return self.strategy.startswith(AUTOMATIC)

    @property
    def data_plane(self) -> str:
        """The compiled program that the cell's packets pass: a variant, TREE or NO_SWITCH. Models of `workers` are
        simulated with jumbo frames, which are fewer, and each of which takes the time of the packets that it stands
        for. There are no jumbo programs for a tree."""
        if self.exchange != "switch":
            return NO_SWITCH
        if self.racks is not None:
            return TREE
        return "serene_jumbo" if self.engine == "simulated" and self.model in architectures.MODELS else "serene"

    @property
    def digest(self) -> str:
        """Identifies the cell's result, by its settings, its program, the source of an automatic strategy,
        the delays of a recorded straggler, and the version of its engine's results: 16 hex digits."""
        parts: list[Any] = [RESULTS_VERSIONS.get(self.engine), _compiled(self.data_plane), self.to_dict()]
        if self.automatic:
            parts.append(automatic_source(self.strategy))
            if self.engine == "simulated":
                parts.append(OBSERVATIONS)
        if isinstance(profile := stragglers.parse(self.straggler), stragglers.Recorded):
            parts.append(sorted(profile.rows.items()))
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """The settings. Without ``racks``, ``momentum`` and ``until`` if there are none, so that digests are those of
        before there were any."""
        absent = {"racks": None, "momentum": 0.0, "until": 0.0}
        return {name: value for name, value in asdict(self).items() if name not in absent or value != absent[name]}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Cell:
        """The cell that ``to_dict`` wrote."""
        racks = given.get("racks")
        own = {"network": Network(**given["network"]), "racks": RackNetwork(**racks) if racks is not None else None}
        return cls(**{**given, **own})

    def check(self, load_s: float | None = None) -> None:
        """Raises SereneError, which names the valid choices. load_s: as for `check_strategy`."""
        if self.engine not in ENGINES:
            raise SereneError(f"engine {self.engine!r}: expected {choices(ENGINES)}")
        if self.model not in LEARNERS:
            raise SereneError(f"model {self.model!r}: expected {choices(LEARNERS)}")
        if self.racks is not None:
            self._check_racks(self.racks)
        most = _most_workers() * (self.racks.count if self.racks is not None else 1)
        for name, low, high in (
            ("workers", 1, most),
            ("steps", 1, 10**6),
            ("eval_every", 1, 10**6),
            ("compute_ms", 0, 10**6),
            ("seed", 0, 2**31 - 1),
            ("stands_for", 0, 10**9),
            ("batch_size", 1, 10**5),
            ("until", 0, 1),
            ("link_mbit", 0, 1000),
            ("share", 0, 0.99),
        ):
            if not low <= getattr(self, name) <= high:
                more = "; more are in racks" if name == "workers" and self.racks is None else ""
                raise SereneError(f"{name} {getattr(self, name)}: expected {low} to {high}{more}")
        for part in (self.network, self.racks):
            for item in fields(part) if part is not None else ():
                if not 0 <= getattr(part, item.name) < float("inf"):
                    raise SereneError(f"network: {item.name} {getattr(part, item.name)}: expected 0 or more")
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            raise SereneError(f"learning rate {self.learning_rate}: expected a number above 0")
        if not 0 <= self.momentum < 1:
            raise SereneError(f"momentum {self.momentum}: expected 0 to less than 1")
        if self.momentum and self.model != SOFTMAX:
            raise SereneError(f"momentum {self.momentum}: only {SOFTMAX} has it, not {self.model}")
        if self.engine == "emulated":
            self._check_emulated()
        elif self.exchange != "switch":
            raise SereneError(f"exchange {self.exchange!r}: the simulated engine has the switch alone")
        data.check_dataset(self.dataset)
        check_strategy(self.strategy, self.workers, load_s)
        stragglers.check_workers(stragglers.parse(self.straggler), self.workers)

    @property
    def recipe(self) -> Recipe:
        """What its workers have in common."""
        return Recipe(**{name: getattr(self, name) for name in Recipe.model_fields if name != "data_dir"})

    def _check_emulated(self) -> None:
        if self.model not in architectures.MODELS:
            raise SereneError(f"model {self.model!r}: the emulated engine trains {choices(architectures.MODELS)}")
        if not self.link_mbit:
            raise SereneError("link_mbit 0: the emulated engine needs a rate for its links")
        if self.target not in TARGETS:
            raise SereneError(f"target {self.target!r}: expected {choices(TARGETS)}")
        check_packets(self.packets)
        check_exchange(self.exchange, self.strategy, self.workers)

    def _check_racks(self, racks: RackNetwork) -> None:
        if self.engine != "simulated":
            raise SereneError(f"racks are simulated only, not {self.engine}")
        Racks.even(self.workers, racks.count)


@cache
def _most_workers() -> int:
    """Of one switch."""
    return Program.load("serene").max_workers


@lru_cache(maxsize=4)
def _compiled(data_plane: str) -> str:
    """SHA-256 of a data plane's compiled programs: results of other programs are not this cell's."""
    if data_plane == NO_SWITCH:
        return NO_SWITCH
    programs = Program.tree() if data_plane == TREE else (Program.load(data_plane),)
    return hashlib.sha256(b"".join(program.config_path.read_bytes() for program in programs)).hexdigest()


def automatic(text: str) -> Automatic | None:
    """The automatic strategy that a text names; None for a fixed one. Raises BadStrategy or BadAutomatic."""
    return load(*automatic_parts(text)) if text.startswith(AUTOMATIC) else None


def automatic_source(text: str) -> str:
    """The program text of the automatic strategy that a text names. Raises as ``automatic``."""
    return source(automatic_parts(text)[0])


def first_strategy(text: str) -> Strategy:
    """The strategy that the job begins with: BSP, if it is an automatic one. Raises BadStrategy."""
    if text.startswith(AUTOMATIC):
        return BSP()
    try:
        return parse(text)
    except BadStrategy:
        names = [*NAMES, *(AUTOMATIC + name for name in (*SHIPPED, "FILE.py:NAME"))]
        raise BadStrategy(f"no strategy {text!r}; expected {choices(names)}") from None


def check_strategy(text: str, workers: int, load_s: float | None = None) -> None:
    """Raises BadStrategy or BadAutomatic for a strategy that does not exist, or that so many workers cannot have; also
    if its file takes longer than load_s seconds; None: than a controller lets it."""
    if text.startswith(AUTOMATIC):
        load_in_time(*automatic_parts(text), load_s)
    first_strategy(text).compile(range(workers))
