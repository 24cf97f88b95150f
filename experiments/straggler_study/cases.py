"""The cells in which strategies are compared by their regret (regret.py): everything but strategy and seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from serene.experiments.straggler_study.cell import SOFTMAX, TARGETS, Cell, Network
from serene.experiments.straggler_study.grid import DATASET, LINKS, PARAMETERS, SHARES, computing, fixed, frame_bits
from serene.workers import stragglers

STEPS = 100
STRAGGLERS = {
    "none": "none",
    "always": "heterogeneous:factor=3.0,workers=0",
    "heterogeneous": "heterogeneous:factor=1.5,workers=0+1",
    "random": "slow_worker:probability=0.15,low=0.5,high=2.0",
    "pauses": "slow_worker:probability=0.02,low=10.0,high=20.0",
    "changing": "heterogeneous:factor=3.0,workers=0,first=34,last=66",
}


@dataclass(frozen=True)
class Optimiser:
    """A learning rate, and the momentum with it, 0 to less than 1."""

    rate: float
    momentum: float = 0.0


# A mild rate, one at which staleness costs accuracy, and one with momentum, where it costs more.
OPTIMISERS = {
    SOFTMAX: {
        "mild": Optimiser(0.5),
        "edge": Optimiser(2.0),
        "momentum": Optimiser(0.3, 0.9),
        "mild momentum": Optimiser(0.1, 0.9),
    },
    "mlp": {"mild": Optimiser(0.05), "edge": Optimiser(0.2)},
    "cnn": {"mild": Optimiser(0.1), "edge": Optimiser(0.5)},
}


@dataclass(frozen=True)
class Case:
    """A cell without strategy and seed. rate: a key of OPTIMISERS[model]; straggler: of STRAGGLERS, or a profile.
    target: the switch of a run in Mininet, one of cell.TARGETS; empty: virtual time. steps: the length of a run."""

    model: str
    rate: str
    share: float
    straggler: str
    workers: int
    target: str = ""
    steps: int = STEPS

    @property
    def name(self) -> str:
        """The cell in results' files: its settings, which have no ", " in them, separated by that."""
        kind, colon, file = self.straggler.partition(":")
        file = re.sub(r"[\s,;]+", "-", Path(file).stem)
        straggler = f"{kind}:{file}" if kind == "trace" and colon else self.straggler
        switch = f", {self.target} in Mininet" if self.target else ""
        steps = f", {self.steps} steps" if self.steps != STEPS else ""
        return f"{self.model} {self.rate}, share {self.share:.0%}, {straggler}, {self.workers} workers{steps}{switch}"

    def cell(self, strategy: str, seed: int, until: float = 0.0) -> Cell:
        """One run. In virtual time it ends when the accuracy is ``until``; 0: after all steps."""
        optimiser = OPTIMISERS[self.model][self.rate]
        straggler = STRAGGLERS.get(self.straggler, self.straggler)
        one = Cell(
            workers=self.workers, model=self.model, dataset=DATASET, straggler=straggler,
            strategy=strategy, seed=seed, steps=self.steps, until=until, eval_every=4, share=self.share,
            compute_ms=round(computing(self.share, "mlp"), 3), learning_rate=optimiser.rate,
            momentum=optimiser.momentum,
        )  # fmt: skip
        if self.target:
            return replace(one, engine="emulated", target=self.target, link_mbit=LINKS[self.share])
        network = Network(worker_pps=LINKS[self.share] * 1e6 / frame_bits(), switch_pps=0, latency_us=50)
        return replace(one, stands_for=PARAMETERS["mlp"], network=network)

    def fixed(self) -> tuple[str, ...]:
        """The fixed strategies, of which the best one in hindsight is the measure."""
        return fixed(self.workers)

    def calm(self) -> Case:
        """The case by which the target is chosen."""
        return replace(self, straggler="none", share=SHARES[1], target="")


# Of which rates and shares a model's cells are, by the number of workers. The first ones take the least processor time.
SIZES: dict[str, dict[int, tuple[tuple[str, ...], tuple[float, ...]]]] = {
    SOFTMAX: {
        4: (("mild", "edge", "momentum"), SHARES),
        8: (("mild", "edge", "momentum"), SHARES),
        16: (("mild", "edge", "momentum"), SHARES),
        32: (("mild", "edge", "momentum"), SHARES[1:2]),
    },
    "mlp": {4: (("mild", "edge"), (SHARES[0], SHARES[-1]))},
    "cnn": {4: (("mild", "edge"), SHARES[1:2])},
}
IN_MININET = ("none", "always", "random", "changing")  # stragglers of the cells in Mininet


def within(kinds: Iterable[str], steps: int) -> list[str]:
    """Those of STRAGGLERS that a run of so many steps has."""
    return [kind for kind in kinds if getattr(stragglers.parse(STRAGGLERS[kind]), "first", 1) <= steps]


def in_mininet(kinds: Sequence[str] = IN_MININET, steps: int = STEPS) -> Iterator[Case]:
    """The cells that run in Mininet, at the largest share, through both switches."""
    for target in TARGETS:
        for rate in OPTIMISERS["mlp"]:
            for straggler in kinds:
                yield Case("mlp", rate, SHARES[-1], straggler, 4, target, steps)


def cases(kinds: Sequence[str] = tuple(STRAGGLERS), steps: int = STEPS) -> Iterator[Case]:
    """All cells in virtual time with these stragglers, as `Case` has them."""
    for model, sizes in SIZES.items():
        for workers, (rates, shares) in sizes.items():
            for rate in rates:
                for share in shares:
                    for straggler in kinds:
                        yield Case(model, rate, share, straggler, workers, steps=steps)
