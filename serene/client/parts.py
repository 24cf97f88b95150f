"""A gradient, part by part, while the rest of it is still being computed.

    with Parts(client) as parts:
        last = parts.submit(40, gradient_of_the_last_layer)     # to slots 40, 41, ...: a Future
        first = parts.submit(0, gradient_of_the_first_layer)    # when the backward pass has come to it
        update = first.result().delta

A thread of its own sends and receives, so the packets of one layer travel while the next is computed. Each slot has its
rounds, and all slots of one iteration go out under one epoch: an iteration is over when every slot has had its part.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import Self

from serene.errors import SereneError

if TYPE_CHECKING:
    from serene.client.client import Client
    from serene.client.updates import PartUpdate

IDLE_S = 0.5  # between looks at an empty queue


@dataclass(frozen=True)
class _Part:
    slots: slice
    gradient: np.ndarray
    result: Future[PartUpdate]


class Parts:
    """The parts of one client that has joined; nobody else may use the client meanwhile.

    say: told in the exchange's thread what the worker does: exchanging, waiting, or computing (nothing is under way).
    """

    def __init__(self, client: Client, say: Callable[[str], None] = lambda state: None) -> None:
        self._client = client
        self._say = say
        self.network_s = 0.0  # in which something was under way
        self.waiting_s = 0.0  # of it, for other workers
        self._queue: queue.SimpleQueue[_Part | None] = queue.SimpleQueue()
        self._under_way: list[_Part] = []
        self._waker = os.eventfd(0, os.EFD_NONBLOCK)
        self._failed: BaseException | None = None
        client.wake_with(self._waker)
        self._thread = threading.Thread(target=self._run, name="serene-parts", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread; parts under way fail."""
        if self._thread.is_alive():
            self._failed = self._failed or SereneError("the exchange was closed")
            self._put(None)
            self._thread.join()
            self._client.wake_with(-1)
            os.close(self._waker)

    def submit(self, first_slot: int, gradient: np.ndarray) -> Future[PartUpdate]:
        """float32[n] to the slots from ``first_slot`` on, the last one filled up with zeros. The result:
        what all workers contributed there since the last read, delta float32[n]; or the error that ended the
        exchange."""
        membership = self._client.membership
        count = -(-len(gradient) // membership.lanes)
        if first_slot < 0 or not count or first_slot + count > membership.slots:
            raise SereneError(
                f"{len(gradient)} values from slot {first_slot} on: the job has {membership.slots} slots of "
                f"{membership.lanes} values"
            )
        part = _Part(slice(first_slot, first_slot + count), gradient, Future())
        self._put(part)
        return part.result

    def _put(self, part: _Part | None) -> None:
        self._queue.put(part)
        os.eventfd_write(self._waker, 1)

    # -- in the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        waiting: list[_Part] = []  # for the same slots' last part to end
        try:
            while self._failed is None:
                if not self._under_way:
                    select.select([self._waker], [], [], IDLE_S)
                waiting = [part for part in waiting + self._drain() if not self._begin(part)]
                if self._under_way:
                    self._exchange()
                else:
                    self._say("computing")
        except BaseException as error:
            self._failed = error
        for part in (*self._under_way, *waiting, *self._drain()):
            part.result.set_exception(self._failed or SereneError("the exchange was closed"))

    def _exchange(self) -> None:
        self._say("exchanging")
        exchange, began = self._client.protocol.exchange, time.monotonic()
        waited = exchange.waited_s
        self._client.exchange_round()
        self.network_s += time.monotonic() - began
        self.waiting_s += max(exchange.waited_s - waited, 0.0)
        self._finish_done()

    def _drain(self) -> list[_Part]:
        """What has been submitted since the last look."""
        try:
            os.eventfd_read(self._waker)
        except BlockingIOError:
            return []
        parts = []
        while not self._queue.empty():
            part = self._queue.get()
            if part is not None:
                parts.append(part)
        return parts

    def _begin(self, part: _Part) -> bool:
        busy = any(
            part.slots.start < other.slots.stop and other.slots.start < part.slots.stop for other in self._under_way
        )
        if not busy:
            self._client.begin_part(part.slots, part.gradient)
            self._under_way.append(part)
        return not busy

    def _finish_done(self) -> None:
        for part in [part for part in self._under_way if self._client.part_done(part.slots)]:
            self._under_way.remove(part)
            update = self._client.finish_part(part.slots)
            part.result.set_result(replace(update, delta=update.delta[: len(part.gradient)]))
