"""A port of the embedded switch that is memory shared with it: frames without system calls, on one machine.

The switch listens at the port's path. A process that connects gets the port's memory, and has the port until its
connection ends. If the process dies, the kernel ends it. (``shm.c``, ``serene/embedded/runtime/shm.h``)
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import numpy as np

from serene.client.compiled.fastpath import Link, library
from serene.client.transport.transport import Framed, PortTaken, TransportError, Trouble, next_trouble
from serene.wire import SWITCH_IP, SWITCH_MAC

FIRST_TIMEOUT_MS, AGAIN_TIMEOUT_MS = 5000, 200  # for the switch to pass the memory
BATCH = 128  # frames that one call receives
LARGEST_FRAME = 65536  # bytes


class End(ctypes.Structure):
    """``struct shm_end``."""

    _fields_ = (
        *[(name, ctypes.c_void_p) for name in ("memory", "into", "out")],
        *[(name, ctypes.c_uint64) for name in (
            "written", "read", "published", "out_read", "in_written", "rewound", "most_unread",
        )],
        ("socket", ctypes.c_int32),
        ("closed", ctypes.c_uint32),
    )  # fmt: skip


class SharedMemory:
    """This process's end of the port at a path. When the switch has ended, each call tries to attach to a new one.
    Until then packets are lost, and ``trouble`` has the reason. Raises TransportError, PortTaken if another process has
    the port."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        compiled = library()
        if compiled is None:
            raise TransportError("ports of shared memory need a C compiler (apt install gcc libc6-dev)")
        if not isinstance(path, str | os.PathLike) or "\0" in (name := str(path)) or not name:
            raise TransportError(f"the switch's port {path!r}: expected a path")
        self._compiled = compiled
        self._path = Path(path)
        self._end = End(socket=-1)
        self.trouble: Trouble | None = None
        error = self._attach(FIRST_TIMEOUT_MS)
        if error:
            kind = PortTaken if error == errno.EBUSY else TransportError
            raise kind(f"cannot use the switch's port {path}: {self._error_text(error)}")
        self._rows: np.ndarray | None = None
        self._lengths = np.zeros(BATCH, np.int64)

    @staticmethod
    def _error_text(error: int) -> str:
        return {
            errno.EBUSY: "another process has it",
            errno.ENOENT: "no such path",
            errno.ECONNREFUSED: "no switch listens there",
            errno.ETIMEDOUT: "the switch does not answer",
            errno.EPROTO: "the program there is not a switch of this version",
        }.get(error, os.strerror(error))

    def _attach(self, timeout_ms: int) -> int:
        return -int(self._compiled.shm_attach(ctypes.byref(self._end), os.fsencode(self._path), timeout_ms))

    def _attached(self, size: int) -> bool:
        """Whether the switch is connected, perhaps after attaching again."""
        if not self._compiled.shm_attached(ctypes.byref(self._end)):
            self._compiled.shm_detach(ctypes.byref(self._end))
            self.note(self._attach(AGAIN_TIMEOUT_MS), size)
        return bool(self._end.memory)

    @property
    def address(self) -> int:
        """The address of ``struct shm_end``, for the fast path; it never changes."""
        return ctypes.addressof(self._end)

    def route(self) -> str:
        return f"shared memory at {self._path}"

    def send_rows(self, rows: np.ndarray) -> None:
        """rows: uint8[n, bytes], frames. Frames for which the ring to the switch has no room are lost."""
        if self._attached(rows.shape[1]) and len(rows):
            rows = np.ascontiguousarray(rows)
            data = ctypes.c_void_p(rows.ctypes.data)
            size = ctypes.c_uint32(rows.shape[1])
            sent = self._compiled.shm_send_frames(ctypes.byref(self._end), data, len(rows), size)
            self.note(0 if sent == len(rows) else errno.EAGAIN, rows.shape[1])

    def note(self, refused: int, size: int) -> None:
        self.trouble = next_trouble(self.trouble, refused, size)

    def receive_rows(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        if self._rows is None:
            self._rows = np.zeros((BATCH, LARGEST_FRAME), np.uint8)
        self._attached(0)
        count = self._compiled.shm_receive_frames(
            ctypes.byref(self._end), ctypes.c_void_p(self._rows.ctypes.data), ctypes.c_uint32(LARGEST_FRAME), BATCH,
            ctypes.c_void_p(self._lengths.ctypes.data), int(max(timeout_s, 0) * 1000),
        )  # fmt: skip
        return self._rows[:count], self._lengths[:count].copy()

    def close(self) -> None:
        if self._end.memory:
            self._compiled.shm_detach(ctypes.byref(self._end))


class ShmTransport(Framed):
    """Ethernet frames through a shared-memory port of an embedded switch on this machine.

    path: the port's. worker, switch_ip, switch_mac, udp_port: as of `FrameTransport`. Raises TransportError, PortTaken
    if another process has the port.
    """

    def __init__(
        self,
        worker: int,
        path: str | os.PathLike[str],
        *,
        switch_ip: str = SWITCH_IP,
        switch_mac: str = SWITCH_MAC,
        udp_port: int = 40000,
    ) -> None:
        self._memory = SharedMemory(path)
        super().__init__(self._memory, worker, switch_ip, switch_mac, udp_port)

    def link(self, payload_bytes: int) -> Link:
        return self._link(payload_bytes, shm=self._memory.address)
