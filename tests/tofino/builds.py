"""p4c's output for the Tofino sources, for each chip."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.programs import P4SRC, TOFINO_VARIABLE
from tests.tofino.p4text import Module, parse

CONSTANT = r"const bit<9> (\w+) = (\d+);"


@dataclass(frozen=True)
class Build:
    """The output for a chip. program: as p4c's frontend printed it, which has folded the constants. ports: the chip's
    own, by their names in the sources."""

    chip: str
    program: Path
    ports: dict[str, int]

    @property
    def directory(self) -> Path:
        return P4SRC / "build" / self.chip

    @cached_property
    def module(self) -> Module:
        return parse(self.program.read_text())


def _builds() -> list[Build]:
    chips = ("tofino2", "tofino")  # in the order in which tna/sizes.p4 has their ports
    sizes = (P4SRC / "tna" / "sizes.p4").read_text()
    ports = [dict(re.findall(CONSTANT, part)) for part in sizes[sizes.index("const bit<9>") :].split("#else\n")]
    return [
        Build(chip, P4SRC / "build" / chip / "serene.p4", {name: int(port) for name, port in own.items()})
        for chip, own in zip(chips, ports, strict=True)
    ]


def chosen() -> list[Build]:
    """Those to be tested: both, or, for `make mutants`, that of Tofino 1 with the program that it names."""
    tofino_2, tofino_1 = _builds()
    named = os.environ.get(TOFINO_VARIABLE)
    return [tofino_1, tofino_2] if named is None else [Build(tofino_1.chip, Path(named), tofino_1.ports)]
