"""The embedded switch: p4c's BMv2 JSON, compiled to native code and run in process, on UDP ports or on interfaces."""

from serene.native import CompileFailed, CompilerMissing, UnsafeCache
from serene.switch.control import (
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
from serene.switch.engine import Switch
from serene.switch.errors import NotBmv2Json, UnsupportedProgram
from serene.switch.loading import load_program
from serene.switch.program import Program

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
