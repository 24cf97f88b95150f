"""The embedded switch: p4c's BMv2 JSON, compiled to native code, with ports on UDP, shared memory or interfaces."""

from serene.embedded.control.types import (
    ControlError,
    CounterValue,
    Digest,
    DuplicateEntry,
    Events,
    Exact,
    Lpm,
    Match,
    MeterRates,
    NoSuchEntry,
    NoSuchName,
    Optional,
    PortCounts,
    PortError,
    Range,
    TableFull,
    Ternary,
)
from serene.embedded.engine import Switch
from serene.embedded.program.errors import NotBmv2Json, UnsupportedProgram
from serene.embedded.program.ir import Program
from serene.embedded.program.loading import load_program
from serene.native import CompileFailed, CompilerMissing, UnsafeCache

__all__ = [
    "CompileFailed",
    "CompilerMissing",
    "ControlError",
    "CounterValue",
    "Digest",
    "DuplicateEntry",
    "Events",
    "Exact",
    "Lpm",
    "Match",
    "MeterRates",
    "NoSuchEntry",
    "NoSuchName",
    "NotBmv2Json",
    "Optional",
    "PortCounts",
    "PortError",
    "Program",
    "Range",
    "Switch",
    "TableFull",
    "Ternary",
    "UnsafeCache",
    "UnsupportedProgram",
    "load_program",
]
