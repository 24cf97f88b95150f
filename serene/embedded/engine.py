"""The embedded switch as a Python object: a compiled program, its tables and its ports.

    switch = Switch.load("p4src/build/serene.json")
    switch.process(1, frame)            # -> [(port, frame), ...]
    switch.process(1, frame, trace=True)    # -> ([(port, frame), ...], the trace)

Names are those of the BMv2 JSON; numbers are ints of any width. Only packets given to ``process``, and those to or from
the CPU port, pass through Python.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, overload

import numpy as np

from serene.embedded.codegen.generate import generate
from serene.embedded.control.arrays import ArrayControl
from serene.embedded.control.loaded import MAX_PORTS, integer
from serene.embedded.control.profiles import ProfileControl
from serene.embedded.control.types import ControlError, Digest, Events, PortCounts, PortError
from serene.embedded.program.ir import Program, limbs_of
from serene.embedded.program.loading import parse_program, read_program
from serene.embedded.program.memory import check_memory
from serene.embedded.trace.recording import Tracing
from serene.embedded.trace.steps import Step
from serene.native import compile_source

RUNTIME = Path(__file__).with_name("runtime")
RING_BYTES = 4 << 20  # as in runtime/switch.h
MAX_GROUPS = 65536
MAX_SESSIONS = 32768
MAX_FRAME = 65536
LONGEST_PATH = 107  # of a UNIX socket
MAX_REPLICAS = 32768  # of a multicast group or clone session
OUTPUT = np.dtype([("port", np.uint32), ("length", np.uint32), ("offset", np.uint64)])  # as in runtime/switch.h


@lru_cache(maxsize=4)
def _generated(label: str, json: bytes) -> tuple[Program, str]:
    """A program and its C source. They are cached, because the same program is often loaded again, such as when the
    controller restarts."""
    program = parse_program(label, json)
    return program, generate(program)


class Switch(ProfileControl, ArrayControl, Tracing):
    """A program with its state. Only one thread at a time may process packets; control-plane calls are possible at any
    time."""

    def __init__(self, program: Program, library: Path, *, cpu_port: int | None, drop_port: int, seed: int) -> None:
        super().__init__(program, library, cpu_port=cpu_port, drop_port=drop_port, seed=seed)
        self._compiler_flags: tuple[str, ...] = ()
        self._event_buffers = [ctypes.create_string_buffer(RING_BYTES) for _ in range(2)]
        self.initial_entries = {table.name: self._install_initial(table) for table in program.tables.values()}

    @classmethod
    def load(
        cls,
        json: str | Path | bytes,
        *,
        cpu_port: int | None = 255,
        drop_port: int = 511,
        seed: int = 0,
        compiler_flags: tuple[str, ...] = (),
    ) -> Switch:
        """Loads p4c's output for BMv2, and compiles it when it is loaded for the first time.

        Raises NotBmv2Json, UnsupportedProgram, NoMemory, CompilerMissing or CompileFailed, all SereneError.
        """
        program, source = _generated(*read_program(json))
        check_memory(program)
        library = compile_source(source, compiler_flags, RUNTIME)
        switch = cls(program, library, cpu_port=cpu_port, drop_port=drop_port, seed=seed)
        switch._compiler_flags = compiler_flags
        return switch

    def _traced_library(self) -> Path:
        return compile_source(generate(self.program), (*self._compiler_flags, "-DTRACE"), RUNTIME)

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- packets ---------------------------------------------------------------------------------------------

    @overload
    def process(self, port: int, packet: bytes, *, trace: Literal[False] = False) -> list[tuple[int, bytes]]: ...

    @overload
    def process(self, port: int, packet: bytes, *, trace: Literal[True]) -> tuple[list[tuple[int, bytes]], Step]: ...

    def process(
        self, port: int, packet: bytes, *, trace: bool = False
    ) -> list[tuple[int, bytes]] | tuple[list[tuple[int, bytes]], Step]:
        """Processes one packet. Returns all outputs, including packets to the CPU port.

        With ``trace``, also returns the trace as a tree of steps (trace/steps.py; trace/text.py prints it). The first
        trace takes seconds, because the program is compiled a second time.
        """
        if not trace:
            return self.process_many([(port, packet)])[0]
        if not 0 <= port < MAX_PORTS:
            raise ControlError(f"a packet on port {port}: traces are of ports 0 to {MAX_PORTS - 1}")
        self.start_tracing()
        try:
            with self.processing_traced():
                outputs = self.process_many([(port, packet)])[0]
        finally:
            steps = list(self.read_traces(0)[0])
            self.stop_tracing()
        return outputs, steps[-1]

    def process_many(self, packets: Sequence[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
        """Processes packets in order. Returns each packet's outputs."""
        lengths = np.fromiter((len(packet) for _, packet in packets), np.uint32, len(packets))
        ports = np.fromiter((port for port, _ in packets), np.uint32, len(packets))
        data = np.frombuffer(b"".join(packet for _, packet in packets) + b"\0", np.uint8)
        until, items, payload = self.process_batch(ports, lengths, data)
        results, start = [], 0
        for end in until.tolist():
            results.append([(int(p), payload[o : o + n].tobytes()) for p, n, o in items[start:end].tolist()])
            start = end
        return results

    def process_batch(
        self, ports: np.ndarray, lengths: np.ndarray, data: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As ``process_many``, without a Python object for each packet.

        ports, lengths: uint32[n]; data: uint8, the packets end to end. Returns three arrays. The first is uint32[n],
        the number of outputs after each packet. The second has the outputs (port, length, offset). The third has the
        bytes that the offsets refer to, and is valid until the next call.
        """
        if len(lengths) and int(lengths.max()) > MAX_FRAME:
            raise ControlError(f"a packet of {int(lengths.max())} bytes; the largest is {MAX_FRAME}")
        until = np.zeros(len(lengths), np.uint32)
        self._lib.switch_process(
            self._state,
            ctypes.c_uint32(len(lengths)),
            *(ctypes.c_void_p(array.ctypes.data) for array in (ports, lengths, data, until)),
        )
        count = int(until[-1]) if len(until) else 0
        if not count:
            return until, np.zeros(0, OUTPUT), np.zeros(0, np.uint8)
        raw = (ctypes.c_uint8 * (count * OUTPUT.itemsize)).from_address(self._lib.switch_output_items(self._state))
        items = np.frombuffer(memoryview(raw), OUTPUT)
        size = int(items[-1]["offset"]) + int(items[-1]["length"])
        buffer = (ctypes.c_uint8 * size).from_address(self._lib.switch_output_bytes(self._state))
        return until, items, np.frombuffer(memoryview(buffer), np.uint8)

    # -- replication -----------------------------------------------------------------------------------------

    def multicast_set(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Sets a multicast group's replicas, (port, egress_rid) pairs, in place of earlier ones."""
        if not 0 < group < MAX_GROUPS:
            raise ControlError(f"multicast groups are 1 to {MAX_GROUPS - 1}, not {group}")
        self._replicas(0, group, replicas, 0)

    def multicast_delete(self, group: int) -> None:
        self._lib.switch_replicas(self._state, 0, group, None, -1, 0)

    def clone_session_set(
        self, session: int, replicas: Sequence[tuple[int, int]], truncate: int = 0, class_of_service: int = 0
    ) -> None:
        """Sets a clone session's replicas, (port, egress_rid) pairs. ``class_of_service`` has no meaning on this
        switch."""
        if not 0 < session < MAX_SESSIONS:
            raise ControlError(f"clone sessions are 1 to {MAX_SESSIONS - 1}, not {session}")
        self._replicas(1, session, replicas, truncate)

    def clone_session_delete(self, session: int) -> None:
        self._lib.switch_replicas(self._state, 1, session, None, -1, 0)

    def _replicas(self, kind: int, id_: int, replicas: Sequence[tuple[int, int]], truncate: int) -> None:
        if len(replicas) > MAX_REPLICAS:
            raise ControlError(f"{len(replicas)} replicas; at most {MAX_REPLICAS}")
        pairs = (ctypes.c_uint32 * max(2 * len(replicas), 1))(*(part for pair in replicas for part in pair))
        if self._lib.switch_replicas(self._state, kind, id_, pairs, len(replicas), truncate):
            raise ControlError("not enough memory for the replicas")

    # -- live ports ------------------------------------------------------------------------------------------

    def add_interface(self, port: int, interface: str, *, join_udp: bool = False) -> None:
        """Attaches a network interface; needs CAP_NET_RAW.

        With ``join_udp``, runs of UDP packets that leave together are passed to the kernel as one buffer, as with UDP
        segmentation offload. This takes far fewer system calls. The packets of a run have the same receiver, the same
        size and no checksum. The kernel segments the buffer if the receiver does not accept it. It then fills in
        checksums and increasing IPv4 ids.
        """
        self._check_port(port)
        error = self._lib.switch_port_interface(self._state, port, interface.encode(), int(join_udp))
        if error == -errno.EPERM:
            raise PortError(f"no permission to open {interface!r}: run as root, or use UDP ports")
        if error:
            raise PortError(f"cannot open interface {interface!r}: {os.strerror(-error)}")

    def add_udp(self, port: int, local: tuple[str, int], peer: tuple[str, int] | None = None) -> None:
        """Adds a port whose frames are in UDP datagrams. Without ``peer``, the first sender becomes the peer."""
        self._check_port(port)
        host, number = peer or ("", 0)
        error = self._lib.switch_port_udp(
            self._state, port, local[0].encode(), ctypes.c_uint16(local[1]), host.encode(), ctypes.c_uint16(number)
        )
        if error:
            raise PortError(f"cannot open UDP port {local[0]}:{local[1]}: {os.strerror(-error)}")

    def add_shm(self, port: int, path: str | Path) -> None:
        """Adds a port of memory shared with one process at a time, which connects to a UNIX socket at this path."""
        self._check_port(port)
        error = self._lib.switch_port_shm(self._state, port, os.fsencode(path))
        if error:
            raise PortError(f"cannot open shared-memory port {path}: {os.strerror(-error)}")

    def _check_port(self, port: int) -> None:
        if not 0 <= port < MAX_PORTS:
            raise PortError(f"ports are 0 to {MAX_PORTS - 1}, not {port}")
        if port in (self.cpu_port, self.drop_port):
            what = "CPU" if port == self.cpu_port else "drop"
            raise PortError(f"port {port} is the {what} port: it leads to no interface")

    def packet_out(self, packet: bytes) -> None:
        """Sends a packet to the running switch on its CPU port."""
        if len(packet) > MAX_FRAME:
            raise ControlError(f"a packet of {len(packet)} bytes; the largest is {MAX_FRAME}")
        self._lib.switch_inject(self._state, packet, len(packet))

    def wait_events(self, timeout_s: float) -> Events:
        """Packets on the CPU port and digests since the last call. If there are none, it waits for one."""
        sizes = [ctypes.c_size_t(), ctypes.c_size_t()]
        cpu, digests = self._event_buffers
        self._lib.switch_events(
            self._state, int(timeout_s * 1000), cpu, ctypes.byref(sizes[0]), digests, ctypes.byref(sizes[1])
        )
        return Events(
            tuple(_records(cpu, sizes[0].value)),
            tuple(self._decode_digest(record) for record in _records(digests, sizes[1].value)),
        )

    def poll_digests(self) -> list[Digest]:
        """Digests since the last call, for a switch that only uses ``process``."""
        return list(self.wait_events(0).digests)

    def _decode_digest(self, record: bytes) -> Digest:
        list_id = int.from_bytes(record[:4], "little")
        name, fields = self.program.digests[list_id]
        limbs = np.frombuffer(record[4:], np.uint64).tolist()
        values, at = [], 0
        for field in fields:
            count = limbs_of(self.program.field(*field).width)
            values.append(integer(limbs[at : at + count]))
            at += count
        headers = self.program.digest_headers(list_id)
        return Digest(
            name, list_id, tuple(values), {first: bool(limbs[at + n]) for n, (first, _) in enumerate(headers)}
        )

    def port_counts(self, port: int) -> PortCounts:
        counts = (ctypes.c_uint64 * 3)()
        self._lib.switch_port_counts(self._state, port, counts)
        return PortCounts(*counts)

    def profile(self, cycles: ctypes.Array[ctypes.c_uint64], entered: ctypes.Array[ctypes.c_uint64]) -> None:
        """Cycles and visits by stage since the last call; for a library compiled with -DPROFILE (runtime/switch.h)."""
        self._lib.switch_profile(self._state, cycles, entered)

    @property
    def lost_events(self) -> int:
        """Number of packets to or from the control plane, and of digests, that were lost because their queue was
        full."""
        return int(self._lib.switch_lost_events(self._state))


def _records(buffer: ctypes.Array[ctypes.c_char], used: int) -> Iterator[bytes]:
    data, at = ctypes.string_at(buffer, used), 0
    while at < used:
        length = int.from_bytes(data[at : at + 4], "little")
        yield data[at + 4 : at + 4 + length]
        at += 4 + length
