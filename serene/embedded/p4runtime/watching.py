"""A gRPC service for traces, in addition to P4Runtime. Requests and answers are JSON.

A request may have ports (numbers), match (trace/filter.py), dropped, count and bytes. An answer is a packet's trace, or
the number of traces lost since the last answer: {"lost": 3}.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import grpc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from serene.embedded.control.loaded import MAX_PORTS
from serene.embedded.engine import Switch
from serene.embedded.p4runtime.observers import Choose, Observers, Watcher
from serene.embedded.p4runtime.status import Code, Failure, invalid, refused, shortened
from serene.embedded.trace.filter import BadFilter, parse
from serene.errors import SereneError
from serene.native import CompileFailed, CompilerMissing

SERVICE, METHOD = "serene.switch.Trace", "Watch"
PATH = f"/{SERVICE}/{METHOD}"
READY = ("serene-traces", "on")  # the first answer: from now on packets are traced
POLL_S = 0.2


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ports: list[int] | None = Field(default=None, max_length=MAX_PORTS)
    match: str = Field(default="", max_length=1024)
    dropped: bool = False
    count: int = Field(default=0, ge=0)  # 0: until the caller hangs up
    bytes: int = Field(default=0, ge=0, le=1 << 16)


class Watching:
    """Serves the watchers of one device. It shares the service's lock, but builds answers without it."""

    def __init__(self, observers: Observers, running: Callable[[], Switch | None], lock: threading.RLock) -> None:
        self._observers = observers
        self._running = running
        self._lock = lock

    def handler(self) -> grpc.GenericRpcHandler:
        method = grpc.unary_stream_rpc_method_handler(self._watch)  # bytes in and out
        return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})

    def _watch(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            wanted = _wanted(request)
            switch = self._switch()
            choose = partial(parse, wanted.match, dropped=wanted.dropped)
            _check(choose, switch)
            switch.prepare_tracing()  # takes seconds: without the lock
            watcher = Watcher(None if wanted.ports is None else frozenset(wanted.ports), wanted.bytes, choose)
            with self._lock:
                self._observers.add(watcher)
        except SereneError as failure:
            # The other errors are too many watchers, or too little memory.
            ours = isinstance(failure, (Failure, CompileFailed, CompilerMissing))
            why = refused(failure) if ours else Failure(Code.RESOURCE_EXHAUSTED, str(failure))
            context.abort(why.code, why.message)
            raise AssertionError("abort raises") from failure
        try:
            context.send_initial_metadata((READY,))
            yield from _answers(watcher, wanted.count, context)
        finally:
            with self._lock:
                self._observers.remove(watcher)

    def _switch(self) -> Switch:
        with self._lock:
            switch = self._running()
        if switch is None:
            raise Failure(Code.FAILED_PRECONDITION, "no program is running: push one first")
        return switch


def _answers(watcher: Watcher, count: int, context: grpc.ServicerContext) -> Iterator[bytes]:
    sent = 0
    while context.is_active():
        batch = watcher.take(POLL_S)
        if batch.lost:
            yield json.dumps({"lost": batch.lost}).encode()
        for packet in batch.packets:
            yield json.dumps(packet.json()).encode()
            sent += 1
            if sent == count:
                return
        if batch.ended:
            context.abort(Code.FAILED_PRECONDITION, shortened(batch.ended))


def _wanted(request: bytes) -> Wanted:
    try:
        return Wanted.model_validate_json(request or b"{}")
    except ValidationError as error:
        first = error.errors()[0]
        raise invalid(f"{'.'.join(map(str, first['loc'])) or 'the request'}: {first['msg']}") from None


def _check(choose: Choose, switch: Switch) -> None:
    try:
        choose(switch.program)
    except BadFilter as error:
        raise invalid(str(error)) from None


class NoTraces(Exception):
    """There are no traces. The message gives the reason in one line."""


def watch(channel: grpc.Channel, wanted: dict[str, Any], ready: Callable[[], None] = lambda: None) -> Iterator[Any]:
    """The client's side: yields answers when they arrive, and calls ``ready`` when packets are traced. Raises
    NoTraces."""
    call = channel.unary_stream(PATH)(json.dumps(wanted).encode(), wait_for_ready=False)
    try:
        with contextlib.closing(call) if hasattr(call, "close") else contextlib.nullcontext():
            if READY in [tuple(item) for item in call.initial_metadata()]:
                ready()
            for answer in call:
                yield json.loads(answer)
    except grpc.RpcError as error:
        if error.code() is Code.UNIMPLEMENTED:
            raise NoTraces(
                "this switch cannot trace; only serene-switch can (with BMv2 use --log-console -L trace)"
            ) from None
        hint = ": check that the switch runs, and --switch HOST:PORT" if error.code() is Code.UNAVAILABLE else ""
        raise NoTraces(f"{error.details() or error.code()}{hint}") from None
    finally:
        call.cancel()
