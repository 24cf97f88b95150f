"""One worker of a named job: it gets its place from the controller, exchanges contributions in a separate thread, and
sends the controller signs of life."""

from __future__ import annotations

import logging
import os
import secrets
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from serene.client import Client, Refused, Session, SessionLost
from serene.errors import SereneError
from serene.http import NoController
from serene.torch import termination
from serene.torch.opening import Controller, transport_to
from serene.torch.placement import RACK, own_rack
from serene.torch.work import Runner, SwitchWork

LOG = logging.getLogger("serene.torch")
ASK_EVERY_S = 0.1
WARN_AFTER_S = 3.0  # of waiting for a place
JOIN_ATTEMPTS = 3
POLL_S = 0.01  # between checks whether the worker has left
LEAVE_TIMEOUT_S = 2.0  # for an unfinished exchange to end, if the worker does not wait for the others

Setting = int | float | str


class Ended(SereneError):
    """The worker leaves in the middle of an exchange."""


@dataclass(frozen=True)
class Wanted:
    """A process's request to the controller. settings: must be equal for all processes; strategy: as JSON, at the job's
    start; scale: the units in 1.0 that it proposes; limit: of a contribution, in units. elastic: places, minimum and
    evict_after, as of `serene.controller.jobs.job.Elastic`; empty if the workers stay."""

    name: str
    workers: int
    settings: Mapping[str, Setting]
    strategy: Mapping[str, object]
    scale: int
    limit: int
    elastic: Mapping[str, float | None] = field(default_factory=dict)


def find_place(
    controller: Controller, wanted: Wanted, process: str, rack: int | None, timeout_s: float
) -> tuple[int, int, int]:
    """The job, the worker's number in the job, and its number in its rack. process: this one's number, which
    distinguishes it from others; rack: None with one switch. Waits for the other processes of a new job, for a free
    place, or for a restarting controller. Raises SereneError with the controller's reason, or with the reason of a wait
    that took too long."""
    asked = {
        "name": wanted.name,
        "process": process,
        "workers": wanted.workers,
        "settings": dict(wanted.settings),
        "strategy": dict(wanted.strategy),
        "scale": wanted.scale,
        "limit": wanted.limit,
        "rack": rack,
        **wanted.elastic,
    }
    began, warned = time.monotonic(), False
    while True:
        try:
            found = controller.place(asked)
            if found["job"] is not None:
                return found["job"], found["worker"], found["place"]
            waits = found["waits"]
        except NoController as error:
            waits = str(error)
        waited = time.monotonic() - began
        if waited > timeout_s:
            raise SereneError(f"no place in job {wanted.name!r} within {timeout_s:g} s: {waits}")
        if waited > WARN_AFTER_S and not warned:
            warned = True
            LOG.warning("waits for a place, up to %g s: %s", timeout_s, waits)
        time.sleep(ASK_EVERY_S)


def _rack(racks: int) -> int:
    """This process's rack: from $SERENE_RACK, or by its rank, as for a process group."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if RACK not in os.environ and not (rank.isdecimal() and size.isdecimal()):
        raise SereneError(f"the controller commands {racks} racks: set ${RACK} to this process's rack, from 0")
    return own_rack(racks, int(rank or 0), int(size or 1))


class Member:
    """A worker of a job, once it has joined. on_read: a method, held weakly, that this worker's own thread calls with
    the sum, int32[values], whose memory no later read overwrites: at the end of each exchange and after each
    restoration. sent: int32[values], to which it adds each contribution. ``exchanges``: how many have begun.
    """

    def __init__(
        self,
        controller: Controller,
        wanted: Wanted,
        on_read: Callable[[np.ndarray], None],
        sent: np.ndarray,
        timeout_s: float,
    ) -> None:
        self._controller, self._wanted, self._timeout_s = controller, wanted, timeout_s
        # A member lives until it has left. It must not keep parameters, whose hooks may refer to the optimizer: that
        # leaves when it is dropped.
        self._on_read, self._sent = weakref.WeakMethod(on_read), sent
        self.exchanges = 0
        self._failure: BaseException | None = None  # of joining, or of an exchange
        self._ending = False
        self._departure: SwitchWork | None = None  # how this worker leaves
        self._joining: Client | None = None
        self._runner: Runner | None = None

    @property
    def joined(self) -> bool:
        return self._runner is not None

    def join(self) -> None:
        """Gets a place and joins. An interrupt leaves the job, or comes when this worker has joined. Raises SereneError
        if it cannot join."""
        # No `try` within this one: on its line an interrupt would not be caught here.
        try:
            self._find_and_join()
        except BaseException as error:
            if not self.joined:
                self._failure = error if isinstance(error, SereneError) else None  # not an interrupt
                termination.end(self)
                self._leave_while_joining()
            raise

    def _find_and_join(self) -> None:
        controller, values = self._controller, len(self._sent)
        racks = controller.racks()  # fails at once without a controller
        rack, process = _rack(racks) if racks > 1 else None, secrets.token_hex(8)
        termination.begin(self, self._leave_at_the_end)
        for attempts_left in reversed(range(JOIN_ATTEMPTS)):
            self.job, self.worker, place = find_place(controller, self._wanted, process, rack, self._timeout_s)
            try:
                self._join(controller, place, rack, values, self._timeout_s)
                break
            # The controller that gave the place may have been killed since.
            except (Refused, NoController) as error:
                if not attempts_left:
                    raise
                LOG.info("requests a place again: %s", error)
        self._read()
        self._runner = Runner(f"serene-job-{self.job}", self._idle)

    def _join(self, controller: Controller, place: int, rack: int | None, values: int, timeout_s: float) -> None:
        transport = None
        try:
            transport = transport_to(controller.access(self.job, values), self.worker)
            self._joining = client = Client(transport, self.job, place, values, rack=rack, keeps_reads=True)
            self.session = Session(client, join_timeout_s=timeout_s)
            client.while_waiting = self._while_waiting
            self.session.join()
        except BaseException as error:
            if isinstance(error, SereneError):
                self._joining = None
            if self._joining is None and transport is not None:  # else it first leaves
                transport.close()
            raise

    @property
    def left(self) -> bool:
        """Whether this worker has left, or its thread does so."""
        return self._departure is not None

    @property
    def workers(self) -> int:
        """The number of members, by the last answer."""
        return max(self.session.members, 1)

    @property
    def scale(self) -> int:
        return self.session.client.membership.scale

    @property
    def limit(self) -> int:
        return self.session.client.membership.limit

    def exchange(self, contribution: np.ndarray) -> SwitchWork:
        """Contributes int32[values], in units, and reads; both have ended when the work has ended."""
        return self._submit(lambda: self._exchange(contribution))

    def settle(self) -> None:
        """Waits for what was submitted, also where an interrupt has kept the caller from getting the work. Raises as
        `check`."""
        self._submit(lambda: None).wait()
        self.check()

    def check(self) -> None:
        """Raises the error with which joining or an exchange has failed: an interrupt may have kept the caller from
        it."""
        if self._failure is not None:
            raise self._failure

    def leave(self, timeout_s: float) -> bool:
        """Leaves, waits until all others have left, and reads the rest. Returns whether this succeeded within the
        time. After an error or an interrupt, `abandon` must follow."""
        over: list[bool] = []
        departure = self._departure = self._submit(lambda: over.append(self._finish(timeout_s)))
        departure.wait()
        self._stop(timeout_s)
        termination.end(self)
        return over[0]

    def abandon(self) -> None:
        """Leaves in the middle of the training, also in the middle of an exchange. After an interrupted `leave`, ends
        what that has begun, without waiting for the others."""
        timeout_s = 0.0
        try:
            if self._departure is None:
                self._ending = True
                self._departure = self._submit(self.session.abandon)
                timeout_s = self._patience_s
            else:
                self._await_departure()
        finally:  # also after another interrupt
            self._stop(timeout_s)
            termination.end(self)

    def _leave_while_joining(self) -> None:
        """An interrupt or a signal ends the join: the controller may have admitted this worker already."""
        if self._joining is not None:
            try:
                with suppress(SereneError):
                    self._joining.leave(LEAVE_TIMEOUT_S)
            finally:  # also after another interrupt
                self._joining.close()

    def _leave_at_the_end(self) -> None:
        """A signal ends the program: leaves, unless the thread does so already, and returns once it has left. It runs
        in the main thread, perhaps in the midst of another method."""
        self._ending = True
        if self._runner is None:
            self._leave_while_joining()
            return
        if self._departure is None:
            self._departure = self._submit(self.session.abandon)
        self._await_departure()

    def _await_departure(self) -> None:
        """Returns when the controller has accepted the LEAVE, when leaving has failed, or after a while."""
        assert self._departure is not None
        until = time.monotonic() + self._patience_s
        while not (self.session.client.has_left or self._departure.is_completed()) and time.monotonic() < until:
            time.sleep(POLL_S)

    @property
    def _patience_s(self) -> float:
        """For an unfinished exchange to end, and to leave then."""
        return LEAVE_TIMEOUT_S + self.session.client.silence_s

    def close(self) -> None:
        """Closes the transport, without leaving."""
        self.session.client.close()

    def _submit(self, task: Callable[[], None]) -> SwitchWork:
        assert self._runner is not None
        return self._runner.submit(task, [])

    def _stop(self, timeout_s: float) -> None:
        """Ends the thread, which closes the transport; waits for that at most for the timeout."""
        assert self._runner is not None
        self._submit(self.close)
        self._runner.stop(timeout_s)

    # -- in the worker's own thread --------------------------------------------------------------------------

    def _exchange(self, contribution: np.ndarray) -> None:
        self.check()  # since the last exchange a lost session may have ended the training
        # No interrupt comes in this thread: what is sent is also counted.
        self.exchanges += 1
        self._sent += contribution
        try:
            self.session.exchange(contribution)
        except BaseException as error:
            self._failure = error
            raise
        self._read()

    def _finish(self, timeout_s: float) -> bool:
        over = self.session.finish(timeout_s)
        self._read()
        return over

    def _read(self) -> None:
        if (on_read := self._on_read()) is not None:
            on_read(self.session.client.held)

    def _while_waiting(self) -> None:
        if self._ending:
            raise Ended("the worker leaves its job in the middle of an exchange")
        self.session.report("waiting")

    def _idle(self) -> None:
        """Reports to the controller that this worker computes; helps to restore the sums of a lost session."""
        try:
            self.session.report("computing")
            self.session.client.ask_while_idle()
        except SessionLost as lost:
            try:
                self.session.resume(lost)
            except BaseException as error:
                self._failure = error  # the next exchange would only know that the session is lost
                raise
            self._read()


def momentum(group: dict[str, Any]) -> float:
    """A parameter group's momentum, 0 to less than 1, of SGD or Adam."""
    return float(group.get("momentum") or (group.get("betas") or (0.0,))[0])


def leave_without_close(member: Member, job: str, process: int) -> None:
    """Makes a program leave its job if it drops its optimizer, or ends, without `close`."""
    if os.getpid() == process and member.joined and not member.left:
        LOG.warning(
            "job %r was left without close(): this worker's unsent updates are lost, and its parameters may lack "
            "the others' updates",
            job,
        )
        member.abandon()
