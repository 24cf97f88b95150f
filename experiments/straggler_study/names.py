"""What the report calls stragglers, shares, and the ways of gradients: switches and baselines."""

from __future__ import annotations

from typing import NamedTuple

from serene.experiments.straggler_study.cell import Cell
from serene.palette import look

EMBEDDED, BMV2 = "Serene, embedded switch", "Serene, BMv2"
SCAPY = "Serene, scapy workers"
SWITCHES = {EMBEDDED: "the embedded switch", BMV2: "BMv2"}  # and their names in sentences
SERVER, SHARDED, RPC, GLOO = "one parameter server", "sharded servers", "PyTorch's RPC server", "gloo all-reduce"


def way(cell: Cell) -> str:
    """The way of a cell's gradients: what they go through."""
    if cell.exchange != "switch":
        return {"server": SERVER, "sharded": SHARDED, "rpc": RPC, "gloo": GLOO}[cell.exchange]
    if cell.packets == "scapy":
        return SCAPY
    return BMV2 if cell.target == "bmv2" else EMBEDDED


def strategy(cell: Cell) -> str:
    """The strategy's name."""
    return look(cell.strategy).name


def label(cell: Cell) -> str:
    """A cell's way and strategy."""
    return f"{way(cell)}: {strategy(cell)}"


def percent(share: float) -> str:
    """A share, 0 to 1, as text."""
    return f"{100 * share:.0f} %"


def settings(straggler: str) -> dict[str, str]:
    """The settings in a straggler profile's text."""
    return dict(item.split("=") for item in straggler.partition(":")[2].split(",") if item)


def straggler_name(text: str) -> str:
    """A straggler profile in short, for example "slow_worker (p 0.15, +0.5–2.0x)"."""
    name, values = text.partition(":")[0], settings(text)
    if name == "slow_worker" and values["low"] == values["high"]:
        return f"pauses (p {values['probability']}, +{values['low']}x)"
    if name == "slow_worker":
        return f"slow_worker (p {values['probability']}, +{values['low']}–{values['high']}x)"
    if name == "heterogeneous":
        return f"heterogeneous (one worker {values['factor']}x)"
    if name == "failure":
        return f"failure ({values['pause_s']} s at step {values['iteration']})"
    return "no straggler"


class Training(NamedTuple):
    """What a section of the report is about."""

    model: str
    straggler: str
    workers: int

    @classmethod
    def of(cls, cell: Cell) -> Training:
        return cls(cell.model, cell.straggler, cell.workers)

    @property
    def title(self) -> str:
        return f"{self.model}, {straggler_name(self.straggler)}, {self.workers} workers"

    @property
    def key(self) -> str:
        """The name of its pictures, without what they show."""
        return f"{self.model}-{straggler_name(self.straggler).split()[0]}-{self.workers}"
