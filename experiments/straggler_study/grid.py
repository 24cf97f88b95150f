"""The study's grids: the paper's evaluation on an emulated network, and what is simulated in addition."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from serene.experiments.run.settings import BMV2, computing_ms
from serene.experiments.straggler_study.cell import NOTHING, SOFTMAX, TARGETS, Cell, Network, RackNetwork
from serene.program import Program
from serene.racks import RACK_WORKERS
from serene.wire import ENCAPSULATION_BYTES, HEADER

DATASET = "fashion-mnist"
PARAMETERS = {"mlp": 79_510, "cnn-large": 206_922}  # for images of 28x28

# Batch size and learning rate, of the mlp as the paper's authors have them. The CNN has smaller batches: its gradient
# of 256 images would take longer than the emulated compute time.
RECIPES = {"mlp": (256, 0.04), "cnn-large": (32, 0.1)}

NONE = "none"
SLOW = "slow_worker:probability=0.15,low=0.5,high=2.0"
# The pauses of the paper's authors: 240 s, 5.3 of their steps, before any step with probability 0.01. At a share of
# 30 % these steps are 7.6 compute times.
PAUSES = "slow_worker:probability=0.01,low=7.6,high=7.6"

# The links' rate in Mbit/s, by the share of the exchange in a step; the compute time follows from both. Links are slow
# for the large shares, so that BMv2 on two processors keeps up with the packets of four workers.
LINKS = {0.05: 150.0, 0.30: 60.0, 0.65: 30.0}
SHARES = tuple(LINKS)
WORKERS = 4

AUTOMATIC, PACING = "auto:dssp", "auto:pacing"
# Chosen before there were results: the paper's staleness bound of 10, and k = 3/4 n. So none is the best of several.
# pacing came later, when other cells (cases.py) had shown that it is the best automatic one.
THROUGH_SWITCH = ("bsp", "ssp:10", "asp", "quorum:3", AUTOMATIC, PACING)
OF_SERVERS = ("bsp", "ssp:10", "asp")
# Exchange, switch and strategy of the runs that the quick grid has, and the full one has not.
QUICK_ALONE = {
    ("switch", "bmv2", "quorum:3"), ("switch", "bmv2", AUTOMATIC), ("server", "embedded", "ssp:10"),
    ("server", "embedded", "asp"), ("sharded", "embedded", "ssp:10"),
}  # fmt: skip


@cache
def frame_bits() -> int:
    """Bits on the wire of a packet of the MTU-1500 program."""
    program = Program.load("serene")
    return 8 * (ENCAPSULATION_BYTES + HEADER.itemsize + 4 * program.lanes)


@cache
def computing(share: float, model: str, link_mbit: float = 0.0) -> float:
    """Milliseconds that an iteration computes, so that the exchange through a switch is that share of a step.
    link_mbit: the links' rate; 0: that of LINKS."""
    return computing_ms(share, link_mbit or LINKS[share], PARAMETERS[model], Program.load("serene"))


def fixed(workers: int) -> tuple[str, ...]:
    """The fixed strategies that are simulated for so many workers."""
    return ("bsp", "ssp:1", "ssp:3", "ssp:10", "asp", f"quorum:{workers * 3 // 4}")


@dataclass(frozen=True)
class Together:
    """How many emulated runs are tried at a time for every two processors. light: runs that take little processor time.
    bmv2: through BMv2, which takes a whole processor where the exchange is a large share of a step."""

    light: int
    bmv2: int


TOGETHER = {0.05: Together(6, 3), 0.30: Together(4, 1), 0.65: Together(3, 1)}  # by share


@dataclass(frozen=True)
class Grid:
    """Cells by purpose. A cell that serves several purposes runs once.

    targets: test accuracies to reach, by model. together: how many emulated runs are tried at a time (side_by_side.py),
    by share.
    """

    name: str
    headline: tuple[Cell, ...]  # emulated: what gradients go through x strategies x shares x seeds
    twins: tuple[Cell, ...]  # those through the embedded switch, simulated
    map: tuple[Cell, ...]  # simulated: straggler strength x share x workers, with real gradients of a small model
    scale: tuple[Cell, ...]  # simulated: times alone, for many workers
    targets: Mapping[str, float]
    together: Mapping[float, Together]

    def cells(self) -> list[Cell]:
        """All cells, each once."""
        return list(dict.fromkeys((*self.headline, *self.twins, *self.map, *self.scale)))


@dataclass(frozen=True)
class Length:
    """The length of a training: steps, and the steps from one evaluation to the next."""

    steps: int
    eval_every: int


def cell(model: str, share: float, straggler: str, strategy: str, seed: int, length: Length) -> Cell:
    """An emulated cell through the embedded switch."""
    batch_size, rate = RECIPES[model]
    return Cell(
        engine="emulated", workers=WORKERS, model=model, dataset=DATASET, straggler=straggler, strategy=strategy,
        seed=seed, steps=length.steps, eval_every=length.eval_every, batch_size=batch_size,
        learning_rate=rate, link_mbit=LINKS[share], share=share,
        compute_ms=round(computing(share, model), 3),
    )  # fmt: skip


def why_not(one: Cell) -> str:
    """Why this machine cannot run a cell; empty if it can. A cell that cannot run stays in the grid, and the report
    lists it as missing."""
    through_bmv2 = one.engine == "emulated" and one.exchange == "switch" and one.target == "bmv2"
    return f"{BMV2} is not installed here" if through_bmv2 and shutil.which(BMV2) is None else ""


def ways(one: Cell, *, scapy: bool) -> Iterable[Cell]:
    """The same training through both switches and each baseline, with the strategies of each. scapy: also with
    PACKETS=scapy, under BSP."""
    for target in TARGETS:
        for strategy in THROUGH_SWITCH:
            yield replace(one, target=target, strategy=strategy)
    for exchange in ("server", "sharded", "rpc"):
        for strategy in OF_SERVERS:
            yield replace(one, exchange=exchange, strategy=strategy)
    yield replace(one, exchange="gloo", strategy="bsp")
    if scapy:
        yield replace(one, packets="scapy", strategy="bsp")


def some_ways(one: Cell, strategies: Iterable[str], baselines: Iterable[str]) -> Iterable[Cell]:
    """The same training through both switches with these strategies, and through these exchanges under BSP."""
    for target in TARGETS:
        for strategy in strategies:
            yield replace(one, target=target, strategy=strategy)
    for exchange in baselines:
        yield replace(one, exchange=exchange, strategy="bsp")


def _headline(
    model: str, shares: Iterable[float], seeds: Sequence[int], length: Length, *, scapy: Sequence[float],
    calm: Sequence[float],
) -> Iterable[Cell]:  # fmt: skip
    """The headline's cells. scapy: shares at which there are also runs with PACKETS=scapy. calm: shares at which there
    are also runs with SSP(10) and no straggler."""
    for share in shares:
        for seed in seeds:
            yield from ways(cell(model, share, SLOW, "bsp", seed, length), scapy=share in scapy)
            for strategy in ("bsp", "ssp:10") if share in calm else ("bsp",):
                yield cell(model, share, NONE, strategy, seed, length)


def simulated(one: Cell) -> Cell:
    """The same cell for the simulated engine: with links of the same rate, and a switch at line rate."""
    network = Network(worker_pps=one.link_mbit * 1e6 / frame_bits(), switch_pps=0.0, latency_us=50)
    return replace(one, engine="simulated", network=network)


def twins(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The simulated cells that correspond to those through the embedded switch."""
    chosen = [one for one in cells if one.exchange == "switch" and one.target == "embedded" and one.packets != "scapy"]
    return tuple(simulated(one) for one in chosen)


# The map: stragglers of several strengths, transient and permanent ones. The best strategy is chosen by some seeds, and
# its gain is measured with others, so that luck with the seeds does not count as gain.
STRENGTHS = {
    "transient": tuple(f"slow_worker:probability={p},low=0.5,high=2.0" for p in (0.05, 0.15, 0.3, 0.5)),
    "permanent": tuple(f"heterogeneous:factor={f},workers=0" for f in (1.1, 1.5, 2.0, 4.0)),
}
CHOOSING, REPORTED = (11, 12, 13), (1, 2, 3)


def _map(
    workers: Iterable[int], strengths: Iterable[str], *, brief: bool, shares: Sequence[float] = SHARES
) -> Iterable[Cell]:
    for count in workers:
        for straggler in strengths:
            for share in shares:
                for strategy in (
                    ("bsp", "ssp:3", "ssp:10", "asp", f"quorum:{count * 3 // 4}") if brief else fixed(count)
                ):
                    for seed in (*CHOOSING[: 2 if brief else 3], *REPORTED[: 2 if brief else 3]):
                        network = Network(worker_pps=LINKS[share] * 1e6 / frame_bits(), switch_pps=0, latency_us=50)
                        yield Cell(
                            workers=count, model=SOFTMAX, straggler=straggler, strategy=strategy, seed=seed, steps=150,
                            compute_ms=round(computing(share, "mlp"), 3), eval_every=3,
                            stands_for=PARAMETERS["mlp"], network=network, share=share, racks=racks(count),
                        )  # fmt: skip


# What one machine cannot emulate: hosts with 1 Gbit/s links (82,000 packets of 320 values a second), and switches at
# line rate.
SWITCHED = Network(worker_pps=82_000, switch_pps=0, latency_us=50)
TIMING_SIZES = (4, 8, 16, 32, 64, 128, 256)
IN_RACKS = 64  # workers that need more than one switch


def racks(workers: int) -> RackNetwork | None:
    """Full racks for so many workers, with uplinks of 10 Gbit/s; None if they fit one switch."""
    count = -(-workers // RACK_WORKERS)
    return RackNetwork(count, uplink_pps=820_000, uplink_latency_us=50) if count > 1 else None


def _scale(workers: Iterable[int], steps: int) -> Iterable[Cell]:
    for count in workers:
        for strategy in ("bsp", "ssp:3", "ssp:10", "asp", f"quorum:{count * 3 // 4}"):
            yield Cell(
                workers=count, model=NOTHING, straggler=SLOW, strategy=strategy, seed=1, steps=steps, compute_ms=250,
                stands_for=79510, network=SWITCHED, racks=racks(count),
            )  # fmt: skip


# With stale gradients the target is reached in at most 40 steps, without staleness in 37 (reachable.py).
QUICK = Length(45, 3)


def quick() -> Grid:
    """A small grid, for ``make reproduce``."""
    headline = tuple(_headline("mlp", SHARES, (1, 2), QUICK, scapy=(0.65,), calm=(0.65,)))
    return Grid(
        "quick",
        headline,
        twins(one for one in headline if one.seed == 1),
        tuple(_map((4,), STRENGTHS["transient"][1:], brief=True)),
        tuple(_scale(TIMING_SIZES[:4], 200)),
        {"mlp": 0.60, SOFTMAX: 0.85},
        TOGETHER,
    )


# BSP reaches the targets after at most four fifths of the steps (reachable.py).
LONG, LONG_CNN = Length(250, 5), Length(80, 10)
EIGHT, EIGHT_LINK = 8, 30.0  # workers, and Mbit/s: BMv2 is slower than faster links


def full() -> Grid:
    """The whole grid, for ``make reproduce FULL=1``. A seed's cells come before those of the next seed, so that a grid
    that was not run to its end has whole seeds."""
    headline: list[Cell] = []
    for seed in range(1, 6):
        pauses = cell("mlp", 0.30, PAUSES, "bsp", seed, LONG)
        eight = replace(
            cell("mlp", 0.30, SLOW, "bsp", seed, LONG), workers=EIGHT, link_mbit=EIGHT_LINK,
            compute_ms=round(computing(0.30, "mlp", EIGHT_LINK), 3),
        )  # fmt: skip
        headline += (
            one for one in _headline("mlp", SHARES, (seed,), LONG, scapy=(0.65,), calm=SHARES)
            if (one.exchange, one.target, one.strategy) not in QUICK_ALONE
        )  # fmt: skip
        for one in (pauses, cell("cnn-large", 0.65, SLOW, "bsp", seed, LONG_CNN)):
            headline += some_ways(one, ("bsp", "ssp:10", "asp", PACING), ("rpc", "sharded", "gloo"))
        headline += some_ways(eight, ("bsp", "ssp:10", PACING), ("rpc", "gloo"))
    return Grid(
        "full",
        tuple(headline),
        twins(one for one in headline if one.seed == 1),
        (
            *_map((WORKERS, EIGHT), (*STRENGTHS["transient"], *STRENGTHS["permanent"]), brief=True),
            *_map((IN_RACKS,), (STRENGTHS["transient"][1], STRENGTHS["permanent"][2]), brief=True, shares=(0.30,)),
        ),
        tuple(_scale(TIMING_SIZES, 200)),
        {"mlp": 0.70, "cnn-large": 0.50, SOFTMAX: 0.85},
        TOGETHER,
    )


GRIDS = {"quick": quick, "full": full}
