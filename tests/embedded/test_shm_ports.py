"""Shared-memory ports: frames both ways, ownership of a port, and hostile processes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serene.client import TransportError
from serene.client.compiled.fastpath import library
from serene.client.transport.shm import SharedMemory
from serene.embedded.control.types import PortError
from serene.embedded.engine import Switch
from tests.embedded.p4rt_controller import PATIENCE_S, until
from tests.embedded.p4rt_probe import JSON, Probe

RING_BYTES, ALIGN = 4 << 20, 64  # runtime/shm.h
WRITTEN, READ, ASLEEP, BYTES = 0, 64, 128, 192  # in a ring
RING_SIZE = BYTES + RING_BYTES
TO_SWITCH, TO_HOST = 0, RING_SIZE

pytestmark = pytest.mark.skipif(library() is None, reason="shared memory needs a C compiler")


def frame(to: int, number: int = 0, size: int = 0) -> bytes:
    """To a port of the switch; at least so many bytes, which tell from the number's others."""
    text = Probe(port=to, b=2).frame()
    return text + number.to_bytes(4, "big") + bytes([number % 251]) * max(size - len(text) - 4, 0)


def tail(data: bytes) -> bytes:
    return data[len(Probe().frame()) :]


def send(end: SharedMemory, *frames: bytes) -> None:
    for one in frames:
        end.send_rows(np.frombuffer(one, np.uint8)[None, :])


def received(end: SharedMemory, count: int = 1) -> list[bytes]:
    """So many frames, of each what the program does not look at."""
    found: list[bytes] = []
    until_s = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until_s:
        rows, lengths = end.receive_rows(0.1)
        found += [tail(row[:length].tobytes()) for row, length in zip(rows, lengths, strict=True)]
    return found


def passes(here: SharedMemory, there: SharedMemory, to: int, number: int, size: int = 0) -> None:
    """A frame from one end arrives at the other."""
    send(here, frame(to, number, size))
    assert received(there) == [tail(frame(to, number, size))]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [tmp_path / "port1", tmp_path / "port2"]


@contextlib.contextmanager
def serving(program: Path, paths: list[Path]) -> Iterator[Switch]:
    with Switch.load(program) as switch:
        for number, path in enumerate(paths, 1):
            switch.add_shm(number, path)
        switch.start()
        yield switch


@contextlib.contextmanager
def opened(paths: list[Path]) -> Iterator[list[SharedMemory]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(SharedMemory(path))) for path in paths]


@pytest.fixture
def switch(paths: list[Path]) -> Iterator[Switch]:
    with serving(JSON, paths) as switch:
        yield switch


@pytest.fixture
def ends(switch: Switch, paths: list[Path]) -> Iterator[list[SharedMemory]]:
    with opened(paths) as ends:
        yield ends


def works(paths: list[Path]) -> None:
    """Both ports become free, and frames pass between two new processes' ends, both ways."""
    until(lambda: all(map(free, paths)), "the ports are free")
    with opened(paths) as (first, second):
        passes(first, second, 2, 7)
        passes(second, first, 1, 7)


def free(path: Path) -> bool:
    try:
        SharedMemory(path).close()
    except TransportError:
        return False
    return True


# -- frames ---------------------------------------------------------------------------------------------------


def test_shm_frames_pass_both_ways_complete_and_in_order(ends: list[SharedMemory]) -> None:
    """More than the rings hold, of all sizes: the rings wrap around many times."""
    rng = random.Random(3)
    for here, there, to in ((0, 1, 2), (1, 0, 1)):
        number = total = 0
        while total < 4 * RING_BYTES:
            sizes = [rng.choice((0, 1, 60, 64, 1400, 9000, 65000)) for _ in range(8)]
            frames = [frame(to, number + i, size) for i, size in enumerate(sizes)]
            send(ends[here], *frames)
            assert received(ends[there], len(frames)) == [tail(one) for one in frames]
            number += len(frames)
            total += sum(map(len, frames))


@pytest.mark.parametrize("before", [0, 58, 59, 60])
def test_shm_port_of_a_process_that_does_not_read_drops(
    switch: Switch, ends: list[SharedMemory], paths: list[Path], before: int
) -> None:
    """Its ring is full: the switch drops and counts, and the frames that fitted are there. before: frames that it has
    read; after a few of them the ring begins anew."""
    sent, size = 0, 9000
    for _ in range(before):
        passes(ends[0], ends[1], 2, 54321, size)
    while switch.port_counts(2).dropped == 0:
        send(ends[0], frame(2, sent, size))
        sent += 1
        until(lambda: switch.port_counts(1).received == before + sent, "the switch takes every frame")  # noqa: B023
    counts = switch.port_counts(2)
    fitted = counts.sent - before
    assert fitted + counts.dropped == sent
    assert fitted > (0.9 * RING_BYTES / (size + ALIGN) if before == 0 else before - 3)
    assert [data[:4] for data in received(ends[1], fitted)] == [number.to_bytes(4, "big") for number in range(fitted)]
    passes(ends[0], ends[1], 2, 12345)


def test_shm_frames_too_large_or_empty_are_not_sent_and_lose_no_other(switch: Switch, ends: list[SharedMemory]) -> None:
    """Also if they are handed over together with others."""
    send(ends[0], b"x" * 65537)
    for number in range(20):
        send(ends[0], b"", frame(2, number), b"")
    assert received(ends[1], 20) == [tail(frame(2, number)) for number in range(20)]
    assert switch.port_counts(1).dropped == 0


def test_packet_deparsed_to_nothing_counts_as_dropped(tmp_path: Path, paths: list[Path]) -> None:
    """It does not count as sent."""
    program = json.loads((JSON.parent / "mirror.json").read_text())
    program["deparsers"][0]["order"] = []  # only the payload leaves, to port 2
    (tmp_path / "program.json").write_text(json.dumps(program))
    before = len(Probe().frame())
    with serving(tmp_path / "program.json", paths) as switch, opened(paths) as (first, second):
        send(first, bytes(14), bytes(14) + bytes(before) + b"payload")
        assert received(second) == [b"payload"]
        counts = switch.port_counts(2)
        assert (counts.sent, counts.dropped) == (1, 1)


# -- who has a port -------------------------------------------------------------------------------------------


def test_shm_port_in_use_refuses_a_second_process(ends: list[SharedMemory], paths: list[Path]) -> None:
    for _ in range(3):
        with pytest.raises(TransportError, match="another process has it"):
            SharedMemory(paths[0])
    passes(ends[0], ends[1], 2, 1)


HOLDER = """
import sys, time
import numpy as np
from serene.client.transport.shm import SharedMemory
end = SharedMemory(sys.argv[1])
frame = np.frombuffer(bytes.fromhex(sys.argv[2]), np.uint8)[None, :]
print("there", flush=True)
while True:
    end.send_rows(frame)
"""


def test_shm_port_of_a_killed_process_is_free_for_the_next(switch: Switch, paths: list[Path]) -> None:
    """It is killed while it sends; the next process receives none of its frames."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(paths[0]), frame(1, 99, 1400).hex()], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"there\n"
    until(lambda: switch.port_counts(1).received > 100, "frames come")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    until(lambda: free(paths[0]), "the port is free again")
    with opened(paths[:1]) as (end,):
        passes(end, end, 1, 5)


def test_shm_port_without_a_process_drops(switch: Switch, paths: list[Path]) -> None:
    with opened(paths[:1]) as (end,):
        send(end, frame(2, 1))
        until(lambda: switch.port_counts(2).dropped == 1, "the frame is dropped")


def test_shared_memory_port_survives_switch_restart(paths: list[Path]) -> None:
    end: SharedMemory | None = None
    for turn in range(3):
        with serving(JSON, paths[:1]):
            end = end or SharedMemory(paths[0])
            held = end
            found: list[bytes] = []

            def answered() -> bool:
                send(held, frame(1, turn))  # noqa: B023
                found.extend(received(held))  # noqa: B023
                return bool(found)  # noqa: B023

            until(answered, "frames pass again")
            assert found[0] == tail(frame(1, turn)) and end.trouble is None
        assert not paths[0].exists()
        end.receive_rows(0.0)
        until(lambda: bool(held.receive_rows(0.0)) and held.trouble is not None, "it is noticed")  # noqa: B023
    assert end is not None
    end.close()


def test_shm_path_is_reused_unless_a_switch_or_file_has_it(tmp_path: Path) -> None:
    left, file = tmp_path / "left", tmp_path / "file"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left))
    file.write_text("something else")
    with Switch.load(JSON) as first, Switch.load(JSON) as second:
        first.add_shm(1, left)
        with pytest.raises(PortError, match="in use"):
            second.add_shm(1, left)
        with pytest.raises(PortError, match="in use"):
            second.add_shm(1, file)
        assert oct(left.stat().st_mode & 0o777) == "0o600"
    assert not left.exists() and file.read_text() == "something else"


def test_bad_shm_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="no such path"):
        SharedMemory(tmp_path / "missing")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left"))
    with pytest.raises(TransportError, match="no switch listens there"):
        SharedMemory(tmp_path / "left")
    with Switch.load(JSON) as switch, pytest.raises(PortError, match="too long"):
        switch.add_shm(1, tmp_path / ("x" * 200))


# -- a process that does harm ---------------------------------------------------------------------------------


class Hostile:
    """A process with a port's memory, which writes there at will."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.settimeout(PATIENCE_S)
        greeting, files, _, _ = socket.recv_fds(self.socket, 64, 1)
        assert greeting and len(files) == 1, "another process has the port"
        self.file = files[0]
        self.memory = mmap.mmap(self.file, 2 * RING_SIZE)

    def put(self, at: int, value: int) -> None:
        self.memory[at : at + 8] = struct.pack("<Q", value % 2**64)

    def get(self, at: int) -> int:
        return int(struct.unpack_from("<Q", self.memory, at)[0])

    def append(self, one: bytes) -> None:
        """Writes a valid frame after what the switch has read."""
        at, size = self.get(TO_SWITCH + READ), -(-(8 + len(one)) // ALIGN) * ALIGN
        if at % RING_BYTES + size > RING_BYTES:
            self.put(TO_SWITCH + BYTES + at % RING_BYTES, 0xFFFFFFFF)
            at += RING_BYTES - at % RING_BYTES
        start = TO_SWITCH + BYTES + at % RING_BYTES
        self.memory[start : start + 8 + len(one)] = record(len(one), one)
        self.put(TO_SWITCH + WRITTEN, at + size)

    def ring(self, count: int = 1) -> None:
        with contextlib.suppress(BlockingIOError):
            self.socket.send(b"x" * count, socket.MSG_DONTWAIT)

    def close(self) -> None:
        self.memory.close()
        os.close(self.file)
        self.socket.close()


def record(length: int, body: bytes = b"") -> bytes:
    return struct.pack("<II", length, 0) + body


def test_shm_memory_cannot_be_shrunk(switch: Switch, paths: list[Path]) -> None:
    """A mapped file that shrinks would kill the switch with SIGBUS."""
    hostile = Hostile(paths[0])
    for size in (0, 1, 4096, 4 * RING_SIZE):
        with pytest.raises(PermissionError):
            os.ftruncate(hostile.file, size)
    # Holes may be made: they read as zeros, which are no frame.
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    assert fallocate(hostile.file, 3, 0, 2 * RING_SIZE) == 0
    hostile.put(TO_SWITCH + WRITTEN, 4096)
    hostile.ring()
    until(lambda: switch.port_counts(1).dropped > 0, "what is no frame is dropped")
    hostile.close()
    works(paths)


def test_shm_bad_lengths_and_indices_are_dropped(switch: Switch, paths: list[Path]) -> None:
    """They are counted; the frames after them pass in order."""
    for written, length in (
        (ALIGN, 0),
        (ALIGN, 65537),
        (ALIGN, 0x7FFFFFFF),
        (ALIGN, 0xFFFFFFFE),
        (ALIGN, 0xFFFFFFFF),  # "go on at the beginning", where nothing is
        (ALIGN, ALIGN),  # ends behind what was written
        (RING_BYTES, 0xFFFFFFFF),
        (1, 60),  # no index of a record
        (RING_BYTES + ALIGN, 60),  # more than there can be
        (2**63, 60),
        (-ALIGN, 60),
    ):
        until(lambda: free(paths[0]), "the port is free")
        hostile, before = Hostile(paths[0]), switch.port_counts(1)
        hostile.memory[BYTES : BYTES + 8] = record(length)
        hostile.put(TO_SWITCH + WRITTEN, written)
        hostile.ring()
        until(lambda: switch.port_counts(1).dropped > before.dropped, f"{written}, {length}: it is dropped")  # noqa: B023
        received_before = switch.port_counts(1).received
        hostile.append(frame(2, 1))
        hostile.ring()
        until(
            lambda: switch.port_counts(1).received > received_before,  # noqa: B023
            f"{written}, {length}: a frame in order passes",
        )
        hostile.close()
    works(paths)


def test_host_with_forged_read_counter_loses_only_own_frames(switch: Switch, paths: list[Path]) -> None:
    """Other processes receive all of theirs."""
    for read in (2**63, -1, RING_BYTES * 5, 1):
        until(lambda: all(map(free, paths)), "the ports are free")
        hostile, honest, before = Hostile(paths[0]), SharedMemory(paths[1]), switch.port_counts(1)
        hostile.put(TO_HOST + READ, read)
        for number in range(800):
            send(honest, frame(1, number, 9000), frame(2, number))
            assert received(honest) == [tail(frame(2, number))], read
        counts = switch.port_counts(1)
        sent, dropped = counts.sent - before.sent, counts.dropped - before.dropped
        assert sent + dropped == 800 and dropped > 0, read
        hostile.close()
        honest.close()
    works(paths)


@pytest.mark.parametrize("seed", range(2))
def test_shm_random_memory_never_stops_the_switch(switch: Switch, paths: list[Path], seed: int) -> None:
    """Random values at random places, while frames of another process pass."""
    rng = random.Random(seed)
    hostile, honest = Hostile(paths[0]), SharedMemory(paths[1])
    values = (0, 1, 8, 63, 64, 65, 128, 1408, 65536, 65537, RING_BYTES - 64, RING_BYTES, RING_BYTES + 64, 2**31,
              2**32 - 1, 2**32, 2**63, 2**64 - 64, 2**64 - 1)  # fmt: skip
    fields = [ring + at for ring in (TO_SWITCH, TO_HOST) for at in (WRITTEN, READ, ASLEEP)]
    for number in range(300):
        for _ in range(rng.randrange(1, 6)):
            at = rng.choice([*fields, TO_SWITCH + BYTES + rng.randrange(RING_BYTES // 64) * 64])
            near = hostile.get(rng.choice(fields)) + rng.randrange(-4, 5) * 64
            hostile.put(at, rng.choice([*values, near, rng.getrandbits(64)]))
        hostile.ring(rng.choice((0, 1, 1000)))
        send(honest, frame(2, number))
        assert [data[:4] for data in received(honest)] == [number.to_bytes(4, "big")]
        if rng.random() < 0.02:
            hostile.close()
            until(lambda: free(paths[0]), "the port is free")
            hostile = Hostile(paths[0])
    hostile.close()
    honest.close()
    works(paths)


def test_shm_port_survives_many_short_connections(switch: Switch, paths: list[Path]) -> None:
    """They do not take the memory, and are more than may wait at a time."""
    for _ in range(50):
        visitors = [socket.socket(socket.AF_UNIX) for _ in range(8)]
        for visitor in visitors:
            visitor.setblocking(False)
            visitor.connect_ex(str(paths[0]))
        for visitor in visitors:
            visitor.close()
    works(paths)


# -- a switch that lacks something ------------------------------------------------------------------------------


@contextlib.contextmanager
def limited(what: int, most: int) -> Iterator[None]:
    """This process, and so its switch, with such a limit."""
    before = resource.getrlimit(what)
    resource.setrlimit(what, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


def test_switch_without_memory_for_a_shm_port_says_so(switch: Switch, paths: list[Path]) -> None:
    with (
        limited(resource.RLIMIT_FSIZE, 1 << 20),
        pytest.raises(TransportError, match=f"cannot use the switch's port {paths[0]}: File too large"),
    ):
        SharedMemory(paths[0])
    works(paths)


def test_shm_ports_forward_while_poll_fails(ends: list[SharedMemory]) -> None:
    """Where poll has no memory; here it is given more descriptors than the process may have."""
    with limited(resource.RLIMIT_NOFILE, 3):
        for number in range(3):
            passes(ends[0], ends[1], 2, number)
