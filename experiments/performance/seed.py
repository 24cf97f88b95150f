"""The program of the paper's authors on BMv2, as a peer: `make bench SEED_JSON=...`.

Their program is public (ComputerNetworks-UFRGS/serene, p4src/stragglers.p4), but not part of this repository: compile
it with p4c-bm2-ss and give the JSON. As their client does, a worker adds a row of values by an INC packet, which is not
answered, and reads the sums by a READ packet. Their CLOCK, one packet in an iteration, is left out.
"""

from __future__ import annotations

import json
import socket
import struct
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serene.errors import SereneError
from serene.experiments.performance.networks import in_hosts, started
from serene.experiments.performance.parts import BenchFailed, Json, run_parts
from serene.process.interrupts import held
from serene.topologies.nodes import Bmv2Switch
from serene.topologies.star import Star
from serene.wire import SWITCH_IP, SWITCH_MAC

PORT = 8000
READ, INC = 0, 1
VALUES = 32  # in a row, and so in a packet
HEAD = struct.Struct(">HHHB")  # worker, clock, row, action
ROWS = 2485  # 79,510 values
SILENCE_S = 0.2  # after which a packet without an answer counts as lost
READY_S = 20.0  # until the switch answers first


class SeedSwitch(Bmv2Switch):
    """simple_switch_grpc that loads the authors' program itself; it has no controller."""

    def __init__(self, name: str, json_path: Path, **params: Any) -> None:
        super().__init__(name, **params)
        self._json_path = json_path

    def command(self) -> list[str]:
        return [*(word for word in super().command() if word != "--no-p4"), str(self._json_path)]


def check(path: Path) -> None:
    """Raises SereneError unless it is a BMv2 JSON with registers, as p4c-bm2-ss writes it."""
    try:
        registers = json.loads(path.read_text())["register_arrays"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SereneError(
            f"SEED_JSON={path}: expected what p4c-bm2-ss makes of the authors' p4src/stragglers.p4 ({error})"
        ) from None
    if not any(register.get("size", 0) >= ROWS * VALUES for register in registers):
        raise SereneError(f"SEED_JSON={path}: no register of {ROWS * VALUES:,} values, as the authors' program has it")


def rates(path: Path, window: int, repeats: int, seconds: float, patience_s: float) -> tuple[float, ...]:
    """Values a second that one worker in a Mininet host adds and reads, for each repeat of so many ``seconds``. window:
    READs in flight, at most. Raises BenchFailed or NotReady."""
    options = {"window": window, "repeats": repeats, "seconds": seconds}
    with tempfile.TemporaryDirectory() as work:
        kind = partial(SeedSwitch, json_path=path.resolve(), log=Path(work) / "switch.log")
        with started(Star(1, switch="s1"), kind) as net:
            with held():
                net["h1"].setARP(SWITCH_IP, SWITCH_MAC)  # their program answers no ARP
            (result,) = run_parts(in_hosts(net), {0: ("seed", options)}, Path(work), patience_s)
    return tuple(rate * VALUES for rate in result["rows_s"])


class _Rows:
    """One worker's socket, and the packets for each row."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("", PORT))
        self._socket.connect((SWITCH_IP, PORT))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.settimeout(SILENCE_S)
        values = np.arange(1, VALUES + 1, dtype=">i4").tobytes()
        self._inc = [HEAD.pack(0, 0, row, INC) + values for row in range(ROWS)]
        self._read = [HEAD.pack(0, 0, row, READ) for row in range(ROWS)]

    def add_and_read(self, row: int) -> None:
        self._socket.send(self._inc[row])
        self._socket.send(self._read[row])

    def answer(self) -> tuple[int, np.ndarray] | None:
        """A row's number and its sums, int32[VALUES]; None if nothing has come for a while. Raises BenchFailed."""
        try:
            packet = self._socket.recv(2048)
        except TimeoutError:
            return None
        if len(packet) != HEAD.size + 4 * VALUES:
            raise BenchFailed(f"an answer of {len(packet)} bytes; is this the authors' program?")
        return HEAD.unpack_from(packet)[2], np.frombuffer(packet, ">i4", offset=HEAD.size)

    def check(self) -> None:
        """Adds to some rows twice, and checks that what is read is the sum. Raises BenchFailed."""
        until = time.monotonic() + READY_S
        self._socket.send(self._read[0])
        while self.answer() is None:  # the switch may only be starting
            if time.monotonic() > until:
                raise BenchFailed(f"no answer to a READ within {READY_S:g} s; is this the authors' program?")
            self._socket.send(self._read[0])
        while self.answer() is not None:
            pass
        self._socket.settimeout(READY_S)
        for times in (1, 2):
            for row in range(VALUES):
                self.add_and_read(row)
                found = self.answer()
                expected = times * np.arange(1, VALUES + 1)
                if found is None or found[0] != row or not np.array_equal(found[1], expected):
                    raise BenchFailed(f"row {row} was read as {found}; expected {expected.tolist()}")
        self._socket.settimeout(SILENCE_S)

    def rows_s(self, window: int, seconds: float) -> float:
        """Answered rows a second, with ``window`` READs in flight, ROWS at most."""
        began = time.perf_counter()
        sent = answered = 0
        in_flight: set[int] = set()  # rows
        while time.perf_counter() - began < seconds:
            while len(in_flight) < min(window, ROWS):
                self.add_and_read(sent % ROWS)
                in_flight.add(sent % ROWS)
                sent += 1
            answer = self.answer()
            if answer is None:
                in_flight.clear()  # they count as lost
            else:
                answered += 1
                in_flight.discard(answer[0])
        took = time.perf_counter() - began
        while self.answer() is not None:
            pass  # the next measurement begins with nothing in flight
        return answered / took


def host_part(options: Json) -> Json:
    """The part of `make bench` that runs in the host (experiments.performance.hosts)."""
    rows = _Rows()
    rows.check()
    return {"rows_s": [rows.rows_s(options["window"], options["seconds"]) for _ in range(options["repeats"])]}
