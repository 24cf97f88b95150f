"""The embedded switch in Python's hands: a compiled program, its tables and its ports.

    switch = Switch.load("p4src/build/serene.json")
    switch.process(1, frame)            # -> [(port, frame), ...]

Names are those of the BMv2 JSON; numbers are ints of any width. Packets never pass through Python unless they come in
by ``process`` or leave for the CPU port.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from serene.errors import choices
from serene.switch.build import compile_source
from serene.switch.codegen import generate
from serene.switch.control import (
    ControlError,
    CounterValue,
    Digest,
    DuplicateEntry,
    Events,
    InitialEntry,
    Match,
    MeterRates,
    NoSuchEntry,
    NoSuchName,
    PortCounts,
    PortError,
    TableFull,
    encode_field,
    match_from_json,
)
from serene.switch.expressions import limbs_of, mask
from serene.switch.program import Action, Array, Program, Table, load_program

RING_BYTES = 4 << 20  # as in runtime/switch.h
MAX_PORTS = 512
MAX_GROUPS = 65536
MAX_SESSIONS = 32768
MAX_FRAME = 65536


def _limbs(value: int, width: int) -> list[int]:
    return [(value >> (64 * i)) & mask(64) for i in range(limbs_of(width))]


def _array(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * max(len(values), 1))(*values)


def _integer(limbs: Sequence[int]) -> int:
    return sum(int(limb) << (64 * i) for i, limb in enumerate(limbs))


class Switch:
    """A program with its state. Not for two threads at once, but for control-plane calls, which may come any time."""

    def __init__(self, program: Program, library: Path, *, cpu_port: int | None, drop_port: int, seed: int) -> None:
        self.program = program
        self.cpu_port = cpu_port
        self.drop_port = drop_port
        self._tables = program.tables
        self._lib = ctypes.CDLL(str(library))
        self._lib.switch_create.restype = ctypes.c_void_p
        self._lib.switch_output_items.restype = ctypes.c_void_p
        self._lib.switch_output_bytes.restype = ctypes.c_void_p
        self._lib.switch_lost_events.restype = ctypes.c_uint64
        self._state: ctypes.c_void_p | None = None
        state = self._lib.switch_create(-1 if cpu_port is None else cpu_port, drop_port, ctypes.c_uint64(seed))
        if not state:
            raise ControlError("not enough memory for the program's tables and registers")
        self._state = ctypes.c_void_p(state)
        self._event_buffers = [ctypes.create_string_buffer(RING_BYTES) for _ in range(2)]
        self.initial_entries = {table.name: self._install_initial(table) for table in self._tables.values()}

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
        """Loads p4c's output for BMv2, compiling it on first sight.

        Raises NotBmv2Json, UnsupportedProgram, CompilerMissing or CompileFailed, all SereneError.
        """
        program = load_program(json)
        library = compile_source(generate(program), compiler_flags)
        return cls(program, library, cpu_port=cpu_port, drop_port=drop_port, seed=seed)

    def close(self) -> None:
        if self._state is not None:
            self._lib.switch_destroy(self._state)
            self._state = None

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_state", None) is not None:
            self.close()

    # -- packets ---------------------------------------------------------------------------------------------

    def process(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """One packet through the pipeline; everything it causes, packets to the CPU port included."""
        return self.process_many([(port, packet)])[0]

    def process_many(self, packets: Sequence[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
        """Packets one after the other; what each of them causes."""
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
        """The same without a Python object per packet.

        ports, lengths: uint32[n]; data: uint8, the packets end to end. Returns until: uint32[n], the number of
        outputs after each packet; the outputs as a structured array (port, length, offset); and the bytes the
        offsets point into, valid until the next call.
        """
        if len(lengths) and int(lengths.max()) > MAX_FRAME:
            raise ControlError(f"a packet of {int(lengths.max())} bytes; the largest is {MAX_FRAME}")
        until = np.zeros(len(lengths), np.uint32)
        self._lib.switch_process(
            self._state,
            ctypes.c_uint32(len(lengths)),
            ports.ctypes.data_as(ctypes.c_void_p),
            lengths.ctypes.data_as(ctypes.c_void_p),
            data.ctypes.data_as(ctypes.c_void_p),
            until.ctypes.data_as(ctypes.c_void_p),
        )
        count = int(until[-1]) if len(until) else 0
        layout = np.dtype([("port", np.uint32), ("length", np.uint32), ("offset", np.uint64)])
        if not count:
            return until, np.zeros(0, layout), np.zeros(0, np.uint8)
        raw = (ctypes.c_uint8 * (count * layout.itemsize)).from_address(self._lib.switch_output_items(self._state))
        items = np.frombuffer(memoryview(raw), layout)
        size = int(items[-1]["offset"]) + int(items[-1]["length"])
        buffer = (ctypes.c_uint8 * size).from_address(self._lib.switch_output_bytes(self._state))
        return until, items, np.frombuffer(memoryview(buffer), np.uint8)

    # -- tables ----------------------------------------------------------------------------------------------

    def table_add(
        self, table: str, match: Sequence[Match], action: str, params: Sequence[int] = (), priority: int = 0
    ) -> int:
        """Adds an entry; its handle. In ternary tables the larger priority wins, as in P4Runtime."""
        target = self._table(table)
        key, keep, prefix = self._encode_match(target, match)
        chosen = self._action(target, action)
        handle = self._lib.switch_table_insert(
            self._state, target.id, _array(key), _array(keep), prefix, priority, chosen.id,
            self._encode_data(target, chosen, params),
        )  # fmt: skip
        if handle == -1:
            raise TableFull(f"table {table!r} is full ({target.size} entries)")
        if handle == -2:
            raise DuplicateEntry(f"table {table!r} has an entry with this match already")
        return int(handle)

    def table_modify(self, table: str, handle: int, action: str, params: Sequence[int] = ()) -> None:
        """Gives an entry another action or other parameters; one step for packets."""
        target = self._table(table)
        chosen = self._action(target, action)
        data = self._encode_data(target, chosen, params)
        if self._lib.switch_table_change(self._state, target.id, handle, chosen.id, data):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def table_delete(self, table: str, handle: int) -> None:
        if self._lib.switch_table_remove(self._state, self._table(table).id, handle):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def table_set_default(self, table: str, action: str, params: Sequence[int] = ()) -> None:
        target = self._table(table)
        if target.const_default:
            raise ControlError(f"table {table!r} has a constant default action")
        self._set_default(target, self._action(target, action), params)

    def table_reset_default(self, table: str) -> None:
        """Back to the program's own default action."""
        target = self._table(table)
        if target.default_action is None:
            self._lib.switch_table_default(self._state, target.id, ctypes.c_uint32(0xFFFFFFFF), _array([0] * 64))
        else:
            self._set_default(target, *target.default_action)

    def _set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        self._lib.switch_table_default(self._state, table.id, action.id, self._encode_data(table, action, params))

    def direct_counter_read(self, table: str, handle: int | None) -> CounterValue:
        """A table entry's own counter; ``None`` is the default entry."""
        count = (ctypes.c_uint64 * 2)()
        self._direct_count(table, handle, 0, count)
        return CounterValue(count[0], count[1])

    def direct_counter_write(self, table: str, handle: int | None, value: CounterValue) -> None:
        self._direct_count(table, handle, 1, (ctypes.c_uint64 * 2)(value.packets, value.bytes))

    def _direct_count(self, table: str, handle: int | None, write: int, count: ctypes.Array[ctypes.c_uint64]) -> None:
        target = self._table(table)
        if not target.with_counters:
            raise ControlError(f"table {table!r} has no direct counter")
        if self._lib.switch_direct_count(self._state, target.id, -1 if handle is None else handle, write, count):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def _table(self, name: str) -> Table:
        return _named(self._tables, name, "table")

    @staticmethod
    def _action(table: Table, name: str) -> Action:
        if name not in table.actions:
            raise NoSuchName(f"table {table.name!r} has no action {name!r}; its actions: {choices(table.actions)}")
        return table.actions[name]

    @staticmethod
    def _encode_data(table: Table, action: Action, params: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
        expected = [f"{parameter.name} ({parameter.width} bits)" for parameter in action.parameters]
        if len(params) != len(action.parameters):
            raise ControlError(
                f"action {action.name!r} takes {len(expected)} parameters ({', '.join(expected)}), not {len(params)}"
            )
        limbs: list[int] = []
        for parameter, value in zip(action.parameters, params, strict=True):
            if value < 0 or value > mask(parameter.width):
                raise ControlError(
                    f"action {action.name!r}: {value} does not fit {parameter.name}, {parameter.width} bits"
                )
            limbs += _limbs(value, parameter.width)
        most = max(sum(limbs_of(p.width) for p in other.parameters) for other in table.actions.values())
        return _array(limbs + [0] * (most - len(limbs)))

    @staticmethod
    def _encode_match(table: Table, match: Sequence[Match]) -> tuple[list[int], list[int], int]:
        if len(match) != len(table.keys):
            names = ", ".join(f"{key.name} ({key.match_type})" for key in table.keys)
            raise ControlError(f"table {table.name!r} matches on {names or 'nothing'}, not on {len(match)} fields")
        values: list[int] = []
        masks: list[int] = []
        prefix = 0
        for key, field in zip(table.keys, match, strict=True):
            value, keep, length = encode_field(table, key, field)
            values += _limbs(value, key.width)
            masks += _limbs(keep, key.width)
            prefix += length
        return values, masks, prefix

    def _install_initial(self, table: Table) -> tuple[InitialEntry, ...]:
        if table.default_action is not None:
            self._set_default(table, *table.default_action)
        # BMv2's JSON: the smaller number wins. Counted from below, as p4c does for P4Runtime.
        order = sorted(range(len(table.entries)), key=lambda place: table.entries[place].get("priority", place))
        priorities = {place: len(order) - rank for rank, place in enumerate(order)}
        installed = []
        for place, entry in enumerate(table.entries):
            match = tuple(match_from_json(key, item) for key, item in zip(table.keys, entry["match_key"], strict=True))
            action = next(a for a in table.actions.values() if a.id == entry["action_entry"]["action_id"])
            params = tuple(int(value, 16) for value in entry["action_entry"]["action_data"])
            priority = priorities[place] if table.kind == "ternary" else 0
            handle = self.table_add(table.name, match, action.name, params, priority)
            installed.append(InitialEntry(handle, match, action.name, params, priority))
        return tuple(installed)

    # -- counters, meters, registers -------------------------------------------------------------------------

    def counter_read(self, counter: str, index: int) -> CounterValue:
        return self.counter_read_all(counter, index, 1)[0]

    def counter_read_all(self, counter: str, first: int = 0, count: int | None = None) -> list[CounterValue]:
        array = self._indexed(self.program.counters, "counter", counter, first)
        count = array.size - first if count is None else count
        values = (ctypes.c_uint64 * (2 * max(count, 1)))()
        self._lib.switch_count(self._state, array.id, first, count, 0, values)
        return [CounterValue(values[2 * i], values[2 * i + 1]) for i in range(count)]

    def counter_write(self, counter: str, index: int, value: CounterValue) -> None:
        array = self._indexed(self.program.counters, "counter", counter, index)
        self._lib.switch_count(self._state, array.id, index, 1, 1, (ctypes.c_uint64 * 2)(value.packets, value.bytes))

    def meter_set(self, meter: str, index: int, rates: MeterRates | None) -> None:
        """Configures a cell of a meter; ``None`` lets everything pass as green. Direct meters: by entry handle."""
        array = self._indexed(self.program.meters, "meter", meter, index)
        if rates is None:
            self._lib.switch_meter(self._state, array.id, index, None, None)
            return
        per_us = (ctypes.c_double * 2)(rates.committed_rate / 1e6, rates.peak_rate / 1e6)
        bursts = (ctypes.c_double * 2)(rates.committed_burst, rates.peak_burst)
        self._lib.switch_meter(self._state, array.id, index, per_us, bursts)

    def register_read(self, register: str, index: int) -> int:
        return self.register_read_all(register, index, 1)[0]

    def register_read_all(self, register: str, first: int = 0, count: int | None = None) -> list[int]:
        array = self._indexed(self.program.registers, "register", register, first)
        count = array.size - first if count is None else count
        element = _register_type(array.width)
        values = np.zeros((count, limbs_of(array.width)), element)
        self._lib.switch_register(self._state, array.id, first, count, 0, values.ctypes.data_as(ctypes.c_void_p))
        return [_integer(row) for row in values.tolist()]

    def register_write(self, register: str, index: int, value: int) -> None:
        array = self._indexed(self.program.registers, "register", register, index)
        if value < 0 or value > mask(array.width):
            raise ControlError(f"register {register!r}: {value} does not fit {array.width} bits")
        row = np.array(_limbs(value, array.width), np.uint64).astype(_register_type(array.width))
        self._lib.switch_register(self._state, array.id, index, 1, 1, row.ctypes.data_as(ctypes.c_void_p))

    def _indexed(self, arrays: Mapping[str, Array], what: str, name: str, index: int) -> Array:
        array = _named(arrays, name, what)
        size = array.size
        if array.direct_table is not None:
            size = self._table(array.direct_table).size
        if not 0 <= index < max(size, 1):
            raise ControlError(f"{what} {name!r} has the indices 0 to {size - 1}, not {index}")
        return array

    # -- replication -----------------------------------------------------------------------------------------

    def multicast_set(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Members of a multicast group as (port, egress_rid); replaces what was there."""
        if not 0 < group < MAX_GROUPS:
            raise ControlError(f"multicast groups are 1 to {MAX_GROUPS - 1}, not {group}")
        self._replicas(0, group, replicas, 0)

    def multicast_delete(self, group: int) -> None:
        self._lib.switch_replicas(self._state, 0, group, None, -1, 0)

    def clone_session_set(
        self, session: int, replicas: Sequence[tuple[int, int]], truncate: int = 0, class_of_service: int = 0
    ) -> None:
        """Where clones of a session go, as (port, egress_rid). ``class_of_service`` has no meaning on this switch."""
        if not 0 < session < MAX_SESSIONS:
            raise ControlError(f"clone sessions are 1 to {MAX_SESSIONS - 1}, not {session}")
        self._replicas(1, session, replicas, truncate)

    def clone_session_delete(self, session: int) -> None:
        self._lib.switch_replicas(self._state, 1, session, None, -1, 0)

    def _replicas(self, kind: int, id_: int, replicas: Sequence[tuple[int, int]], truncate: int) -> None:
        pairs = (ctypes.c_uint32 * max(2 * len(replicas), 1))(*(part for pair in replicas for part in pair))
        if self._lib.switch_replicas(self._state, kind, id_, pairs, len(replicas), truncate):
            raise ControlError("not enough memory for the replicas")

    # -- live ports ------------------------------------------------------------------------------------------

    def add_interface(self, port: int, interface: str, *, join_udp: bool = False) -> None:
        """Attaches a network interface; needs CAP_NET_RAW.

        With ``join_udp``, runs of UDP packets to one receiver that leave together, of one size and without a checksum,
        are handed to the kernel as one buffer, as a sender with UDP segmentation offload would: far fewer calls. It
        cuts them again where the receiver does not take them whole; their checksums are then filled in, and their
        IPv4 ids count up.
        """
        self._check_port(port)
        error = self._lib.switch_port_interface(self._state, port, interface.encode(), int(join_udp))
        if error == -errno.EPERM:
            raise PortError(f"no permission to open {interface!r}: run as root, or use UDP ports")
        if error:
            raise PortError(f"cannot open interface {interface!r}: {os.strerror(-error)}")

    def add_udp(self, port: int, local: tuple[str, int], peer: tuple[str, int] | None = None) -> None:
        """A port whose frames travel in UDP datagrams; without ``peer`` the first sender becomes it."""
        self._check_port(port)
        host, number = peer or ("", 0)
        error = self._lib.switch_port_udp(
            self._state, port, local[0].encode(), ctypes.c_uint16(local[1]), host.encode(), ctypes.c_uint16(number)
        )
        if error:
            raise PortError(f"cannot open UDP port {local[0]}:{local[1]}: {os.strerror(-error)}")

    def _check_port(self, port: int) -> None:
        if not 0 <= port < MAX_PORTS:
            raise PortError(f"ports are 0 to {MAX_PORTS - 1}, not {port}")
        if port in (self.cpu_port, self.drop_port):
            what = "CPU" if port == self.cpu_port else "drop"
            raise PortError(f"port {port} is the {what} port: it leads to no interface")

    def remove_port(self, port: int) -> None:
        self._lib.switch_port_remove(self._state, port)

    def start(self) -> None:
        """Starts forwarding between the ports, in a thread of its own."""
        if self._lib.switch_start(self._state):
            raise PortError("cannot start the forwarding thread")

    def stop(self) -> None:
        self._lib.switch_stop(self._state)

    def packet_out(self, packet: bytes) -> None:
        """Hands the running switch a packet on its CPU port."""
        if len(packet) > MAX_FRAME:
            raise ControlError(f"a packet of {len(packet)} bytes; the largest is {MAX_FRAME}")
        self._lib.switch_inject(self._state, packet, len(packet))

    def wait_events(self, timeout_s: float) -> Events:
        """Packets on the CPU port and digests since the last call; waits for the first one."""
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
        """Digests since the last call, for switches used by ``process`` alone."""
        return list(self.wait_events(0).digests)

    def _decode_digest(self, record: bytes) -> Digest:
        list_id = int.from_bytes(record[:4], "little")
        name, fields = self.program.digests[list_id]
        limbs = np.frombuffer(record[4:], np.uint64).tolist()
        values, at = [], 0
        for field in fields:
            count = limbs_of(self.program.field(*field).width)
            values.append(_integer(limbs[at : at + count]))
            at += count
        return Digest(name, list_id, tuple(values))

    def port_counts(self, port: int) -> PortCounts:
        counts = (ctypes.c_uint64 * 3)()
        self._lib.switch_port_counts(self._state, port, counts)
        return PortCounts(*counts)

    @property
    def lost_events(self) -> int:
        """Packets to or from the control plane, and digests, that found their queue full."""
        return int(self._lib.switch_lost_events(self._state))


def _named(objects: Mapping[str, Table] | Mapping[str, Array], name: str, what: str):  # type: ignore[no-untyped-def]
    if name not in objects:
        raise NoSuchName(f"the program has no {what} {name!r}; it has {choices(sorted(objects)) or 'none'}")
    return objects[name]


def _register_type(width: int) -> type[np.unsignedinteger]:
    return next((t for bits, t in ((8, np.uint8), (16, np.uint16), (32, np.uint32)) if width <= bits), np.uint64)


def _records(buffer: ctypes.Array[ctypes.c_char], used: int) -> Iterator[bytes]:
    data, at = ctypes.string_at(buffer, used), 0
    while at < used:
        length = int.from_bytes(data[at : at + 4], "little")
        yield data[at + 4 : at + 4 + length]
        at += 4 + length
