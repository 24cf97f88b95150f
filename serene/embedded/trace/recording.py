"""Tracing and capturing packets, by a second compilation of the program that runs on the same state.

The first one has no code for tracing, so a switch that is not traced spends nothing on it.
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
    """Tracing of one switch. To be used by one thread, except ``read_traces``, which may be called from another."""

    _traced: ctypes.CDLL | None = None
    _reader: TraceReader | None = None
    _words: np.ndarray | None = None
    _forwarding: ctypes.CDLL | None = None  # the library whose thread serves the ports; None: the untraced program's
    _runs = False

    def _traced_library(self) -> Path:
        raise NotImplementedError

    @property
    def can_trace(self) -> bool:
        """Whether what tracing needs is compiled."""
        return self._traced is not None

    def prepare_tracing(self) -> None:
        """Compiles what tracing needs; takes seconds the first time a program is seen. Leaves the state alone."""
        with _preparing:
            if self._traced is None:
                self._reader = TraceReader(self.program)
                self._words = np.zeros(RING_WORDS, np.uint64)
                self._traced = typed_library(self._traced_library())

    def start(self) -> None:
        """Starts forwarding between the ports, in a thread of its own."""
        if (self._forwarding or self._lib).switch_start(self._state):
            raise PortError("cannot start the forwarding thread")
        self._runs = True

    def stop(self) -> None:
        self._lib.switch_stop(self._state)
        self._runs = False

    def start_tracing(self, ports: Collection[int] | None = None, bytes_kept: int = 0) -> None:
        """Traces packets that come in by these ports (None: all), with up to so many of their bytes."""
        traced = self._tracer()
        wanted = np.array([ports is None or number in ports for number in range(MAX_PORTS)], np.uint8)
        if traced.switch_trace(self._state, ctypes.c_void_p(wanted.ctypes.data), ctypes.c_uint32(bytes_kept)):
            raise ControlError("not enough memory to trace packets")

    def stop_tracing(self) -> None:
        self._tracer().switch_trace(self._state, None, 0)

    def forward_traced(self, traced: bool) -> None:
        """Chooses which of the two compilations serves the ports: only one of them traces and captures."""
        library = self._tracer() if traced else self._lib
        if library is (self._forwarding or self._lib):
            return
        self._forwarding = library
        if self._runs:  # packets that arrive meanwhile wait in the sockets
            self.stop()
            self.start()

    @contextlib.contextmanager
    def processing_traced(self) -> Iterator[None]:
        """Within, ``process`` and its like run the program that traces."""
        untraced = self._lib
        self._lib = self._tracer()
        try:
            yield
        finally:
            self._lib = untraced

    def read_traces(self, timeout_s: float) -> tuple[Iterator[Step], int]:
        """Waits for a traced packet; returns those since the last call, and how many were lost for want of room."""
        traced = self._tracer()
        assert self._words is not None and self._reader is not None
        used, lost = ctypes.c_size_t(), ctypes.c_uint64()
        words = ctypes.c_void_p(self._words.ctypes.data)
        traced.switch_trace_read(self._state, int(timeout_s * 1000), words, ctypes.byref(used), ctypes.byref(lost))
        return self._reader.packets(self._words[: used.value].tolist()), lost.value

    def capture(self, port: int, came: Path, left: Path, *, further: bool = False) -> None:
        """Writes the port's packets to two pcap files, as long as ``forward_traced``; ``further``: after what
        is in them."""
        error = self._tracer().switch_capture(self._state, port, os.fsencode(came), os.fsencode(left), int(further))
        if error:
            raise PortError(f"cannot write {came} and {left}: {os.strerror(-error)}")

    def captures_ended(self, port: int) -> tuple[str | None, str | None]:
        """Why the files of incoming and of outgoing packets have ended since the last call; None if they have not."""
        errors = (ctypes.c_int * 2)()
        self._tracer().switch_capture_ended(self._state, port, errors)
        came, left = (os.strerror(error) if error else None for error in errors)
        return came, left

    def _tracer(self) -> ctypes.CDLL:
        self.prepare_tracing()
        assert self._traced is not None
        return self._traced
