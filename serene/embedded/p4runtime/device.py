"""The switch that the server controls: its ports and its running program.

A new program is compiled before the old one stops. So if the new one cannot run, the old one continues. A saved program
exists beside the running one: controllers fill its tables before it gets the ports.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4r

from serene.embedded.control.types import ControlError, Events
from serene.embedded.engine import Switch
from serene.embedded.p4runtime.device_config import program_json
from serene.embedded.p4runtime.entities import Entities
from serene.embedded.p4runtime.observers import Observers
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.ports import InterfacePort, Port
from serene.embedded.p4runtime.reconciling import carry_over_counts, carry_over_entries, check_counts
from serene.embedded.p4runtime.status import Code, Failure, invalid, refused
from serene.embedded.program.crcs import Crc
from serene.errors import SereneError

POLL_S = 0.2  # seconds between the event thread's checks whether it has to stop
LOST_EVERY_S = 1.0  # seconds between log lines about losses

log = logging.getLogger("serene.switch")


@dataclass(frozen=True)
class Pipeline:
    """A program that a controller has set, with all its state."""

    switch: Switch
    config: p4r.ForwardingPipelineConfig
    schema: Schema
    entities: Entities


class Device:
    """Ports and programs. Callers have the service's lock, except for ``load`` and ``prepare``.

    A separate thread reads events.
    """

    def __init__(
        self,
        ports: Sequence[Port],
        *,
        cpu_port: int | None,
        drop_port: int,
        deliver: Callable[[p4r.StreamMessageResponse], bool],
        captures: Path | None = None,
        crcs: Sequence[tuple[str, Crc | int]] = (),
    ) -> None:
        self._crcs = crcs
        self.observers = Observers(captures)
        self._ports = tuple(ports)
        self._cpu_port = cpu_port
        self._drop_port = drop_port
        self._deliver = deliver
        self._switch: Switch | None = None  # the running program
        self._pipeline: Pipeline | None = None  # the running program, if a controller has set it
        self._saved: Pipeline | None = None
        self._event_thread: threading.Thread | None = None
        self._stopping = threading.Event()

    # -- programs --------------------------------------------------------------------------------------------

    def save(self, pipeline: Pipeline) -> None:
        """From now on controllers read and write this program's state, while the old program still runs."""
        self._drop_saved()
        self._saved = pipeline

    def commit(self, pipeline: Pipeline) -> None:
        """Replaces the running program by a new one with initial state."""
        self._drop_saved()
        self._start(pipeline.switch, pipeline)

    def reconcile(self, pipeline: Pipeline) -> None:
        """Replaces the running program by a new one, which keeps its state. Raises INVALID_ARGUMENT if the state does
        not fit."""
        old, switch = self._pipeline, self._switch
        try:
            if old is not None:
                carry_over_entries(old.entities, pipeline.entities)
            if switch is not None:
                tables = (old.entities.tables, pipeline.entities.tables) if old is not None else None
                check_counts(switch, pipeline.switch, tables)  # detects most mismatches before the old one stops
                switch.stop()  # from now on packets wait at the ports
                try:
                    carry_over_counts(switch, pipeline.switch, tables)
                except BaseException:
                    switch.start()
                    raise
        except BaseException:
            pipeline.switch.close()
            raise
        self.commit(pipeline)

    def commit_saved(self) -> None:
        if self._saved is None:
            raise Failure(Code.NOT_FOUND, "no configuration is saved: VERIFY_AND_SAVE one first")
        pipeline, self._saved = self._saved, None
        self._start(pipeline.switch, pipeline)

    @property
    def saved(self) -> Switch | None:
        """The program that ``commit_saved`` would start."""
        return self._saved.switch if self._saved is not None else None

    def run(self, switch: Switch) -> None:
        """Starts a program that no controller has set. It has no P4Info, so no controller can write to it."""
        self._start(switch, None)

    def stop(self) -> None:
        self._drop_saved()
        self._stop_running()

    def load(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        """Compiles a program, which takes seconds. So callers must not have the lock.

        Raises INVALID_ARGUMENT if it cannot run, RESOURCE_EXHAUSTED or INTERNAL if this machine cannot compile it.
        """
        if not config.p4_device_config:
            raise invalid("the configuration has no device config; expected BMv2's JSON")
        try:
            switch = Switch.load(
                program_json(config.p4_device_config), cpu_port=self._cpu_port, drop_port=self._drop_port
            )
        except SereneError as error:
            raise refused(error) from error
        try:
            for calculation, crc in self._crcs:
                try:
                    switch.crc_set(calculation, crc)
                except ControlError as error:
                    log.warning("--crc %s: %s", calculation, error)
            self.prepare(switch)
            names = {port.label: port.number for port in self._ports if isinstance(port, InterfacePort)}
            schema = Schema(config.p4info, switch.program, names)
            kept = p4r.ForwardingPipelineConfig()
            kept.CopyFrom(config)
            return Pipeline(switch, kept, schema, Entities(schema, switch, self._deliver))
        except BaseException:
            switch.close()
            raise

    def prepare(self, switch: Switch) -> None:
        """Compiles a program's library for watchers. Callers must not have the lock, as for ``load``."""
        try:
            self.observers.prepare(switch)
        except SereneError as error:
            raise refused(error) from error

    def _start(self, switch: Switch, pipeline: Pipeline | None) -> None:
        self._stop_running()
        try:
            for port in self._ports:
                port.attach(switch)
            self.observers.begin(switch, self._ports)
            switch.start()
        except SereneError as error:
            self.observers.end()
            switch.close()
            raise Failure(Code.UNAVAILABLE, f"no program is running: {error}") from error
        self._switch, self._pipeline = switch, pipeline
        self._stopping.clear()
        event_thread = threading.Thread(
            target=self._read_events, args=(switch, pipeline), name="p4runtime-events", daemon=True
        )
        event_thread.start()
        self._event_thread = event_thread  # only now: a thread that has not started cannot be joined

    def _stop_running(self) -> None:
        self._stopping.set()
        if self._event_thread is not None:
            self._event_thread.join()
        if self._switch is not None:
            self._switch.stop()  # before the observers end, so that they get every packet
            self._hand_over(self._switch.wait_events(0), self._pipeline)  # events since the thread's last read
        self.observers.end()
        if self._switch is not None:
            self._switch.close()
        self._switch = self._pipeline = self._event_thread = None

    def _drop_saved(self) -> None:
        if self._saved is not None:
            self._saved.switch.close()
            self._saved = None

    # -- for controllers -------------------------------------------------------------------------------------

    @property
    def config(self) -> p4r.ForwardingPipelineConfig:
        """The pipeline that was set last, running or saved."""
        return self._controlled().config

    @property
    def running(self) -> Switch | None:
        return self._switch

    @property
    def controlled(self) -> bool:
        """Whether a controller has set a program, running or saved."""
        return (self._saved or self._pipeline) is not None

    @property
    def entities(self) -> Entities:
        return self._controlled().entities

    def _controlled(self) -> Pipeline:
        pipeline = self._saved or self._pipeline
        if pipeline is None:
            program = "a program without a P4Info" if self._switch else "no program"
            raise Failure(
                Code.FAILED_PRECONDITION,
                f"no forwarding pipeline config is set (the switch runs {program}): set one first",
            )
        return pipeline

    def packet_out(self, packet: p4r.PacketOut) -> None:
        if self._pipeline is None:
            raise Failure(Code.FAILED_PRECONDITION, "no forwarding pipeline config runs: commit one first")
        if self._cpu_port is None:
            raise Failure(Code.FAILED_PRECONDITION, "the switch was started without --cpu-port: no packet-out")
        header = self._pipeline.schema.translation.packet_out.pack(packet.metadata)
        try:
            self._pipeline.switch.packet_out(header + packet.payload)
        except ControlError as error:
            raise invalid(str(error)) from error

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        if self._pipeline is not None:
            self._pipeline.entities.digests.acknowledge(ack)

    # -- from the data plane ---------------------------------------------------------------------------------

    def _read_events(self, switch: Switch, pipeline: Pipeline | None) -> None:
        wait_s: float = POLL_S
        lost, tell_at = 0, 0.0
        while not self._stopping.is_set():
            self._hand_over(switch.wait_events(wait_s), pipeline)
            wait_s = self._send_due(pipeline)
            self.observers.log_ended_captures()
            if pipeline is not None and switch.lost_events > lost and time.monotonic() >= tell_at:
                log.warning(
                    "%d packet-ins, packet-outs or digests were lost: too many at once",
                    switch.lost_events - lost,
                )
                lost, tell_at = switch.lost_events, time.monotonic() + LOST_EVERY_S

    def _hand_over(self, events: Events, pipeline: Pipeline | None) -> None:
        """Passes events to the controllers if the program has a P4Info. After an unexpected error these events are
        lost, but later ones are not."""
        if pipeline is None:
            return
        try:
            self._send_to_controllers(events, pipeline)
        except Exception:
            log.exception("packets and digests for controllers are lost")

    def _send_due(self, pipeline: Pipeline | None) -> float:
        """Sends digest lists and idle notifications that are due. Returns the seconds until more may be due."""
        if pipeline is None:
            return POLL_S
        try:
            pipeline.entities.idle.send_due()
            due_s = pipeline.entities.digests.send_due()
        except Exception:
            log.exception("idle timeouts or digests could not be sent")
            return POLL_S
        return POLL_S if due_s is None else min(due_s, POLL_S)

    def _send_to_controllers(self, events: Events, pipeline: Pipeline) -> None:
        header = pipeline.schema.translation.packet_in
        for data in events.cpu_packets:
            if len(data) < header.bytes:
                log.warning("dropped a packet-in that is shorter than its packet_in header")
                continue
            message = p4r.StreamMessageResponse()
            message.packet.payload = data[header.bytes :]
            message.packet.metadata.extend(header.unpack(data[: header.bytes]))
            self._deliver(message)
        for digest in events.digests:
            name = pipeline.schema.digest_names.get(digest.list_id, "")
            pipeline.entities.digests.add(name, digest.values, digest.valid)
