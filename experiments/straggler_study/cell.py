"""One configuration of the study, as data. Its digest is the name under which its result is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any

from experiments.straggler_study.strategies import AUTOMATIC, check_strategy
from serene.errors import SereneError, choices
from serene.program import Program
from workers import architectures, data, stragglers

ENGINES = ("simulated", "emulated")
SOFTMAX, NOTHING = "softmax", "nothing"
LEARNERS = (*architectures.MODELS, SOFTMAX, NOTHING)
LANES = 320  # of the MTU-1500 program: what a vector costs on the wire
RESULTS_VERSION = 2  # raise it when a change of the engines makes earlier results wrong


class BadCell(SereneError):
    """A configuration that makes no sense; the message names the valid choices."""


@dataclass(frozen=True)
class Network:
    """What the packets of a job pass. Rates in packets of 320 values; 0 packets per second: takes no time.

    worker_pps: what one worker's host and link get through, each way. switch_pps: what the switch gets through, for
    all workers together. latency_us: worker to switch, one way.
    """

    worker_pps: float = 0.0
    switch_pps: float = 0.0
    latency_us: float = 50.0


@dataclass(frozen=True)
class Cell:
    """One run. learning_rate None is the model's own; ``stands_for`` parameters are charged on the wire if there are
    more of them than the model has (so timing alone can be studied with one slot)."""

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
    eval_every: int = 3
    stands_for: int = 0
    network: Network = field(default_factory=Network)

    @property
    def automatic(self) -> bool:
        return self.strategy.startswith(AUTOMATIC)

    @property
    def digest(self) -> str:
        """Of the settings, the data plane's program and the version of the results: 16 hex digits."""
        text = json.dumps([RESULTS_VERSION, _data_plane(), self.to_dict()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Cell:
        return cls(**{**given, "network": Network(**given["network"])})

    def check(self) -> None:
        """Raises BadCell, BadStrategy, BadStraggler or DataError, naming what would be right."""
        if self.engine not in ENGINES:
            raise BadCell(f"engine {self.engine!r}: expected {choices(ENGINES)}")
        if self.model not in LEARNERS:
            raise BadCell(f"model {self.model!r}: expected {choices(LEARNERS)}")
        most = Program.load("serene").max_workers
        for name, low, high in (
            ("workers", 1, most),
            ("steps", 1, 10**6),
            ("eval_every", 1, 10**6),
            ("compute_ms", 0, 10**6),
            ("seed", 0, 2**31 - 1),
            ("stands_for", 0, 10**9),
        ):
            if not low <= getattr(self, name) <= high:
                raise BadCell(f"{name} {getattr(self, name)}: expected {low} to {high}")
        for item in fields(self.network):
            if not 0 <= getattr(self.network, item.name) < float("inf"):
                raise BadCell(f"network: {item.name} {getattr(self.network, item.name)}: expected 0 or more")
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            raise BadCell(f"learning rate {self.learning_rate}: expected a number above 0")
        if self.engine == "emulated" and self.model not in architectures.MODELS:
            raise BadCell(f"model {self.model!r}: the emulated engine trains {choices(architectures.MODELS)}")
        data.check_dataset(self.dataset)
        check_strategy(self.strategy, self.workers)
        stragglers.check_workers(stragglers.parse(self.straggler), self.workers)


@lru_cache(maxsize=1)
def _data_plane() -> str:
    """What p4c made of the sources; results of another program are other results."""
    return hashlib.sha256(Program.load("serene").config_path.read_bytes()).hexdigest()
