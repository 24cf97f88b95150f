"""The base class of the switch's control plane: the loaded library, its state, and conversions of numbers to limbs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from serene.embedded.control.types import ControlError, NoSuchName
from serene.embedded.program.ir import Program, limbs_of, mask
from serene.errors import choices

T = TypeVar("T")
MAX_PORTS = 512  # as in runtime/switch.h


def limbs(value: int, width: int) -> list[int]:
    return [(value >> (64 * i)) & mask(64) for i in range(limbs_of(width))]


def limb_array(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * max(len(values), 1))(*values)


def integer(parts: Sequence[int]) -> int:
    value = 0
    for limb in reversed(parts):
        value = value << 64 | int(limb)
    return value


def named(objects: Mapping[str, T], name: str, what: str) -> T:
    """Looks up an object by name. Raises NoSuchName, which lists the valid names."""
    if name not in objects:
        raise NoSuchName(f"the program has no {what} {name!r}; it has {choices(sorted(objects)) or 'none'}")
    return objects[name]


def typed_library(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.switch_create.restype = ctypes.c_void_p
    library.switch_output_items.restype = ctypes.c_void_p
    library.switch_output_bytes.restype = ctypes.c_void_p
    library.switch_lost_events.restype = ctypes.c_uint64
    library.switch_read.restype = ctypes.c_size_t
    return library


class Loaded:
    """A program's library with one instance of its state."""

    def __init__(self, program: Program, library: Path, *, cpu_port: int | None, drop_port: int, seed: int) -> None:
        self.program = program
        self.cpu_port = cpu_port
        self.drop_port = drop_port
        self._lib = typed_library(library)
        self._state: ctypes.c_void_p | None = None
        state = self._lib.switch_create(-1 if cpu_port is None else cpu_port, drop_port, ctypes.c_uint64(seed))
        if not state:
            raise ControlError("not enough memory for the program's tables and registers")
        self._state = ctypes.c_void_p(state)

    def close(self) -> None:
        if self._state is not None:
            self._lib.switch_destroy(self._state)
            self._state = None

    def __del__(self) -> None:
        if getattr(self, "_state", None) is not None:
            self.close()
