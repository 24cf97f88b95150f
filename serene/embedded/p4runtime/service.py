"""The gRPC service of one device: streams, writes, reads and pipeline configurations."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import grpc
from finsy.proto import p4r, p4r_grpc

from serene.embedded.engine import Switch
from serene.embedded.p4runtime.arbitration import Arbitration, IdInUse, Session, role_name
from serene.embedded.p4runtime.device import Device
from serene.embedded.p4runtime.observers import Watcher
from serene.embedded.p4runtime.parts import parts_of
from serene.embedded.p4runtime.ports import Port
from serene.embedded.p4runtime.status import (
    Code,
    Failure,
    batch_status,
    denied,
    invalid,
    not_found,
    number,
    shortened,
    unimplemented,
)
from serene.embedded.p4runtime.waiting import MAX_ENDING, BoundedCalls, Waiting
from serene.embedded.p4runtime.watching import Watching
from serene.embedded.program.crcs import Crc
from serene.errors import SereneError, choices

API_VERSION = "1.4.1"
MAX_MESSAGE_BYTES = 64 << 20  # a pipeline configuration is one message
MAX_CALLS = 512  # at the same time, each with a thread; more are refused. `waiting` bounds those that wait for a peer
MAX_CALLS_OF_ONE = 128  # of one connection
ID_BECOMES_FREE_S = 1.0  # how long a new stream waits for its election id to become free
MAX_CONNECTIONS = 640  # more than calls can keep open, and fewer than the 1,024 files that a process may often have
IDLE_MS = 30_000  # for which a connection may be open without a call
STOP_S = 5.0  # how long stopping waits for calls to end
MAX_COMPILING = 4  # configurations that compile or wait for the compiler
MAX_UPDATES = 65536  # of one Write; also entities of one Read. Other calls wait meanwhile
MAX_ENTITIES = 1 << 18  # in the answer to one Read
MAX_LOOKED_AT = 1 << 20  # table entries that one Read examines. Other calls wait meanwhile
ECHO_BYTES = 4096  # of a packet-out, in the error that it caused

T = TypeVar("T")
log = logging.getLogger("serene.switch")
Config = p4r.SetForwardingPipelineConfigRequest
LOADING = (Config.VERIFY, Config.VERIFY_AND_SAVE, Config.VERIFY_AND_COMMIT, Config.RECONCILE_AND_COMMIT)


class ServerError(SereneError):
    """The server could not start."""


@dataclass(frozen=True)
class _Written:
    """A WriteRequest, and its encoded bytes: the engine decodes most updates itself."""

    message: p4r.WriteRequest
    data: bytes

    @classmethod
    def parse(cls, data: bytes) -> _Written:
        return cls(p4r.WriteRequest.FromString(data), data)


class _Service(p4r_grpc.P4RuntimeServicer):
    def __init__(self, arbitration: Arbitration, device: Device, lock: threading.RLock) -> None:
        self._arbitration = arbitration
        self._device = device
        self._lock = lock
        self._left = threading.Condition(lock)  # a stream ended
        self._compiling = threading.Lock()  # taken before the other lock
        self._waiting_to_compile = threading.BoundedSemaphore(MAX_COMPILING)
        self._ending = Waiting(MAX_ENDING, "a client that does not read the end of its stream")

    # -- unary calls -----------------------------------------------------------------------------------------

    def Capabilities(self, request: p4r.CapabilitiesRequest, context: grpc.ServicerContext) -> p4r.CapabilitiesResponse:
        if request.device_id:
            self._guarded(context, lambda: self._check_device(request.device_id))
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def Write(self, request: _Written, context: grpc.ServicerContext) -> p4r.WriteResponse:
        results = self._guarded(context, lambda: self._write(request.message, request.data))
        if any(results):
            message, details = batch_status(results)
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
            context.abort(Code.UNKNOWN, message)
        return p4r.WriteResponse()

    def _write(self, request: p4r.WriteRequest, data: bytes) -> list[Failure | None]:
        self._check_writer(request)
        entities = self._device.entities
        if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
            raise unimplemented("only the atomicity CONTINUE_ON_ERROR is supported")
        if len(request.updates) > MAX_UPDATES:
            raise invalid(f"{len(request.updates)} updates; one Write takes {MAX_UPDATES} at most")
        return entities.write_all(request.updates, data)

    def Read(self, request: p4r.ReadRequest, context: grpc.ServicerContext) -> Iterator[p4r.ReadResponse]:
        found = self._guarded(context, lambda: self._read(request))
        for entities in parts_of(found):
            yield p4r.ReadResponse(entities=entities)

    def _read(self, request: p4r.ReadRequest) -> list[p4r.Entity]:
        self._check_device(request.device_id)  # no check of the role: each role has access to everything
        entities = self._device.entities
        if len(request.entities) > MAX_UPDATES:
            raise invalid(f"{len(request.entities)} entities asked for; one Read takes {MAX_UPDATES} at most")
        result: list[p4r.Entity] = []
        most = entities.tables.looked_at + MAX_LOOKED_AT
        for wanted in request.entities:
            result += islice(entities.read(wanted), MAX_ENTITIES + 1 - len(result))
            if len(result) > MAX_ENTITIES:
                raise Failure(Code.RESOURCE_EXHAUSTED, f"more than {MAX_ENTITIES} entities: read them in parts")
            if entities.tables.looked_at > most:
                raise Failure(
                    Code.RESOURCE_EXHAUSTED,
                    f"more than {MAX_LOOKED_AT} table entries to look at: give their matches and priorities, or read "
                    "them in parts",
                )
        return result

    def SetForwardingPipelineConfig(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        self._guarded(context, lambda: self._set_pipeline(request), lock=False)
        return p4r.SetForwardingPipelineConfigResponse()

    def _set_pipeline(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        with self._lock:
            self._check_writer(request)
        if request.action in LOADING:
            self._load(request)
        elif request.action == Config.COMMIT:
            if request.HasField("config"):
                raise invalid("COMMIT takes no configuration: it commits the saved one")
            with self._when_prepared(lambda: self._device.saved):
                self._check_writer(request)
                self._device.commit_saved()
        else:
            raise invalid(f"an action is missing: {choices([*map(Config.Action.Name, LOADING), 'COMMIT'])}")

    def _load(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Compiles without the lock, so that other calls are served meanwhile. The configuration that is compiled last
        wins."""
        if not self._waiting_to_compile.acquire(blocking=False):
            raise Failure(Code.RESOURCE_EXHAUSTED, f"{MAX_COMPILING} configurations are being set: wait for them")
        try:
            with self._compiling:
                pipeline = self._device.load(request.config)
                with self._when_prepared(lambda: pipeline.switch):
                    try:
                        self._check_writer(request)  # it may no longer be the primary
                    except Failure:
                        pipeline.switch.close()
                        raise
                    if request.action == Config.VERIFY:
                        pipeline.switch.close()
                    elif request.action == Config.VERIFY_AND_SAVE:
                        self._device.save(pipeline)
                    elif request.action == Config.RECONCILE_AND_COMMIT:
                        self._device.reconcile(pipeline)
                    else:
                        self._device.commit(pipeline)
        finally:
            self._waiting_to_compile.release()

    @contextlib.contextmanager
    def _when_prepared(self, next_one: Callable[[], Switch | None]) -> Iterator[None]:
        """Takes the lock when the next program's library for observers is compiled. An observer may have connected
        after the program was compiled, and compiling takes seconds."""
        while True:
            with self._lock:
                switch = next_one()
                if switch is None or self._device.observers.is_prepared(switch):
                    yield
                    return
            self._device.prepare(switch)

    def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        return self._guarded(context, lambda: self._get_pipeline(request))

    def _get_pipeline(self, request: p4r.GetForwardingPipelineConfigRequest) -> p4r.GetForwardingPipelineConfigResponse:
        self._check_device(request.device_id)
        kinds = p4r.GetForwardingPipelineConfigRequest
        if request.response_type not in kinds.ResponseType.values():
            raise invalid(f"response type {request.response_type}: expected {choices(kinds.ResponseType.keys())}")
        config, answer = self._device.config, p4r.GetForwardingPipelineConfigResponse()
        answer.config.SetInParent()
        if config.HasField("cookie"):
            answer.config.cookie.CopyFrom(config.cookie)
        if request.response_type in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
            answer.config.p4info.CopyFrom(config.p4info)
        if request.response_type in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
            answer.config.p4_device_config = config.p4_device_config
        return answer

    def _guarded(self, context: grpc.ServicerContext, call: Callable[[], T], *, lock: bool = True) -> T:
        try:
            with self._lock if lock else contextlib.nullcontext():
                return call()
        except Failure as failure:
            context.abort(failure.code, failure.message)
            raise AssertionError("abort raises") from failure
        except Exception as error:
            log.exception("a request failed")
            context.abort(Code.INTERNAL, shortened(f"a defect of the switch: {type(error).__name__}: {error}"))
            raise AssertionError("abort raises") from error

    def _check_device(self, device_id: int) -> None:
        held = self._arbitration.device_id
        if device_id != held:
            raise not_found(f"there is no device {device_id}; this switch is device {held}")

    def _check_writer(self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest) -> None:
        self._check_device(request.device_id)
        self._arbitration.check_role(role_name(request.role, request.role_id))
        reason = self._arbitration.why_not_primary(request)
        if reason:
            raise denied(reason)

    # -- the stream ------------------------------------------------------------------------------------------

    def StreamChannel(
        self, requests: Iterator[p4r.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4r.StreamMessageResponse]:
        # Arbitration bounds the streams that are open. One that has ended for it may still wait for its client to read.
        session = Session(lambda: self._ending.add(context))
        try:
            with self._lock:
                self._arbitration.enter(session)
            context.add_callback(session.close)
            threading.Thread(target=self._serve, args=(session, requests), daemon=True).start()
            yield from session.messages()
        finally:
            self._ending.remove(context)
            with self._lock:
                self._arbitration.leave(session)
            if session.lost:
                log.warning("a controller read too slowly: %d messages for it were lost", session.lost)
        if session.failure:
            context.abort(session.failure.code, session.failure.message)

    def _serve(self, session: Session, requests: Iterator[p4r.StreamMessageRequest]) -> None:
        try:
            for request in requests:
                self._served(session, request)
        except Failure as failure:
            session.end(failure)
        except grpc.RpcError:
            log.debug("a controller's stream ended")
        except Exception as error:
            log.exception("a stream's message failed")
            session.end(Failure(Code.INTERNAL, f"a defect of the switch: {type(error).__name__}: {error}"))
        finally:
            with self._lock:  # also after a half-close: the controller may reconnect at once, with the same id
                self._arbitration.leave(session)
                self._left.notify_all()
            session.close()

    def _served(self, session: Session, request: p4r.StreamMessageRequest) -> None:
        """Serves one message. A controller's new stream may begin before its old one with the same election id has
        ended. So it waits a short time for the id to become free."""
        until = time.monotonic() + ID_BECOMES_FREE_S
        while True:
            with self._lock:
                try:
                    self._request(session, request)
                    return
                except IdInUse:
                    left_s = until - time.monotonic()
                    if left_s <= 0:
                        raise
                    self._left.wait(left_s)

    def _request(self, session: Session, request: p4r.StreamMessageRequest) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._arbitration.update(session, request.arbitration)
            return
        if not session.introduced:
            raise Failure(Code.FAILED_PRECONDITION, "the first message of a stream is a MasterArbitrationUpdate")
        try:
            if session not in self._arbitration.primaries:
                raise denied("only the primary controller may send this")
            if kind == "packet":
                self._device.packet_out(request.packet)
            elif kind == "digest_ack":
                self._device.acknowledge(request.digest_ack)
            else:
                raise unimplemented(f"stream messages of type {kind} are not supported")
        except Failure as failure:
            session.offer(_stream_error(request, kind, failure))


def _stream_error(request: p4r.StreamMessageRequest, kind: str | None, failure: Failure) -> p4r.StreamMessageResponse:
    answer = p4r.StreamMessageResponse()
    answer.error.canonical_code, answer.error.message = number(failure.code), failure.message
    if kind == "packet":
        if request.packet.ByteSize() <= ECHO_BYTES:
            answer.error.packet_out.packet_out.CopyFrom(request.packet)
        else:
            answer.error.packet_out.packet_out.payload = request.packet.payload[:ECHO_BYTES]
    elif kind == "digest_ack":
        answer.error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        answer.error.other.SetInParent()
    return answer


class P4RuntimeServer:
    """A gRPC server of one switch.

        with P4RuntimeServer([UdpPort(1, 50001)], address="127.0.0.1:9559", device_id=0) as server: ...

    ``program`` runs at once, without a P4Info. Without ``program`` the switch waits for a controller to push one.
    Without ``credentials`` connections are not encrypted. ``captures``: a folder for pcap files of each port. ``crcs``:
    CRCs of calculations in controllers' programs, by name (``Switch.crc_set``).
    """

    def __init__(
        self,
        ports: Sequence[Port],
        *,
        address: str = "127.0.0.1:9559",
        device_id: int = 0,
        cpu_port: int | None = 255,
        drop_port: int = 511,
        program: Switch | None = None,
        credentials: grpc.ServerCredentials | None = None,
        captures: Path | None = None,
        crcs: Sequence[tuple[str, Crc | int]] = (),
    ) -> None:
        self._lock = threading.RLock()
        self._arbitration = Arbitration(device_id)
        self._device = Device(
            ports, cpu_port=cpu_port, drop_port=drop_port, deliver=self._deliver, captures=captures, crcs=crcs
        )
        self._calls = futures.ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="p4runtime")
        self._server = grpc.server(
            self._calls,
            interceptors=[BoundedCalls({"/p4.v1.P4Runtime/Write": _Written.parse})],
            maximum_concurrent_rpcs=MAX_CALLS,
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_concurrent_streams", MAX_CALLS_OF_ONE),
                ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
                ("grpc.max_connection_idle_ms", IDLE_MS),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_time_ms", 60_000),  # detects controllers whose connection has broken silently
                ("grpc.keepalive_timeout_ms", 20_000),
            ],
        )
        service = _Service(self._arbitration, self._device, self._lock)
        p4r_grpc.add_P4RuntimeServicer_to_server(service, self._server)
        watching = Watching(self._device.observers, lambda: self._device.running, self._lock)
        self._server.add_generic_rpc_handlers((watching.handler(),))
        try:
            if credentials is None:
                self.port = self._server.add_insecure_port(address)
            else:
                self.port = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            self.port = 0
        if not self.port:
            tls = " (or the certificate and its key do not fit)" if credentials is not None else ""
            raise ServerError(f"cannot listen on {address}: it is in use or not an address of this machine{tls}")
        if program is not None:
            self.run(program)

    def _deliver(self, message: p4r.StreamMessageResponse) -> bool:
        """Sends a message to every role's primary, because each role has access to everything. Returns whether one
        accepted it."""
        return any([primary.offer(message) for primary in self._arbitration.primaries])

    def start(self) -> None:
        self._server.start()

    def run(self, program: Switch) -> None:
        """Starts a program without P4Info, unless a controller has already set another one."""
        with self._lock:
            if self._device.controlled:
                program.close()
            else:
                self._device.run(program)

    def observe(self, watcher: Watcher) -> None:
        """Traces packets for this watcher from now on, with any running program."""
        with self._lock:
            self._device.observers.add(watcher)

    def stop(self) -> None:
        """Ends all streams and closes the ports."""
        # gRPC may wait for ever for calls whose requests it could not read. Our own handlers have ended by now.
        self._server.stop(grace=0.5).wait(timeout=STOP_S)
        self._calls.shutdown(wait=False)
        with self._lock:
            self._device.stop()

    def __enter__(self) -> P4RuntimeServer:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
