"""Large tables, in the embedded switch and in BMv2: how long writes take, what a route needs in memory, and how many
packets pass between a Mininet host and the switch (router.py)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import random
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from finsy.proto import p4i, p4r, p4r_grpc

from serene.embedded import Lpm, Switch, Ternary
from serene.experiments.performance import router
from serene.experiments.performance.networks import in_hosts, started
from serene.experiments.performance.parts import BenchFailed, Json, run_parts
from serene.experiments.shared.machine import memory_bytes
from serene.topologies.nodes import Bmv2Switch, EmbeddedSwitch
from serene.topologies.star import Star

SIZE = 131_072  # entries that each table has room for
UPDATES = 1000  # of one Write
MASKS = 12  # different ones, of the access list
FRAME_BYTES = 64
WINDOW = 64  # frames in flight
SILENCE_S = 0.2  # after which frames in flight count as lost
PATIENCE_S = 60.0
Samples = tuple[float, ...]
Route = tuple[int, int]  # value, bits of the prefix
Rule = tuple[tuple[int, int], ...]  # value and mask of each field


def routes(count: int, seed: int) -> list[Route]:
    """Different routes, most of 24 bits, as routers have them."""
    some, found = random.Random(seed), dict[Route, None]()
    while len(found) < count:
        bits = some.choice((16, 18, 20, 22, 23, 24, 24, 24, 24, 28, 32))
        found[some.getrandbits(bits) << (32 - bits), bits] = None
    return list(found)


def rules(count: int, seed: int) -> list[Rule]:
    """Different rules of MASKS masks: prefixes of addresses, and the other fields whole or left open."""
    some, found = random.Random(seed), dict[Rule, None]()
    prefixes = [(bits, some.choice((0, 16, 24)), number) for number, bits in enumerate((32, 28, 24, 20) * 3)]
    masks = [
        (_high(32, to), _high(32, of), 0xFF if n % 2 else 0, 0xFFFF if n % 3 else 0, 0xFFFF if n > 5 else 0)
        for to, of, n in prefixes[:MASKS]
    ]
    while len(found) < count:
        keep = masks[len(found) % MASKS]
        values = (some.getrandbits(bits) & mask for bits, mask in zip(router.FIELDS.values(), keep, strict=True))
        found[tuple(zip(values, keep, strict=True))] = None
    return list(found)


def _high(width: int, bits: int) -> int:
    return (1 << width) - (1 << (width - bits))


def frame(rule: Rule, some: random.Random) -> bytes:
    """One that the rule matches; what the rule leaves open is chosen at random."""
    data = b""
    for bits, (value, mask) in zip(router.FIELDS.values(), rule, strict=True):
        data += (value | some.getrandbits(bits) & ~mask).to_bytes(bits // 8, "big")
    return data + b"\xff" * (FRAME_BYTES - len(data))  # no EtherType that a host's kernel would answer


def encoded(value: int) -> bytes:
    return value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")


def route_entry(route: Route) -> p4r.TableEntry:
    entry = _entry(router.ROUTES)
    entry.match.add(field_id=1).lpm.value, entry.match[0].lpm.prefix_len = encoded(route[0]), route[1]
    return entry


def rule_entry(rule: Rule, priority: int) -> p4r.TableEntry:
    entry = _entry(router.ACL)
    entry.priority = priority
    for number, (value, mask) in enumerate(rule, 1):
        if mask:
            given = entry.match.add(field_id=number).ternary
            given.value, given.mask = encoded(value), encoded(mask)
    return entry


def _entry(table: int) -> p4r.TableEntry:
    """An entry that sends packets back to where they came from."""
    entry = p4r.TableEntry(table_id=table)
    entry.action.action.action_id = router.SEND
    entry.action.action.params.add(param_id=1, value=b"\1")
    return entry


class Controller:
    """The primary controller of a switch, which gets this program."""

    def __init__(self, port: int, config: bytes, p4info: p4i.P4Info) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.max_receive_message_length", -1)])
        grpc.channel_ready_future(self._channel).result(PATIENCE_S)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._stream_requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._stream = self._stub.StreamChannel(iter(self._stream_requests.get, None))
        first = p4r.MasterArbitrationUpdate(election_id=p4r.Uint128(low=1))
        self._stream_requests.put(p4r.StreamMessageRequest(arbitration=first))
        next(self._stream)
        kinds = p4r.SetForwardingPipelineConfigRequest
        request = kinds(action=kinds.VERIFY_AND_COMMIT, election_id=p4r.Uint128(low=1))
        request.config.p4info.CopyFrom(p4info)
        request.config.p4_device_config = config
        self._stub.SetForwardingPipelineConfig(request, timeout=PATIENCE_S)

    def write(self, kind: p4r.Update.Type.ValueType, entries: Sequence[p4r.TableEntry]) -> float:
        """Seconds that writing them takes, UPDATES a Write; the requests are made before."""
        requests = []
        for first in range(0, len(entries), UPDATES):
            request = p4r.WriteRequest(election_id=p4r.Uint128(low=1))
            for entry in entries[first : first + UPDATES]:
                request.updates.add(type=kind).entity.table_entry.CopyFrom(entry)
            requests.append(request)
        began = time.perf_counter()
        for request in requests:
            self._stub.Write(request, timeout=PATIENCE_S)
        return time.perf_counter() - began

    def entries(self, table: int) -> int:
        """How many entries the table has, by a read of all of them."""
        wanted = p4r.Entity(table_entry=p4r.TableEntry(table_id=table))
        return sum(len(part.entities) for part in self._stub.Read(p4r.ReadRequest(entities=[wanted])))

    def close(self) -> None:
        self._stream_requests.put(None)
        self._channel.close()


class RouterNetwork:
    """A Mininet host at port 1 of a switch, and its controller. work: a directory for files."""

    def __init__(self, net: Any, controller: Controller, work: Path) -> None:
        self._net, self.controller, self._work = net, controller, work

    def resident_bytes(self) -> int:
        return memory_bytes(self._net["s1"].process.pid, "VmRSS")

    def _processor_s(self) -> float:
        words = Path(f"/proc/{self._net['s1'].process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def packets_s(self, frames: Sequence[bytes], repeats: int, seconds: float) -> tuple[Samples, Samples, Samples]:
        """Frames a second that come back to the host, for each repeat; and for each second of processor time that the
        switch and that the host needs, over all of them. Raises BenchFailed."""
        path = self._work / "frames.txt"  # too long for a command line
        path.write_text("\n".join(frame.hex() for frame in frames))
        before = self._processor_s()
        options: Json = {"frames": str(path), "repeats": repeats, "seconds": seconds}
        (result,) = run_parts(in_hosts(self._net), {0: ("tables", options)}, self._work, PATIENCE_S)
        answered = result["answered"]
        switch_s, host_s = self._processor_s() - before, result["processor_s"]
        return tuple(result["rates"]), (answered / switch_s,), (answered / host_s,)


@contextlib.contextmanager
def router_network(
    target: str, config: bytes = router.program(SIZE, SIZE), p4info: p4i.P4Info | None = None
) -> Iterator[RouterNetwork]:
    """The network with a switch of this target that runs this program, by default the router."""
    kind: Any = {"bmv2": Bmv2Switch, "embedded": EmbeddedSwitch}[target]
    with tempfile.TemporaryDirectory() as work:
        switch = partial(kind, log=Path(work) / "switch.log")
        with started(Star(1, switch="s1"), switch) as net:
            controller = Controller(net["s1"].p4runtime_port, config, p4info or router.p4info(SIZE, SIZE))
            with contextlib.closing(controller):
                yield RouterNetwork(net, controller, Path(work))


def measure(target: str, repeats: int, seconds: float) -> dict[str, Samples]:
    """Of one target: seconds of ``writes`` and of ``deletes`` of 10,000 routes; ``bytes`` of a route among 100,000;
    packets/s with ``routes``, and with 50, 500 and 5,000 rules, for each repeat; and packets for each second of the
    switch's processor time (``routes, processor``) and of the host's. Raises BenchFailed and NotReady."""
    insert, delete = p4r.Update.INSERT, p4r.Update.DELETE
    found: dict[str, Samples] = {}
    with router_network(target) as network:
        controller, some = network.controller, random.Random(3)
        few = [route_entry(route) for route in routes(10_000, 1)]
        times = [(controller.write(insert, few), controller.write(delete, few)) for _ in range(repeats)]
        found["writes"], found["deletes"] = (tuple(each) for each in zip(*times, strict=True))
        before = network.resident_bytes()
        many = routes(100_000, 2)
        controller.write(insert, [route_entry(route) for route in many])
        found["bytes"] = ((network.resident_bytes() - before) / len(many),)
        if controller.entries(router.ROUTES) != len(many):
            raise BenchFailed(f"{target}: {controller.entries(router.ROUTES)} routes are read, not {len(many)}")
        controller.write(delete, [route_entry(route) for route in many[10_000:]])
        anything = ((0, 0),) * 4
        frames = [
            frame(((value, _high(32, bits)), *anything), some) for value, bits in some.sample(many[:10_000], 4096)
        ]
        found["routes"], found["routes, processor"], found["routes, host"] = network.packets_s(frames, repeats, seconds)
        held_rules = 0
        every = rules(5000, 4)
        for count in (50, 500, 5000):
            new = [rule_entry(rule, 1 + at) for at, rule in enumerate(every[held_rules:count], held_rules)]
            controller.write(insert, new)
            held_rules = count
            frames = [frame(some.choice(every[:count]), some) for _ in range(4096)]
            what = f"{count} rules"
            found[what], found[f"{what}, processor"], _ = network.packets_s(frames, repeats, seconds)
    return found


def in_process(repeats: int) -> dict[int, Samples]:
    """Packets for each second of processor time through the embedded switch in this process, by the number of rules.
    They are measured in turn, so that whatever else the machine does affects all of them."""
    rates: dict[int, list[float]] = {50: [], 500: [], 5000: []}
    ports, lengths = np.ones(4096, np.uint32), np.full(4096, FRAME_BYTES, np.uint32)
    with contextlib.ExitStack() as stack:
        prepared = []
        for count in rates:
            some, every = random.Random(3), rules(count, 4)
            frames = [frame(some.choice(every), some) for _ in ports]
            switch = stack.enter_context(Switch.load(router.program(SIZE, SIZE)))
            switch.table_add("routes", [Lpm(0, 0)], "send", [2])
            for at, rule in enumerate(every):
                switch.table_add("acl", [Ternary(value, mask) for value, mask in rule], "send", [1], 1 + at)
            data = np.frombuffer(b"".join(frames), np.uint8)
            _, outputs, _ = switch.process_batch(ports, lengths, data)
            if outputs["port"].tolist() != [1] * len(frames):
                raise BenchFailed(f"with {count} rules, a packet matched none: the measurement is void")
            prepared.append((count, switch, data))
        for number in range(repeats + 1):
            for count, switch, data in prepared:
                began = time.process_time()
                for _ in range(20):
                    switch.process_batch(ports, lengths, data)
                if number:  # the first one runs with cold caches
                    rates[count].append(20 * len(ports) / (time.process_time() - began))
    return {count: tuple(taken) for count, taken in rates.items()}


class _Batch:
    """Buffers for sendmmsg and recvmmsg: WINDOW frames in one system call."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.bytes = np.zeros((WINDOW, 128), np.uint8)
        self._vectors = np.zeros((WINDOW, 2), np.uint64)  # struct iovec
        self._vectors[:, 0] = self.bytes.ctypes.data + np.arange(WINDOW, dtype=np.uint64) * 128
        self._vectors[:, 1] = FRAME_BYTES
        self._messages = np.zeros((WINDOW, 8), np.uint64)  # struct mmsghdr
        self._messages[:, 2] = self._vectors.ctypes.data + np.arange(WINDOW, dtype=np.uint64) * 16
        self._messages[:, 3] = 1

    def send(self, count: int) -> int:
        return max(int(self._libc.sendmmsg(self._descriptor, ctypes.c_void_p(self._messages.ctypes.data), count, 0)), 0)

    def receive(self, count: int) -> int:
        """Waits for the first one, until the socket's timeout."""
        at = ctypes.c_void_p(self._messages.ctypes.data)
        return max(int(self._libc.recvmmsg(self._descriptor, at, count, 0x10000, None)), 0)  # MSG_WAITFORONE


def host_part(options: Json) -> Json:
    """The part of `make bench` that runs in the host (experiments.performance.hosts)."""
    frames = np.array([list(bytes.fromhex(line)) for line in Path(options["frames"]).read_text().split()], np.uint8)
    device = next(name for _, name in socket.if_nameindex() if name != "lo")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as link:  # ETH_P_ALL
        link.bind((device, 0))
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, np.array([0, SILENCE_S * 1e6], np.int64).tobytes())
        out, back = _Batch(link.fileno()), _Batch(link.fileno())
        known = {frame.tobytes() for frame in frames}
        rates, total, started = [], 0, time.process_time()
        for number in range(options["repeats"] + 1):
            began, answered, in_flight, at = time.perf_counter(), 0, 0, 0
            while time.perf_counter() - began < options["seconds"]:
                wanted = min(WINDOW - in_flight, len(frames) - at)
                if wanted:
                    out.bytes[:wanted, :FRAME_BYTES] = frames[at : at + wanted]
                    sent = out.send(wanted)
                    in_flight, at = in_flight + sent, (at + sent) % len(frames)
                came = back.receive(WINDOW)
                if (
                    came
                    and answered < 4096
                    and not all(row[:FRAME_BYTES].tobytes() in known for row in back.bytes[:came])
                ):
                    raise BenchFailed("a frame came back that was not sent")
                answered += came
                in_flight = max(in_flight - came, 0) if came else 0
            total += answered
            if not answered:
                raise BenchFailed("no frame came back")
            if number:  # the first one runs with cold caches
                rates.append(answered / (time.perf_counter() - began))
            while back.receive(WINDOW):
                pass  # the next one begins with nothing in flight
    return {"rates": rates, "answered": total, "processor_s": time.process_time() - started}
