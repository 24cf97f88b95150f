"""The control plane's access to counters, meters and registers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from serene.embedded.control.loaded import Loaded, limb_array, limbs, named
from serene.embedded.control.types import ControlError, CounterValue, MeterRates
from serene.embedded.program.crcs import DEFAULTS, WIDTHS, Crc
from serene.embedded.program.ir import Array, limbs_of, mask
from serene.embedded.program.limits import MOST_VALUES

PART_BYTES = 1 << 20  # copied or searched at a time, so that memory never has a large array twice


def _register_type(width: int) -> type[np.unsignedinteger]:
    return next((t for bits, t in ((8, np.uint8), (16, np.uint16), (32, np.uint32)) if width <= bits), np.uint64)


def _parts(size: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Yields (first cell, number of cells) of each part."""
    step = max(PART_BYTES // row_bytes, 1)
    for first in range(0, size, step):
        yield first, min(step, size - first)


class ArrayControl(Loaded):
    def counter_read(self, counter: str, index: int) -> CounterValue:
        return self.counter_read_all(counter, index, 1)[0]

    def counter_read_all(self, counter: str, first: int = 0, count: int | None = None) -> list[CounterValue]:
        return [CounterValue(*row) for row in self._counter_rows(counter, first, count).tolist()]

    def _counter_rows(self, counter: str, first: int, count: int | None) -> np.ndarray:
        """uint64[cells, 2]: packets and bytes."""
        array = self._indexed(self.program.counters, "counter", counter, first, count)
        rows = np.zeros((array.size - first if count is None else count, 2), np.uint64)
        self._lib.switch_count(self._state, array.id, first, len(rows), 0, rows.ctypes.data_as(ctypes.c_void_p))
        return rows

    def _counter_parts(self, counter: str) -> Iterator[tuple[int, np.ndarray]]:
        for first, count in _parts(named(self.program.counters, counter, "counter").size, 16):
            yield first, self._counter_rows(counter, first, count)

    def counter_used(self, counter: str) -> bool:
        """Whether any cell of the counter is not 0."""
        return any(rows.any() for _, rows in self._counter_parts(counter))

    def counter_copy(self, counter: str, source: ArrayControl) -> None:
        """Copies all cells of another switch's counter of the same name and size."""
        array = named(self.program.counters, counter, "counter")
        if named(source.program.counters, counter, "counter").size != array.size:
            raise ControlError(f"counter {counter!r} has another size in the other program")
        for first, rows in source._counter_parts(counter):
            self._lib.switch_count(self._state, array.id, first, len(rows), 2, rows.ctypes.data_as(ctypes.c_void_p))

    def counter_write(self, counter: str, index: int, value: CounterValue, count: int = 1) -> None:
        """Sets ``count`` cells to this value, from ``index`` on."""
        array = self._indexed(self.program.counters, "counter", counter, index, count)
        pair = (ctypes.c_uint64 * 2)(value.packets, value.bytes)
        self._lib.switch_count(self._state, array.id, index, count, 1, pair)

    def meter_set(self, meter: str, index: int, rates: MeterRates | None, count: int = 1) -> None:
        """Configures ``count`` cells of a meter, from ``index`` on. With ``None`` everything passes as green. For a
        direct meter the index is an entry handle."""
        array = self._indexed(self.program.meters, "meter", meter, index, count)
        if rates is None:
            self._lib.switch_meter(self._state, array.id, index, count, None, None)
            return
        per_us = (ctypes.c_double * 2)(rates.committed_rate / 1e6, rates.peak_rate / 1e6)
        bursts = (ctypes.c_double * 2)(rates.committed_burst, rates.peak_burst)
        self._lib.switch_meter(self._state, array.id, index, count, per_us, bursts)

    def crc_set(self, calculation: str, crc: Crc | int) -> None:
        """Sets the CRC of a hash of algorithm crc16_custom or crc32_custom, by the calculation's name in the JSON. With
        only a polynomial, the other parameters have their initial values."""
        crcs = self.program.crcs
        algorithm = named(crcs, calculation, "calculation with a CRC of its own")
        bits = WIDTHS[algorithm]
        if isinstance(crc, int):
            crc = replace(DEFAULTS[algorithm], polynomial=crc)
        if not crc.fits(bits):
            raise ControlError(f"calculation {calculation!r}: polynomial, initial and final value have {bits} bits")
        numbers = [ctypes.c_uint64(each) for each in (crc.polynomial, crc.initial_remainder, crc.final_xor_value)]
        self._lib.switch_crc(
            self._state, list(crcs).index(calculation), *numbers, int(crc.data_reflected), int(crc.remainder_reflected)
        )

    def register_read(self, register: str, index: int) -> int:
        return self.register_read_all(register, index, 1)[0]

    def register_read_all(self, register: str, first: int = 0, count: int | None = None) -> list[int]:
        rows = self._register_rows(register, first, count)
        if rows.shape[1] == 1:
            return rows[:, 0].tolist()  # type: ignore[no-any-return]
        return [int.from_bytes(row.tobytes(), "little") for row in rows.astype("<u8", copy=False)]

    def _register_rows(self, register: str, first: int, count: int | None) -> np.ndarray:
        array = self._indexed(self.program.registers, "register", register, first, count)
        count = array.size - first if count is None else count
        rows = np.zeros((count, limbs_of(array.width)), _register_type(array.width))
        self._lib.switch_register(self._state, array.id, first, count, 0, rows.ctypes.data_as(ctypes.c_void_p))
        return rows

    def _register_parts(self, register: str) -> Iterator[tuple[int, np.ndarray]]:
        array = named(self.program.registers, register, "register")
        row_bytes = limbs_of(array.width) * np.dtype(_register_type(array.width)).itemsize
        for first, count in _parts(array.size, row_bytes):
            yield first, self._register_rows(register, first, count)

    def register_used(self, register: str) -> bool:
        """Whether any cell is not 0."""
        return any(rows.any() for _, rows in self._register_parts(register))

    def register_copy(self, register: str, source: ArrayControl) -> None:
        """All cells of another switch's register of the same name, size and width."""
        array = named(self.program.registers, register, "register")
        other = named(source.program.registers, register, "register")
        if (other.size, other.width) != (array.size, array.width):
            raise ControlError(f"register {register!r} has another size or width in the other program")
        for first, rows in source._register_parts(register):
            pointer = rows.ctypes.data_as(ctypes.c_void_p)
            self._lib.switch_register(self._state, array.id, first, len(rows), 2, pointer)

    def register_write(self, register: str, index: int, value: int, count: int = 1) -> None:
        """Sets ``count`` cells to this value, from ``index`` on."""
        array = self._indexed(self.program.registers, "register", register, index, count)
        if value < 0 or value > mask(array.width):
            raise ControlError(f"register {register!r}: {value} does not fit {array.width} bits")
        row = np.array(limbs(value, array.width), np.uint64).astype(_register_type(array.width))
        self._lib.switch_register(self._state, array.id, index, count, 1, row.ctypes.data_as(ctypes.c_void_p))

    def value_set_write(self, value_set: str, values: Sequence[int]) -> None:
        """Replaces the members of a parser's value set. A member of several fields is their concatenation."""
        bits = named(self.program.value_sets, value_set, "value set")
        if len(set(values)) > MOST_VALUES:
            raise ControlError(f"value set {value_set!r}: {len(values)} values; at most {MOST_VALUES}")
        parts: list[int] = []
        for value in dict.fromkeys(values):
            if value < 0 or value > mask(bits):
                raise ControlError(f"value set {value_set!r}: {value} does not fit {bits} bits")
            parts += limbs(value, bits)
        number = list(self.program.value_sets).index(value_set)
        self._lib.switch_value_set(self._state, number, limb_array(parts), len(set(values)))

    def _indexed(self, arrays: Mapping[str, Array], what: str, name: str, index: int, count: int | None = 1) -> Array:
        """The array of this name, which must have ``count`` cells from ``index`` on (None: all from there)."""
        array = named(arrays, name, what)
        size = array.size
        if array.direct_table is not None:
            size = self.program.tables[array.direct_table].size
        last = index + (count or 1) - 1 if size or count is not None else -1
        if index < 0 or last >= size:
            raise ControlError(f"{what} {name!r} has the indices 0 to {size - 1}, not {max(index, last)}")
        return array
