"""The settings of a run, checked before anything starts."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from serene.controller.automatic import AUTOMATIC, automatic_parts
from serene.errors import SereneError, choices
from serene.experiments.shared.build import commit
from serene.faults import Faults
from serene.faults import load as load_faults
from serene.memory import free_bytes
from serene.program import Program, chosen_program
from serene.racks import MAX_RACKS, RACK_WORKERS, Racks, policies
from serene.slots import MAX_SLOTS, SlotState
from serene.strategy import BSP, Strategy, parse, to_text
from serene.wire import ENCAPSULATION_BYTES, HEADER
from serene.workers import architectures, data, stragglers
from serene.workers.options import check_exchange
from serene.workers.packets import check_packets

TARGETS = ("auto", "embedded", "bmv2")
BMV2 = "simple_switch_grpc"
BASELINE_TARGETS = {True: "bridge", False: "loopback"}  # a baseline's, with Mininet and without it


class BadSetting(SereneError):
    """A setting is invalid, or does not go with another; the message names the valid choices."""


@dataclass(frozen=True)
class Settings:
    """The settings of one training run, as `check` returns them. ``compute_ms``: the mean compute time of an iteration,
    emulated by sleeping. ``parameters``: size of the model."""

    target: str
    workers: int
    strategy: Strategy
    straggler: str
    steps: int
    model: str
    dataset: str
    data_dir: Path | None
    link_mbit: float | None
    seed: int
    compute_ms: float
    program: Program
    mininet: bool
    out: Path
    batch_size: int = 32
    learning_rate: float | None = None  # None: the model's own
    packets: str = "compiled"
    exchange: str = "switch"  # or a baseline
    faults: Faults = field(default_factory=Faults)
    racks: int = 1  # more than one: each has a leaf switch in a tree
    uplink_mbit: float | None = None
    parameters: int = 0
    eval_every: int = 5  # steps
    automatic: tuple[str, dict[str, object]] | None = None  # the automatic strategy and its parameters
    commit: str | None = None  # of the checkout, when the settings were checked

    @property
    def rule(self) -> str:
        """The strategy in words, or who chooses it."""
        return f"auto: {self.automatic[0]}" if self.automatic is not None else str(self.strategy)

    @property
    def strategy_text(self) -> str:
        """The strategy as one word, as STRATEGY= takes it: ssp:3, or auto:pacing."""
        if self.automatic is None:
            return to_text(self.strategy)
        name, parameters = self.automatic
        given = ",".join(f"{key}={value}" for key, value in parameters.items())
        return f"{AUTOMATIC}{name}{':' if given else ''}{given}"

    @property
    def by_rack(self) -> Racks:
        """How the workers are divided among the racks."""
        return Racks.even(self.workers, self.racks)

    @property
    def mtu(self) -> int | None:
        """The links' MTU in bytes; None for the kernel's default."""
        return 9000 if self.program.name == "serene_jumbo" else None


def resolve_target(target: str, mininet: bool) -> str:
    """The target to use: for ``auto``, BMv2 where it is installed and Mininet is used, else the embedded switch. Raises
    BadSetting."""
    if target not in TARGETS:
        raise BadSetting(f"TARGET={target}: expected {choices(TARGETS)}")
    installed = shutil.which(BMV2) is not None
    if target == "bmv2":
        if not mininet:
            raise BadSetting("TARGET=bmv2 needs Mininet: without it only the embedded switch can be used")
        if not installed:
            raise BadSetting(f"TARGET=bmv2: {BMV2} is not installed; use TARGET=embedded, or see the README for BMv2")
    if target == "auto":
        return "bmv2" if installed and mininet else "embedded"
    return target


def _number(name: str, text: str, low: float, high: float, whole: bool = True) -> float:
    """A setting's number. Raises BadSetting."""
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise BadSetting(
            f"{name}={text}: expected {'a whole number' if whole else 'a number'} from {low:,} to {high:,}"
        )
    return value


def _compute_ms(given: str, share: str, link_mbit: str, parameters: int, program: Program) -> float:
    """The mean compute time: as given, or such that the exchange is the given share of a step. That is the exchange
    through the switch, whatever the run's own is, so that runs with the same share compute for the same time."""
    if not share:
        return _number("COMPUTE_MS", given, 0, 60000, whole=False)
    part = _number("EXCHANGE_SHARE", share, 0.01, 0.99, whole=False)
    if not link_mbit:
        raise BadSetting(f"EXCHANGE_SHARE={share} needs LINK_MBIT: without it no exchange has a length")
    return computing_ms(part, _number("LINK_MBIT", link_mbit, 0.1, 1000, whole=False), parameters, program)


def computing_ms(share: float, link_mbit: float, parameters: int, program: Program) -> float:
    """Milliseconds that an iteration computes, if the exchange through the switch at the link's rate is so large a
    share (0 to 1) of a step."""
    frames = -(-parameters // program.lanes)
    bits = 8 * frames * (ENCAPSULATION_BYTES + HEADER.itemsize + 4 * program.lanes)
    return 1e-3 * bits / link_mbit * (1 - share) / share


def _check_baseline(exchange: str, target: str, program: str, slots: str, packets: str, faults: Path | None) -> None:
    """Raises BadSetting for settings of the switch: without a switch they would be ignored."""
    for name, given, default in (
        ("TARGET", target, "auto"),
        ("PROGRAM", program, "serene"),
        ("SLOTS", slots, ""),
        ("PACKETS", packets, "compiled"),
        ("FAULTS", str(faults or ""), ""),
    ):
        if given != default:
            raise BadSetting(f"{name}={given} is for a run through the switch; with EXCHANGE={exchange} leave it out")


def _check_memory(target: str, program: Program) -> None:
    """Raises BadSetting where this machine's memory does not hold the switch."""
    state, free = SlotState.of(json.loads(program.config)), free_bytes()
    each = state.bmv2_bytes_per_slot if target == "bmv2" else state.bytes_per_slot
    if free is not None and each * program.slots > free:
        raise BadSetting(
            f"SLOTS={program.slots}: {each * program.slots / 1e9:,.1f} GB with TARGET={target}, and "
            f"{free / 1e9:,.1f} GB of memory are free: the largest number that fits is {free // each}"
        )


def _check_racks(racks: int, uplink_mbit: str, mininet: bool, program: str) -> None:
    """Raises BadSetting for settings that need a tree of switches, or that a tree cannot have."""
    if racks == 1:
        if uplink_mbit:
            raise BadSetting(f"UPLINK_MBIT={uplink_mbit} needs RACKS: one switch has no uplink")
        return
    if not mininet:
        raise BadSetting(f"RACKS={racks} needs Mininet: make run-mininet RACKS={racks}")
    if program != "serene":
        raise BadSetting(f"PROGRAM={program} is for a run with one switch; with RACKS={racks} leave it out")


def check(
    *,
    target: str,
    workers: str,
    strategy: str,
    straggler: str,
    steps: str,
    model: str,
    dataset: str,
    data_dir: Path | None,
    link_mbit: str,
    seed: str,
    compute_ms: str,
    program: str,
    mininet: bool,
    out: Path,
    batch_size: str = "32",
    learning_rate: str = "",
    packets: str = "compiled",
    exchange: str = "switch",
    exchange_share: str = "",
    faults: Path | None = None,
    racks: str = "1",
    uplink_mbit: str = "",
    slots: str = "",
) -> Settings:
    """The settings of a run, from the texts of its command line. Raises BadSetting or another SereneError that names
    the valid choices."""
    chosen = chosen_program(program, int(_number("SLOTS", slots, 1, MAX_SLOTS)) if slots else None)
    leaves = int(_number("RACKS", racks, 1, MAX_RACKS))
    _check_racks(leaves, uplink_mbit, mininet, program)
    count = int(_number("WORKERS", workers, leaves, chosen.max_workers if leaves == 1 else leaves * RACK_WORKERS))
    by_rack = Racks.even(count, leaves)
    chooses = automatic_parts(strategy) if strategy.partition(":")[0] == "auto" else None
    if chooses is not None and exchange != "switch":
        raise BadSetting(f"STRATEGY={strategy}: automatic strategies need EXCHANGE=switch")
    meant = parse(strategy, by_rack.worker) if chooses is None else BSP()
    fields = meant.compile(range(count))
    if leaves > 1:
        policies(fields, [by_rack.mask(rack) for rack in range(leaves)])
    check_packets(packets)
    check_exchange(exchange, to_text(meant), count)
    architectures.check_model(model)
    data.check_dataset(dataset)
    stragglers.check_workers(stragglers.parse(straggler), count)
    # Reads the data set, so that missing files are noticed before anything starts.
    parameters = architectures.size(model, data.shape(dataset, data_dir), data.CLASSES)
    if -(-parameters // chosen.lanes) > chosen.slots:
        raise BadSetting(
            f"{model} on {dataset} has {parameters} parameters; {chosen.name} holds {chosen.slots * chosen.lanes} in "
            f"{chosen.slots} slots: expected SLOTS={-(-parameters // chosen.lanes)} or more, or another MODEL"
        )
    try:
        taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    except OSError as error:  # a name that is too long, or a directory that is not ours to look into
        raise BadSetting(f"OUT={out}: {error.strerror}; choose another directory") from None
    if taken:
        raise BadSetting(f"OUT={out} exists already: choose another directory, or remove it")
    if link_mbit and not mininet:
        raise BadSetting("LINK_MBIT needs Mininet: there are no links without it")
    planned = load_faults(faults) if faults is not None else Faults()
    planned.check(count, leaves)
    if planned.packets and not mininet:
        raise BadSetting(f"FAULTS={faults}: faults of packets need Mininet; without it only [[events]] can be played")
    if exchange != "switch":
        _check_baseline(exchange, target, program, slots, packets, faults)
    used = resolve_target(target, mininet) if exchange == "switch" else BASELINE_TARGETS[mininet]
    if slots:
        _check_memory(used, chosen)
    return Settings(
        target=used,
        workers=count,
        strategy=meant,
        automatic=chooses,
        straggler=straggler,
        steps=int(_number("STEPS", steps, 1, 10**6)),
        model=model,
        dataset=dataset,
        data_dir=data_dir,
        link_mbit=_number("LINK_MBIT", link_mbit, 0.1, 1000, whole=False) if link_mbit else None,
        seed=int(_number("SEED", seed, 0, 2**31 - 1)),
        compute_ms=_compute_ms(compute_ms, exchange_share, link_mbit, parameters, chosen),
        program=chosen,
        mininet=mininet,
        out=out,
        batch_size=int(_number("BATCH_SIZE", batch_size, 1, 10**5)),
        learning_rate=_number("LEARNING_RATE", learning_rate, 1e-9, 100, whole=False) if learning_rate else None,
        packets=packets,
        exchange=exchange,
        faults=planned,
        racks=leaves,
        uplink_mbit=_number("UPLINK_MBIT", uplink_mbit, 0.1, 1000, whole=False) if uplink_mbit else None,
        parameters=parameters,
        commit=commit(),
    )
