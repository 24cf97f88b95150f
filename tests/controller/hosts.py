"""Hosts for tests of the controller: they send and receive whole frames at a switch's port, without the client
library."""

from __future__ import annotations

import itertools
import json
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from serene.wire import (
    HEADER,
    SERENE_UDP_PORT,
    SWITCH_IP,
    SWITCH_MAC,
    Op,
    control_payload,
    encapsulation,
    membership,
)

PATIENCE_S = 120.0
LANES = 320
# <linux/if_packet.h>, <linux/if_ether.h>; the socket module has no names for them.
_SOL_PACKET, _PACKET_IGNORE_OUTGOING, _ETH_P_ALL = 263, 23, 3


class Link(Protocol):
    """The other end of a switch's port."""

    def send(self, frame: bytes) -> None: ...
    def receive(self, timeout_s: float) -> bytes | None: ...
    def close(self) -> None: ...


def udp_end(local: int, switch: int) -> socket.socket:
    """A host's end of an embedded switch's port, which carries frames in UDP datagrams of loopback. local, switch: UDP
    ports of the host and of the switch."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", local))
    made.connect(("127.0.0.1", switch))
    return made


def packet_end(interface: str) -> socket.socket:
    """One end of a veth pair whose other end the switch has: a packet socket that does not hear what it sends."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)  # it hears nothing before it is bound
    made.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    made.bind((interface, _ETH_P_ALL))
    return made


class FrameLink:
    """A socket that carries a frame in each of its packets."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self, timeout_s: float) -> bytes | None:
        self._socket.settimeout(timeout_s)
        try:
            return self._socket.recv(65535)
        except TimeoutError:
            return None

    def close(self) -> None:
        self._socket.close()


class Caught:
    """A link that sends nothing but keeps the frames, for a test to send them later, and faster."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)

    def receive(self, timeout_s: float) -> bytes | None:
        return None

    def close(self) -> None: ...


@dataclass(frozen=True)
class Answer:
    """A packet that a host got from the switch or the controller."""

    header: np.void
    body: bytes

    @property
    def op(self) -> Op:
        return Op(int(self.header["op"]))

    def __getitem__(self, field: str) -> int:
        return int(self.header[field])

    @property
    def text(self) -> str:
        return self.body.decode()


class Host:
    """A host at a port of the switch, which sends a worker's packets and receives the answers, one at a time."""

    def __init__(self, number: int, link: Link, *, ip: str | None = None, mac: str | None = None) -> None:
        self.ip = ip or f"10.0.0.{number}"
        self.mac = mac or f"02:00:00:00:00:{number:02x}"
        self.udp_port = 40000 + number
        self.incarnation = 1000 + number
        self.link = link
        self._proof = 0  # the number by which the controller wants a HELLO to prove that its answers arrive
        self._hello: Callable[[], None] = lambda: None  # sends the last HELLO again
        self._heard: deque[Answer] = deque()

    def send(self, op: Op, job: int, worker: int, body: bytes = b"", **fields: int) -> None:
        payload = control_payload(op, body, **{"job": job, "worker": worker, "incarnation": self.incarnation, **fields})
        source = (self.mac, self.ip, self.udp_port)
        to = (SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT)
        self.link.send(encapsulation(len(payload), source=source, destination=to) + payload)

    def say_hello(self, job: int, worker: int, vector_length: int, session: int = 0, epoch: int = 0) -> None:
        """Sends a HELLO. ``epoch``: not 0 for a worker that does not join, but asks whether its session continues."""
        body = membership(vector_length=vector_length)
        self._hello = lambda: self.send(Op.HELLO, job, worker, body, session=session, epoch=epoch, seq=self._proof)
        self._hello()

    def hello(self, job: int, worker: int, vector_length: int, session: int = 0, epoch: int = 0) -> None:
        """Sends a HELLO, and again with the number if the controller asks for one. ``hear`` returns what else came."""
        self.say_hello(job, worker, vector_length, session, epoch)
        while (answer := self._next(0.15)) is not None:
            self._heard.append(answer)
            if answer.op in (Op.WELCOME, Op.WAIT, Op.REFUSED):
                return

    def push(self, job: int, worker: int, values: list[int], **fields: int) -> None:
        lanes = np.zeros(LANES, ">i4")
        lanes[: len(values)] = values
        self.send(Op.PUSH, job, worker, lanes.tobytes(), **fields)

    def leave(self, job: int, worker: int, contributions_sent: int = 0) -> None:
        self.send(Op.LEAVE, job, worker, json.dumps({"contributions_sent": contributions_sent}).encode())

    def report(self, job: int, worker: int, **facts: object) -> None:
        self.send(Op.REPORT, job, worker, json.dumps(facts).encode())

    def hear(self, timeout_s: float) -> Answer | None:
        """The next Serene packet for this host's UDP port, None if none comes in time. Other packets are dropped."""
        return self._heard.popleft() if self._heard else self._next(timeout_s)

    def _next(self, timeout_s: float) -> Answer | None:
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            got = self.link.receive(left)
            if got is None:
                return None
            if (
                got[12:14] == b"\x08\x00"
                and got[23] == 17
                and struct.unpack_from("!HH", got, 34) == (SERENE_UDP_PORT, self.udp_port)
            ):
                length = struct.unpack_from("!H", got, 38)[0]
                answer = Answer(np.frombuffer(got, HEADER, 1, 42)[0], got[42 + HEADER.itemsize : 34 + length])
                if not self._must_prove(answer):
                    return answer
        return None

    def _must_prove(self, answer: Answer) -> bool:
        """Whether an answer asks for a number; sends the HELLO again with it, if it is for this host and new."""
        wanted = answer.op is Op.WAIT and answer["seq"]
        if wanted and answer["incarnation"] == self.incarnation and answer["seq"] != self._proof:
            self._proof = answer["seq"]
            self._hello()
        return bool(wanted)

    def ask(self, request: Callable[[], object], *expected: Op, echoing: int | None = None) -> Answer:
        """Repeats a request, as a worker does, until one of the expected answers comes, and returns it. echoing:
        ignores answers to other sessions, which may come late."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            request()
            answer = self.hear(0.2)
            while answer is not None:
                if answer.op in expected and echoing in (None, answer["session"]):
                    return answer
                answer = self.hear(0.05)
        raise AssertionError(f"no {' or '.join(op.name for op in expected)} within {PATIENCE_S} s")

    def hears(self, text: bytes, timeout_s: float) -> bool:
        """Whether a frame with this text comes, and no pause longer than that before it. Other frames are dropped."""
        frame = self.link.receive(timeout_s)
        while frame is not None and text not in frame:
            frame = self.link.receive(timeout_s)
        return frame is not None

    def forget(self) -> None:
        """Discards received packets."""
        self._heard.clear()
        while self.link.receive(0.01) is not None:
            pass


def ethernet(destination: str, source: str, text: bytes = b"") -> bytes:
    """A frame of a protocol that no switch looks at."""
    return bytes.fromhex((destination + source).replace(":", "")) + b"\x88\xb5" + text.ljust(50, b".")


_numbers = itertools.count()


def reaches_only(sender: Host, mac: str, receiver: Host, other: Host) -> bool:
    """Whether a frame to this address comes out of the receiver's port and not of the other's."""
    text = b"no %d." % next(_numbers)
    for host in (receiver, other):
        host.forget()
    sender.link.send(ethernet(mac, sender.mac, text))
    return receiver.hears(text, 1.0) and not other.hears(text, 0.1)


def join(hosts: list[Host], job: int, vector_length: int = 5) -> list[Answer]:
    """Has all hosts join as workers 0, 1 and so on, and returns their WELCOMEs."""

    def hello(worker: int) -> Callable[[], None]:
        return lambda: hosts[worker].hello(job, worker, vector_length)

    for worker in range(len(hosts) - 1):
        hosts[worker].ask(hello(worker), Op.WAIT)
    welcomes = [hosts[-1].ask(hello(len(hosts) - 1), Op.WELCOME)]
    return [hosts[worker].ask(hello(worker), Op.WELCOME) for worker in range(len(hosts) - 1)] + welcomes
