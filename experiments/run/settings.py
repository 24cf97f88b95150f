"""The settings of a run, checked before anything starts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from serene.controller.automatic import AUTOMATIC, automatic_parts, load_in_time
from serene.experiments.shared.build import commit
from serene.experiments.shared.machine import BMV2 as BMV2
from serene.faults import Faults
from serene.faults import load as load_faults
from serene.process.memory import free_bytes
from serene.program import Program, chosen_program
from serene.racks import MAX_RACKS, RACK_WORKERS, Racks, policies
from serene.settings import BadSetting as BadSetting
from serene.settings import checked, expect, one_of
from serene.slots import MAX_SLOTS, SlotState
from serene.strategy import BSP, Strategy, parse, to_text
from serene.wire import ENCAPSULATION_BYTES, HEADER
from serene.workers import architectures, data, stragglers
from serene.workers.recipe import Recipe, check_exchange

TARGETS = ("auto", "embedded", "bmv2")
BASELINE_TARGETS = {True: "bridge", False: "loopback"}  # a baseline's, with Mininet and without it


def called(name: str, value: object) -> str:
    """``STEPS=0``, as one gives a setting to make."""
    return f"{name.upper()}={value}"


class Given(Recipe):
    """The settings that the command line takes."""

    strategy: str = Field(
        default="bsp", description="bsp, ssp:S, asp, quorum:K, mixed:W,W or auto[:NAME[:KEY=VALUE,...]]"
    )
    target: Annotated[str, one_of(TARGETS)] = Field(default="auto", description="auto, embedded or bmv2")
    racks: int = Field(
        default=1,
        ge=1,
        le=MAX_RACKS,
        description="number of racks; with several, each has a leaf switch below one root",
    )
    uplink_mbit: float | None = Field(
        default=None, ge=0.1, le=1000, description="rate of each leaf's link to the root in Mbit/s; default: unlimited"
    )
    link_mbit: float | None = Field(
        default=None, ge=0.1, le=1000, description="rate of each host's link in Mbit/s; default: unlimited"
    )
    exchange_share: float | None = Field(
        default=None, ge=0.01, le=0.99,
        description="communication's share of a step, 0.01 to 0.99; sets the compute time instead of --compute-ms",
    )  # fmt: skip
    program: str = Field(default="serene", description="serene (MTU 1500), serene_jumbo, or a path to a .json")
    slots: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SLOTS,
        description="slots of the switch (default: the compiled program's)",
    )
    faults: Path | None = Field(default=None, description="fault file (docs/faults.md)")
    out: Path = Field(default=Path(), description="directory for the results (default runs/DATE-STRATEGY)")
    mininet: bool = True


class Settings(Recipe):
    """The settings of one training run, as `check` returns them. ``target``: the one that is used. ``link_mbit``,
    ``uplink_mbit``: None: unlimited. ``racks``: with more than one, each has a leaf switch in a tree. ``automatic``:
    the automatic strategy and its parameters. ``parameters``: size of the model. ``commit``: of the checkout, when the
    settings were checked."""

    target: str
    strategy: Strategy
    program: Program
    mininet: bool
    out: Path
    link_mbit: float | None
    uplink_mbit: float | None
    faults: Faults
    racks: int
    parameters: int
    automatic: tuple[str, dict[str, object]] | None
    commit: str | None

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
    installed = shutil.which(BMV2) is not None
    if target == "bmv2":
        if not mininet:
            raise BadSetting("TARGET=bmv2 needs Mininet: without it only the embedded switch can be used")
        if not installed:
            raise BadSetting(f"TARGET=bmv2: {BMV2} is not installed; use TARGET=embedded, or see docs/switches.md")
    if target == "auto":
        return "bmv2" if installed and mininet else "embedded"
    return target


def computing_ms(share: float, link_mbit: float, parameters: int, program: Program) -> float:
    """Milliseconds that an iteration computes, if the exchange through the switch at the link's rate is so large a
    share (0 to 1) of a step."""
    frames = -(-parameters // program.lanes)
    bits = 8 * frames * (ENCAPSULATION_BYTES + HEADER.itemsize + 4 * program.lanes)
    return 1e-3 * bits / link_mbit * (1 - share) / share


def _check_baseline(given: Given) -> None:
    """Raises BadSetting for settings of the switch: without a switch they would be ignored."""
    for name in ("target", "program", "slots", "packets", "faults"):
        if (value := getattr(given, name)) != Given.model_fields[name].default:
            raise BadSetting(
                f"{called(name, value)} is for a run through the switch; with EXCHANGE={given.exchange} leave it out"
            )


def _check_memory(target: str, program: Program) -> None:
    """Raises BadSetting where this machine's memory does not hold the switch."""
    state, free = SlotState.of(json.loads(program.config)), free_bytes()
    each = state.bmv2_bytes_per_slot if target == "bmv2" else state.bytes_per_slot
    if free is not None and each * program.slots > free:
        raise BadSetting(
            f"SLOTS={program.slots}: {each * program.slots / 1e9:,.1f} GB with TARGET={target}, and "
            f"{free / 1e9:,.1f} GB of memory are free: the largest number that fits is {free // each}"
        )


def _check_links(given: Given) -> None:
    """Raises BadSetting for settings that need a tree of switches, or links, or that a tree cannot have."""
    if given.racks == 1:
        if given.uplink_mbit:
            raise BadSetting(f"UPLINK_MBIT={given.uplink_mbit:g} needs RACKS: one switch has no uplink")
    elif not given.mininet:
        raise BadSetting(f"RACKS={given.racks} needs Mininet: make run-mininet RACKS={given.racks}")
    elif given.program != "serene":
        raise BadSetting(f"PROGRAM={given.program} is for a run with one switch; with RACKS={given.racks} leave it out")
    if given.link_mbit and not given.mininet:
        raise BadSetting("LINK_MBIT needs Mininet: there are no links without it")
    if given.exchange_share and not given.link_mbit:
        raise BadSetting(
            f"EXCHANGE_SHARE={given.exchange_share:g} needs LINK_MBIT, from which communication time is computed"
        )


def _check_out(out: Path) -> None:
    try:
        taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    except OSError as error:  # a name that is too long, or a directory that is not ours to look into
        raise BadSetting(f"OUT={out}: {error.strerror}; choose another directory") from None
    if taken:
        raise BadSetting(f"OUT={out} exists already: choose another directory, or remove it")


def check(**settings: object) -> Settings:
    """The settings of a run, from those of `Given` that are given, which may be text. Raises BadSetting or another
    SereneError that names the valid choices."""
    given = checked(Given, settings, called)
    program = chosen_program(given.program, given.slots)
    _check_links(given)
    most = program.max_workers if given.racks == 1 else given.racks * RACK_WORKERS
    expect(called, "workers", given.workers, given.racks, most)
    by_rack = Racks.even(given.workers, given.racks)
    automatic = automatic_parts(given.strategy) if given.strategy.partition(":")[0] == "auto" else None
    if automatic is not None and given.exchange != "switch":
        raise BadSetting(f"STRATEGY={given.strategy}: automatic strategies need EXCHANGE=switch")
    if automatic is None:
        strategy = parse(given.strategy, by_rack.worker, ("auto", f"{AUTOMATIC}NAME", f"{AUTOMATIC}FILE.py:NAME"))
    else:
        load_in_time(*automatic)  # so that what is wrong with it is noticed before anything starts
        strategy = BSP()
    fields = strategy.compile(range(given.workers))
    if given.racks > 1:
        policies(fields, [by_rack.mask(rack) for rack in range(given.racks)])
    check_exchange(given.exchange, to_text(strategy), given.workers)
    stragglers.check_workers(stragglers.parse(given.straggler), given.workers)
    # Reads the data set, so that missing files are noticed before anything starts.
    parameters = architectures.size(given.model, data.shape(given.dataset, given.data_dir), data.CLASSES)
    if -(-parameters // program.lanes) > program.slots:
        raise BadSetting(
            f"{given.model} on {given.dataset} has {parameters} parameters; {program.name} holds "
            f"{program.slots * program.lanes} in {program.slots} slots: expected "
            f"SLOTS={-(-parameters // program.lanes)} or more, or another MODEL"
        )
    _check_out(given.out)
    faults = load_faults(given.faults) if given.faults is not None else Faults()
    faults.check(given.workers, given.racks)
    if faults.packets and not given.mininet:
        raise BadSetting(
            f"FAULTS={given.faults}: faults of packets need Mininet; without it only [[events]] can be played"
        )
    if given.exchange == "switch":
        target = resolve_target(given.target, given.mininet)
    else:
        _check_baseline(given)
        target = BASELINE_TARGETS[given.mininet]
    if given.slots:
        _check_memory(target, program)
    resolved: dict[str, Any] = {
        "target": target, "strategy": strategy, "automatic": automatic, "program": program, "faults": faults,
        "parameters": parameters, "commit": commit(),
    }  # fmt: skip
    # That of the exchange through the switch, whatever the run's own is: runs with the same share compute for as long.
    if given.exchange_share and given.link_mbit:
        resolved["compute_ms"] = computing_ms(given.exchange_share, given.link_mbit, parameters, program)
    same = {name: getattr(given, name) for name in Settings.model_fields if name in Given.model_fields}
    return Settings(**same | resolved)
