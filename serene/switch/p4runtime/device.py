"""The switch that the server controls: its ports, and the program they run through at the moment.

A new program is compiled before the old one stops, so a program that cannot run leaves the old one running.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from finsy.proto import p4r

from serene.errors import SereneError, choices
from serene.switch.engine import Digest, Events, PortError, Switch
from serene.switch.p4runtime.entities import Entities
from serene.switch.p4runtime.pipeline import Schema
from serene.switch.p4runtime.status import Code, Failure, invalid
from serene.switch.p4runtime.values import encode, pack_metadata, unpack_metadata

POLL_S = 0.2  # how long a stopping pump may take


@dataclass(frozen=True)
class InterfacePort:
    number: int
    interface: str

    def check(self) -> None:
        """PortError where the interface is missing or may not be opened."""
        try:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as probe:
                probe.bind((self.interface, 0))
        except PermissionError:
            raise PortError(f"no permission to open {self.interface!r}: run as root, or use udp: ports") from None
        except OSError as error:
            names = choices(name for _, name in socket.if_nameindex())
            raise PortError(f"cannot open interface {self.interface!r}: {error.strerror}; there are {names}") from None

    def attach(self, switch: Switch) -> None:
        switch.add_interface(self.number, self.interface)

    def __str__(self) -> str:
        return f"{self.number}@{self.interface}"


@dataclass(frozen=True)
class UdpPort:
    """Frames in UDP datagrams on loopback; without a peer, the first sender becomes it."""

    number: int
    local: int
    peer: int | None = None

    def check(self) -> None:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("127.0.0.1", self.local))
        except OSError as error:
            raise PortError(f"cannot open UDP port {self.local}: {error.strerror}; choose another one") from None

    def attach(self, switch: Switch) -> None:
        switch.add_udp(self.number, ("127.0.0.1", self.local), ("127.0.0.1", self.peer) if self.peer else None)

    def __str__(self) -> str:
        return f"{self.number}@udp:{self.local}" + (f":{self.peer}" if self.peer else "")


Port = InterfacePort | UdpPort


class Device:
    """Ports and program. The service's lock guards every method but the pump's own thread."""

    def __init__(
        self, ports: Sequence[Port], *, cpu_port: int | None, drop_port: int, deliver: Callable[[p4r.StreamMessageResponse], None]
    ) -> None:
        self._ports = tuple(ports)
        self._cpu_port = cpu_port
        self._drop_port = drop_port
        self._deliver = deliver
        self._pump: threading.Thread | None = None
        self._running = threading.Event()
        self._digests_unacknowledged: dict[tuple[int, int], tuple[float, set[tuple[int, ...]]]] = {}
        self._next_list_id = 1
        self.switch: Switch | None = None
        self.config: p4r.ForwardingPipelineConfig | None = None
        self.schema: Schema | None = None
        self.entities: Entities | None = None

    def verify(self, config: p4r.ForwardingPipelineConfig) -> tuple[Switch, Schema]:
        """Compiles a configuration; INVALID_ARGUMENT names what does not fit."""
        if not config.p4_device_config:
            raise invalid("the configuration has no device config; expected BMv2's JSON")
        try:
            switch = Switch.load(config.p4_device_config, cpu_port=self._cpu_port, drop_port=self._drop_port)
        except SereneError as error:
            raise invalid(str(error)) from error
        try:
            return switch, Schema(config.p4info, switch.program)
        except Failure:
            switch.close()
            raise

    def commit(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Compiles and starts a configuration in place of the present one; all state begins anew."""
        switch, schema = self.verify(config)
        self.run(switch)
        self.schema, self.entities = schema, Entities(schema, switch)
        self.config = p4r.ForwardingPipelineConfig()
        self.config.CopyFrom(config)

    def run(self, switch: Switch) -> None:
        self.stop()
        self.switch = switch
        for port in self._ports:
            port.attach(switch)
        switch.start()
        self._running.set()
        self._pump = threading.Thread(target=self._pump_events, args=(switch,), name="p4runtime-events", daemon=True)
        self._pump.start()

    def stop(self) -> None:
        self._running.clear()
        if self._pump is not None:
            self._pump.join()
            self._pump = None
        if self.switch is not None:
            self.switch.close()
        self.switch = self.schema = self.entities = self.config = None
        self._digests_unacknowledged.clear()

    def require(self) -> tuple[Switch, Schema, Entities]:
        if self.switch is None or self.schema is None or self.entities is None:
            raise Failure(Code.FAILED_PRECONDITION, "the switch has no program yet: set a forwarding pipeline config")
        return self.switch, self.schema, self.entities

    # -- packets to and from the controller ------------------------------------------------------------------

    def packet_out(self, packet: p4r.PacketOut) -> None:
        switch, schema, _ = self.require()
        if self._cpu_port is None:
            raise Failure(Code.FAILED_PRECONDITION, "the switch was started without --cpu-port: no packet-out")
        switch.packet_out(pack_metadata(schema.packet_out, packet.metadata) + packet.payload)

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        self._digests_unacknowledged.pop((ack.digest_id, ack.list_id), None)

    def _pump_events(self, switch: Switch) -> None:
        while self._running.is_set():
            events = switch.wait_events(POLL_S)
            with contextlib.suppress(Failure):  # the program went away meanwhile
                self._hand_over(events)

    def _hand_over(self, events: Events) -> None:
        schema, entities = self.schema, self.entities
        if schema is None or entities is None:
            return
        size = (sum(width for _, _, width in schema.packet_in) + 7) // 8
        for data in events.cpu_packets:
            message = p4r.StreamMessageResponse()
            message.packet.payload = data[size:]
            message.packet.metadata.extend(unpack_metadata(schema.packet_in, data[:size]))
            self._deliver(message)
        by_id: dict[int, list[Digest]] = {}
        for digest in events.digests:
            info = schema.digests_by_name.get(digest.name)
            if info is not None and info.preamble.id in entities.digests:
                by_id.setdefault(info.preamble.id, []).append(digest)
        for digest_id, digests in by_id.items():
            self._send_digests(digest_id, entities.digests[digest_id].config, digests)

    def _send_digests(self, digest_id: int, config: p4r.DigestEntry.Config, digests: Sequence[Digest]) -> None:
        """In lists of at most max_list_size; a sample that waits for its acknowledgement is not sent again."""
        now = time.monotonic()
        for key, (until, _) in list(self._digests_unacknowledged.items()):
            if until <= now:
                self._digests_unacknowledged.pop(key, None)
        waiting = {
            values for (id_, _), (_, samples) in list(self._digests_unacknowledged.items()) if id_ == digest_id
            for values in samples
        }  # fmt: skip
        fresh = list(dict.fromkeys(digest.values for digest in digests if digest.values not in waiting))
        step = config.max_list_size or len(fresh) or 1
        for start in range(0, len(fresh), step):
            samples = fresh[start : start + step]
            message = p4r.StreamMessageResponse()
            message.digest.digest_id = digest_id
            message.digest.list_id = self._next_list_id
            message.digest.timestamp = time.time_ns()
            for values in samples:
                members = message.digest.data.add().struct.members
                for value in values:
                    members.add().bitstring = encode(value)
            if config.ack_timeout_ns:
                until = now + config.ack_timeout_ns / 1e9
                self._digests_unacknowledged[digest_id, self._next_list_id] = (until, set(samples))
            self._next_list_id += 1
            self._deliver(message)
