"""Traces and captures packets, with a second compilation of the program that uses the same state.

The first one has no code for tracing, so an untraced switch has no overhead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from serene.embedded.control.loaded import MAX_PORTS, Loaded, typed_library
from serene.embedded.control.types import ControlError, PortError
from serene.embedded.trace.steps import Step, TraceReader

RING_WORDS = 1 << 19  # as in runtime/trace.h
_preparing = threading.Lock()


class Tracing(Loaded):
    """Tracing of one switch. Only one thread may use it, but another thread may call ``read_traces``."""

    _traced: ctypes.CDLL | None = None
    _reader: TraceReader | None = None
    _words: np.ndarray | None = None
    _forwarding: ctypes.CDLL | None = None  # library whose thread serves the ports; None: the untraced program's
    _runs = False

    def _traced_library(self) -> Path:
        raise NotImplementedError

    @property
    def can_trace(self) -> bool:
        """Whether the library for tracing is compiled."""
        return self._traced is not None

    def prepare_tracing(self) -> None:
        """Compiles the library for tracing, which takes seconds for a new program. The state does not change."""
        with _preparing:
            if self._traced is None:
                self._reader = TraceReader(self.program)
                self._words = np.zeros(RING_WORDS, np.uint64)
                self._traced = typed_library(self._traced_library())

    def start(self) -> None:
        """Starts forwarding between the ports, in a separate thread."""
        if (self._forwarding or self._lib).switch_start(self._state):
            raise PortError("cannot start the forwarding thread")
        self._runs = True

    def stop(self) -> None:
        self._lib.switch_stop(self._state)
        self._runs = False

    def start_tracing(self, ports: Collection[int] | None = None, bytes_kept: int = 0) -> None:
        """Traces packets that arrive at these ports (None: all). bytes_kept: recorded bytes of each packet."""
        traced = self._tracer()
        wanted = np.array([ports is None or number in ports for number in range(MAX_PORTS)], np.uint8)
        if traced.switch_trace(self._state, ctypes.c_void_p(wanted.ctypes.data), ctypes.c_uint32(bytes_kept)):
            raise ControlError("not enough memory to trace packets")

    def stop_tracing(self) -> None:
        self._tracer().switch_trace(self._state, None, 0)

    def forward_traced(self, traced: bool) -> None:
        """Selects the compilation that serves the ports. Only one of the two traces and captures."""
        library = self._tracer() if traced else self._lib
        if library is (self._forwarding or self._lib):
            return
        self._forwarding = library
        if self._runs:  # packets that arrive meanwhile wait at the sockets
            self.stop()
            self.start()

    @contextlib.contextmanager
    def processing_traced(self) -> Iterator[None]:
        """Inside the context, ``process`` and similar functions run the program that traces."""
        untraced = self._lib
        self._lib = self._tracer()
        try:
            yield
        finally:
            self._lib = untraced

    def read_traces(self, timeout_s: float) -> tuple[Iterator[Step], int]:
        """Waits for a traced packet. Returns the packets since the last call, and the number that were lost because
        there was no room."""
        traced = self._tracer()
        assert self._words is not None and self._reader is not None
        used, lost = ctypes.c_size_t(), ctypes.c_uint64()
        words = ctypes.c_void_p(self._words.ctypes.data)
        traced.switch_trace_read(self._state, int(timeout_s * 1000), words, ctypes.byref(used), ctypes.byref(lost))
        return self._reader.packets(self._words[: used.value].tolist()), lost.value

    def capture(self, port: int, came: Path, left: Path, *, further: bool = False) -> None:
        """Writes the port's packets to two pcap files while ``forward_traced`` is on; ``further``: appends to the
        files."""
        error = self._tracer().switch_capture(self._state, port, os.fsencode(came), os.fsencode(left), int(further))
        if error:
            raise PortError(f"cannot write {came} and {left}: {os.strerror(-error)}")

    def captures_ended(self, port: int) -> tuple[str | None, str | None]:
        """The errors with which the files of arriving and leaving packets have ended since the last call; None for a
        file that has not ended."""
        errors = (ctypes.c_int * 2)()
        self._tracer().switch_capture_ended(self._state, port, errors)
        came, left = (os.strerror(error) if error else None for error in errors)
        return came, left

    def _tracer(self) -> ctypes.CDLL:
        self.prepare_tracing()
        assert self._traced is not None
        return self._traced
