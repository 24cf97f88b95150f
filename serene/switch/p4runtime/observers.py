"""Who watches the running program's packets: traces for those who asked, and captures by port.

While somebody does, the program that was compiled to trace serves the ports; else the other one, which cannot.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from serene.errors import SereneError
from serene.switch.control import PortError
from serene.switch.engine import Switch
from serene.switch.p4runtime.ports import Port
from serene.switch.program import Program
from serene.switch.trace import Step
from serene.switch.trace_filter import BadFilter, Filter

POLL_S = 0.2  # how long stopping the reader may take
WAITING_STEPS = 1 << 17  # for one watcher; a slower one loses packets, which are counted
STEP_CHARACTERS = 256  # a packet's bytes, in hexadecimal, count as so many steps
MAX_WATCHERS = 8

log = logging.getLogger("serene.switch")
Choose = Callable[[Program], Filter]  # raises BadFilter where a program has not what is asked for


@dataclass
class Batch:
    """Packets that were traced, and how many others were not, for want of room."""

    packets: list[Step]
    lost: int
    ended: str = ""  # why no others will come


class Watcher:
    """What one observer has not read yet."""

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
        """The packets that are offered from now on are this program's: its headers have names of their own."""
        try:
            self._chosen = self._choose(program)
        except BadFilter as error:
            with self._changed:
                self._ended = f"another program runs now, and what was asked for is not in it: {error}"
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
        """What has come since the last call; waits for the first packet."""
        with self._changed:
            self._changed.wait_for(lambda: self._packets or self._lost or self._ended, timeout_s)
            batch = Batch(list(self._packets), self._lost, self._ended)
            self._packets.clear()
            self._lost = self._steps = 0
            return batch


class Observers:
    """The service's lock guards every method but ``prepare``, ``tell_of_captures``, and ``is_prepared`` where a guess
    will do."""

    def __init__(self, captures: Path | None) -> None:
        self._captures = captures
        self._captured: set[str] = set()  # ports whose files are begun: those of the next program follow
        self._capturing: tuple[Port, ...] = ()  # of the program that runs
        self._watchers: list[Watcher] = []
        self._switch: Switch | None = None
        self._reading: threading.Thread | None = None
        self._stopping = threading.Event()

    def prepare(self, switch: Switch) -> None:
        """Compiles a program that somebody will watch, before it has to run."""
        if not self.is_prepared(switch):
            switch.prepare_tracing()

    def is_prepared(self, switch: Switch) -> bool:
        """Whether nothing is left to compile when this program begins."""
        return switch.can_trace or (self._captures is None and not self._watchers)

    def begin(self, switch: Switch, ports: Sequence[Port]) -> None:
        """A program is about to start; its ports are there."""
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
        except PortError as error:  # a full disk: the switch is there for its packets, not for their captures
            log.error("%s: packets of port %s are not captured", error, port)

    def tell_of_captures(self) -> None:
        """Logs those that have ended. Not for two threads at once: that of the events calls it, and it has no lock."""
        for port in self._capturing:
            assert self._switch is not None
            for how, why in zip(("come in by", "leave by"), self._switch.captures_ended(port.number), strict=True):
                if why:
                    log.error("packets that %s port %s are not captured any more: %s", how, port, why)

    def end(self) -> None:
        """The program has stopped; its ports are there."""
        self.tell_of_captures()
        self._capturing = ()
        self._stop_reading()
        self._switch = None

    def add(self, watcher: Watcher) -> None:
        if len(self._watchers) >= MAX_WATCHERS:
            raise TooManyWatchers(f"{MAX_WATCHERS} watch already: no room for another one")
        self._watchers.append(watcher)
        if self._switch is None:
            return
        watcher.begin(self._switch.program)
        self._stop_reading()
        try:
            self._trace()
        except BaseException:  # it is not traced: its place is free, and the others go on
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
            ending = self._stopping.is_set()  # then what is there already is read
            packets, lost = switch.read_traces(0 if ending else POLL_S)
            for packet in packets:
                for watcher in watchers:
                    watcher.offer(packet)
            if lost:
                for watcher in watchers:
                    watcher.offer(None, lost)


class TooManyWatchers(SereneError):
    pass
