"""Observes the running program's packets: traces for watchers, and captures of ports.

While packets are observed, the library for tracing serves the ports; otherwise the library without tracing does.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from serene.embedded.control.types import PortError
from serene.embedded.engine import Switch
from serene.embedded.p4runtime.ports import Port
from serene.embedded.program.ir import Program
from serene.embedded.trace.filter import BadFilter, Filter
from serene.embedded.trace.steps import Step
from serene.errors import SereneError

POLL_S = 0.2  # seconds between the reader's checks whether it has to stop
WAITING_STEPS = 1 << 17  # queued steps for one watcher; a slower one loses packets, which are counted
STEP_CHARACTERS = 256  # hexadecimal digits of a packet's bytes that count as one step
MAX_WATCHERS = 8

log = logging.getLogger("serene.switch")
Choose = Callable[[Program], Filter]  # raises BadFilter if the program lacks a name in the filter


@dataclass
class Batch:
    """Traced packets, and the number that were lost because there was no room."""

    packets: list[Step]
    lost: int
    ended: str = ""  # the reason that there will be no more packets


class Watcher:
    """The traced packets that one observer has not read yet."""

    def __init__(
        self, ports: frozenset[int] | None = None, bytes_kept: int = 0, choose: Choose = lambda _: Filter()
    ) -> None:
        self.ports = ports  # None: all
        self.bytes_kept = bytes_kept
        self._choose = choose
        self._chosen = Filter()
        self._ended = ""
        self._packets: deque[Step] = deque()
        self._steps = 0
        self._lost = 0
        self._changed = threading.Condition()

    def begin(self, program: Program) -> None:
        """Adapts to a new program. Its headers may have other names, so the filter is parsed again."""
        try:
            self._chosen = self._choose(program)
        except BadFilter as error:
            with self._changed:
                self._ended = f"the program was replaced, and the new one lacks what was requested: {error}"
                self._changed.notify()

    def offer(self, packet: Step | None, lost: int = 0) -> None:
        wanted = packet is not None and (self.ports is None or packet.values["port"] in self.ports)
        if packet is not None and not (wanted and self._chosen.wants(packet)):
            packet = None
        with self._changed:
            if self._ended:
                return
            self._lost += lost
            if packet is not None:
                written = sum(len(str(step.values["hex"])) for step in packet.all("bytes"))
                steps = packet.count() + written // STEP_CHARACTERS
                if self._steps + steps > WAITING_STEPS:
                    self._lost += 1
                else:
                    self._packets.append(packet)
                    self._steps += steps
            self._changed.notify()

    def take(self, timeout_s: float) -> Batch:
        """Waits for a packet. Returns the packets since the last call."""
        with self._changed:
            self._changed.wait_for(lambda: self._packets or self._lost or self._ended, timeout_s)
            batch = Batch(list(self._packets), self._lost, self._ended)
            self._packets.clear()
            self._lost = self._steps = 0
            return batch


class Observers:
    """All watchers and captures. Callers have the service's lock, except for ``prepare`` and ``log_ended_captures``.
    For ``is_prepared`` they need it only if its answer must be current."""

    def __init__(self, captures: Path | None) -> None:
        self._captures = captures
        self._captured: set[str] = set()  # ports whose files exist: the next program's packets are appended
        self._capturing: tuple[Port, ...] = ()  # ports that are captured at present
        self._watchers: list[Watcher] = []
        self._switch: Switch | None = None
        self._reading: threading.Thread | None = None
        self._stopping = threading.Event()

    def prepare(self, switch: Switch) -> None:
        """Compiles the tracing library of a program that will be observed, before the program starts."""
        if not self.is_prepared(switch):
            switch.prepare_tracing()

    def is_prepared(self, switch: Switch) -> bool:
        """Whether every library that this program needs is compiled."""
        return switch.can_trace or (self._captures is None and not self._watchers)

    def begin(self, switch: Switch, ports: Sequence[Port]) -> None:
        """Called before a program starts; its ports exist."""
        self._switch = switch
        if self._captures is not None:
            for port in ports:
                self._capture(switch, port, self._captures)
            self._capturing = tuple(ports)
            switch.forward_traced(True)
        for watcher in self._watchers:
            watcher.begin(switch.program)
        if self._watchers:
            self._trace()

    def _capture(self, switch: Switch, port: Port, folder: Path) -> None:
        came, left = (folder / f"{port.label}_{end}.pcap" for end in ("in", "out"))
        try:
            switch.capture(port.number, came, left, further=port.label in self._captured)
            self._captured.add(port.label)
        except PortError as error:  # such as on a full disk: forwarding is more important than captures
            log.error("%s: packets of port %s are not captured", error, port)

    def log_ended_captures(self) -> None:
        """Logs captures that have ended. Only the event thread may call it, without the lock."""
        for port in self._capturing:
            assert self._switch is not None
            for how, why in zip(("arrive at", "leave at"), self._switch.captures_ended(port.number), strict=True):
                if why:
                    log.error("packets that %s port %s are not captured any more: %s", how, port, why)

    def end(self) -> None:
        """Called after the program has stopped; its ports still exist."""
        self.log_ended_captures()
        self._capturing = ()
        self._stop_reading()
        self._switch = None

    def add(self, watcher: Watcher) -> None:
        if len(self._watchers) >= MAX_WATCHERS:
            raise TooManyWatchers(f"{MAX_WATCHERS} clients already watch, the maximum")
        self._watchers.append(watcher)
        if self._switch is None:
            return
        watcher.begin(self._switch.program)
        self._stop_reading()
        try:
            self._trace()
        except BaseException:  # this watcher is removed; the others continue
            self.remove(watcher)
            raise

    def remove(self, watcher: Watcher) -> None:
        if watcher not in self._watchers:
            return
        self._watchers.remove(watcher)
        if self._switch is None:
            return
        self._stop_reading()
        if self._watchers:
            self._trace()
        else:
            self._switch.stop_tracing()
            self._switch.forward_traced(self._captures is not None)

    def _trace(self) -> None:
        assert self._switch is not None
        every = [watcher.ports for watcher in self._watchers]
        ports = None if None in every else frozenset().union(*(one for one in every if one is not None))
        self._switch.start_tracing(ports, max(watcher.bytes_kept for watcher in self._watchers))
        self._switch.forward_traced(True)
        self._stopping.clear()
        self._reading = threading.Thread(
            target=self._read, args=(self._switch, tuple(self._watchers)), name="packet-traces", daemon=True
        )
        self._reading.start()

    def _stop_reading(self) -> None:
        self._stopping.set()
        if self._reading is not None:
            self._reading.join()
        self._reading = None

    def _read(self, switch: Switch, watchers: Sequence[Watcher]) -> None:
        ending = False
        while not ending:
            ending = self._stopping.is_set()  # reads the packets that are already there
            packets, lost = switch.read_traces(0 if ending else POLL_S)
            for packet in packets:
                for watcher in watchers:
                    watcher.offer(packet)
            if lost:
                for watcher in watchers:
                    watcher.offer(None, lost)


class TooManyWatchers(SereneError):
    pass
