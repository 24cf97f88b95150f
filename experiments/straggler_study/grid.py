"""What is run, as data: the paper's evaluation, and the questions it left open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from experiments.straggler_study.cell import NOTHING, SOFTMAX, Cell, Network, RackNetwork
from serene.racks import RACK_WORKERS

# Packets a second that two cores manage when all workers, the switch and the controller share them (UDP on loopback).
# They were measured once: the emulated engine has these limits, the simulated one is given them.
LOOPBACK = Network(worker_pps=60_000, switch_pps=75_000, latency_us=50)

NONE = "none"
SLOW = "slow_worker:probability=0.15,low=0.5,high=2.0"
HETEROGENEOUS = "heterogeneous:factor=2.0,workers=0"
FAILURE = "failure:worker=0,iteration=20,pause_s=7.5"
STRAGGLERS = (NONE, SLOW, HETEROGENEOUS, FAILURE)

AUTOMATIC = ("auto:dssp", "auto:waiting", "auto:sync-switch:after=20", "auto:evict:silent=1")

# Test accuracy that ends a comparison, per model.
TARGETS = {"mlp": 0.90, "cnn": 0.85, SOFTMAX: 0.85}
RATES = (0.05, 0.1, 0.2, 0.3)  # for the tuned BSP, and the others by the same effort
STEPS = {"mlp": 100, "cnn": 90}  # BSP reaches the target after about two thirds of them
OWN_RATE = {"mlp": 0.1, "cnn": 0.1}

TIMING_SIZES = (4, 8, 16, 32, 64, 128, 256)
IN_RACKS = (64, 128, 256)  # workers of more than one switch


def fixed(workers: int) -> tuple[str, ...]:
    """The fixed strategies for so many workers; worker 0 is the one that the profiles slow down."""
    return ("bsp", "ssp:1", "ssp:3", "ssp:10", "asp", f"quorum:{workers * 3 // 4}", "mixed:0")


@dataclass(frozen=True)
class Grid:
    """Cells by what they are for. A cell may serve several purposes; it runs once."""

    name: str
    study: tuple[Cell, ...]  # strategies x stragglers x workers x models x seeds
    tuning: tuple[Cell, ...]  # other learning rates
    map: tuple[Cell, ...]  # straggler strength x workers, with real gradients of a small model
    scale: tuple[Cell, ...]  # timing alone, up to many workers
    emulated: tuple[Cell, ...]  # by real processes

    def cells(self) -> list[Cell]:
        return list(dict.fromkeys((*self.study, *self.tuning, *self.map, *self.scale, *self.emulated)))


def _study(workers: Iterable[int], model: str, seeds: Sequence[int], *, brief: bool) -> Iterable[Cell]:
    for count in workers:
        for straggler in STRAGGLERS:
            few = ("bsp", "ssp:3", "ssp:10", "asp", f"quorum:{count * 3 // 4}", AUTOMATIC[1])
            for strategy in few if brief else (*fixed(count), *AUTOMATIC):
                for seed in seeds:
                    yield cell(count, model, straggler, strategy, seed)


def cell(workers: int, model: str, straggler: str, strategy: str, seed: int, rate: float | None = None) -> Cell:
    """A cell of the study, by the simulated engine."""
    return Cell(
        workers=workers,
        model=model,
        straggler=straggler,
        strategy=strategy,
        seed=seed,
        steps=STEPS[model],
        compute_ms=250,
        learning_rate=rate if rate is not None and rate != OWN_RATE[model] else None,
        eval_every=2 if model == "mlp" else 5,
        network=LOOPBACK,
    )


def _tuning(workers: Iterable[int], seeds: Sequence[int]) -> Iterable[Cell]:
    """BSP for all stragglers; the others for the two that the paper reports most of."""
    for count in workers:
        for straggler in STRAGGLERS:
            others = ("ssp:10", "asp", f"quorum:{count * 3 // 4}") if straggler in (NONE, SLOW) else ()
            for strategy in ("bsp", *others):
                for rate in RATES:
                    for seed in seeds:
                        yield cell(count, "mlp", straggler, strategy, seed, rate)


# The map: a straggler's strength, in both ways of being one.
STRENGTHS = {
    "transient": tuple(f"slow_worker:probability={p},low=0.5,high=2.0" for p in (0.05, 0.15, 0.3, 0.5)),
    "permanent": tuple(f"heterogeneous:factor={f},workers=0" for f in (1.1, 1.5, 2.0, 4.0)),
}


def _map(workers: Iterable[int], strengths: Iterable[str], seeds: Sequence[int]) -> Iterable[Cell]:
    for count in workers:
        for straggler in strengths:
            for strategy in (*fixed(count), *AUTOMATIC[:3]):
                for seed in seeds:
                    yield Cell(
                        workers=count, model=SOFTMAX, straggler=straggler, strategy=strategy, seed=seed, steps=150,
                        compute_ms=250, eval_every=3, stands_for=79510, network=SWITCHED, racks=racks(count),
                    )  # fmt: skip


# Beyond what one machine emulates: hosts with 1 Gbit/s links (82 kpps of 320 values) and a switch at line rate.
SWITCHED = Network(worker_pps=82_000, switch_pps=0, latency_us=50)


def racks(workers: int) -> RackNetwork | None:
    """Full racks, each with a link of 10 Gbit/s to the root; None for what fits one switch."""
    count = -(-workers // RACK_WORKERS)
    return RackNetwork(count, uplink_pps=820_000, uplink_latency_us=50) if count > 1 else None


def _scale(workers: Iterable[int], steps: int) -> Iterable[Cell]:
    for count in workers:
        for strategy in ("bsp", "ssp:3", "ssp:10", "asp", f"quorum:{count * 3 // 4}"):
            yield Cell(
                workers=count, model=NOTHING, straggler=SLOW, strategy=strategy, seed=1, steps=steps, compute_ms=250,
                stands_for=79510, network=SWITCHED, racks=racks(count),
            )  # fmt: skip


def emulated(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The same cells by the emulated engine, which has a real network and ignores the cell's model of one."""
    return tuple(replace(item, engine="emulated", network=Network()) for item in cells)


def quick() -> Grid:
    seeds = range(1, 6)
    both = [cell(4, "mlp", SLOW, strategy, seed) for strategy in ("bsp", "ssp:10", "asp") for seed in (1,)]
    return Grid(
        "quick",
        tuple(_study((4,), "mlp", seeds, brief=True)),
        tuple(cell(4, "mlp", SLOW, "bsp", seed, rate) for rate in RATES for seed in seeds),
        tuple(_map((4, 8, 16), STRENGTHS["transient"][:3], (1, 2, 3))),
        tuple(_scale((4, 8, 16, 32), 200)),
        emulated(both),
    )


def full() -> Grid:
    seeds = range(1, 6)
    both = [
        cell(4, "mlp", straggler, strategy, seed)
        for seed in (1, 2)
        for straggler in STRAGGLERS
        for strategy in ("bsp", "ssp:3", "ssp:10", "asp", "quorum:3", "auto:waiting")
    ] + [cell(8, "mlp", SLOW, strategy, seed) for seed in (1, 2) for strategy in ("bsp", "ssp:10", "asp")]
    return Grid(
        "full",
        (*_study((4, 8), "mlp", seeds, brief=False), *_study((4, 8), "cnn", seeds, brief=True)),
        tuple(_tuning((4, 8), seeds)),
        (
            *_map((4, 8, 16, 32), (*STRENGTHS["transient"], *STRENGTHS["permanent"]), (1, 2, 3)),
            *_map(IN_RACKS, (STRENGTHS["transient"][1], STRENGTHS["permanent"][2]), (1, 2, 3)),
        ),
        tuple(_scale(TIMING_SIZES, 500)),
        emulated(both),
    )


GRIDS = {"quick": quick, "full": full}
