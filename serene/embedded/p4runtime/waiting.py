"""Bounds on the calls that wait for their peers: for a request that does not arrive, or an answer that is not read.

A call that waits needs a thread of gRPC's pool. So a peer that begins calls and does not finish them could take all
threads. Here only a number of calls may wait. When one more begins to wait, a call of the connection that has the most
waiting calls is cancelled, the one that has waited the longest. So clients that do their part are spared. A limit in
time would also end slow clients that disturb nobody, and spare fast attackers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import grpc

from serene.embedded.p4runtime.status import Code

MAX_REQUESTS = 256  # calls whose request has not arrived
MAX_ANSWERS = 64  # calls whose answer is not read
MAX_ENDING = 16  # streams that have ended for the server, but whose messages are not read

log = logging.getLogger("serene.switch")


class Waiting:
    """Calls that wait for the same thing. most: of them; what: the thing, for the log."""

    def __init__(self, most: int, what: str) -> None:
        self._most, self._what = most, what
        self._lock = threading.Lock()
        self._calls: dict[str, dict[grpc.ServicerContext, None]] = {}  # by connection, in the order of their waiting
        self._peers: dict[grpc.ServicerContext, str] = {}  # their connections, which an ended call no longer knows
        self._cancelled = self._logged = 0

    def add(self, call: grpc.ServicerContext) -> None:
        """The call begins to wait. Never blocks."""
        if not call.is_active():
            return
        with self._lock:
            self._peers[call] = call.peer()
            self._calls.setdefault(self._peers[call], {})[call] = None
            if len(self._peers) <= self._most:
                return
            peer, calls = max(self._calls.items(), key=lambda item: len(item[1]))
            oldest = next(iter(calls))
            self._remove(oldest)
            self._cancelled += 1
            logs = self._cancelled >= max(10 * self._logged, 1)  # not once per call: an attack would fill the log
            if logs:
                self._logged = self._cancelled
        oldest.cancel()
        if logs:
            log.warning(
                "more than %d calls wait for %s: cancelled one of %s; %d so far",
                self._most, self._what, peer, self._logged,
            )  # fmt: skip

    def remove(self, call: grpc.ServicerContext) -> None:
        """The call waits no longer."""
        with self._lock:
            self._remove(call)

    def _remove(self, call: grpc.ServicerContext) -> None:
        if (peer := self._peers.pop(call, None)) is not None:
            del self._calls[peer][call]
            if not self._calls[peer]:
                del self._calls[peer]

    @contextmanager
    def of(self, call: grpc.ServicerContext) -> Iterator[None]:
        """The call waits within this context."""
        self.add(call)
        try:
            yield
        finally:
            self.remove(call)


class BoundedCalls(grpc.ServerInterceptor):  # type: ignore[misc]
    """Calls with one request, whose handlers run when the request is there.

    For gRPC they are calls with several requests: it waits for the single request of a call in its own code, where
    nothing can end the wait. On the wire both are the same. parsers: of requests that a handler does not take as their
    message, by method.
    """

    def __init__(self, parsers: Mapping[str, Callable[[bytes], Any]]) -> None:
        self._parsers = parsers
        self._requests = Waiting(MAX_REQUESTS, "their request")
        self._answers = Waiting(MAX_ANSWERS, "a client that does not read")

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        handler = continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return handler
        parse = self._parsers.get(handler_call_details.method) or handler.request_deserializer or bytes

        def one_answer(requests: Iterator[bytes], call: grpc.ServicerContext) -> Any:
            return handler.unary_unary(self._request(requests, call, parse), call)

        def answers(requests: Iterator[bytes], call: grpc.ServicerContext) -> Iterator[Any]:
            for answer in handler.unary_stream(self._request(requests, call, parse), call):
                with self._answers.of(call):
                    yield answer  # gRPC continues here when the client has room for the next one

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(answers, None, handler.response_serializer)
        return grpc.stream_unary_rpc_method_handler(one_answer, None, handler.response_serializer)

    def _request(self, requests: Iterator[bytes], call: grpc.ServicerContext, parse: Callable[[bytes], Any]) -> Any:
        with self._requests.of(call):
            data = next(requests, None)
        if data is None:
            call.abort(Code.UNIMPLEMENTED, "the call ended without a request: expected one")
            raise AssertionError("abort raises")
        try:
            return parse(data)
        except Exception:  # the reason depends on the implementation of protobuf
            call.abort(Code.INTERNAL, f"the request of {len(data)} bytes is no message of this call's type")
