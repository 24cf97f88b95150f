"""A worker's part in a job, from its first HELLO to its last read, across lost sessions.

    session = Session(Client(UdpTransport(), job=0, worker=2, vector_length=79510), apply=trainer.apply)
    with session:
        session.join()
        for step in range(200):
            session.exchange(trainer.gradient(step))    # contributes, and applies what was read
        session.finish()

It also reports the worker's state to the controller, for `serenectl watch` and automatic strategies.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from types import TracebackType

import numpy as np
from typing_extensions import Self

from serene.client.protocol.protocol import Membership
from serene.client.session.agreement import Agreement
from serene.client.session.client import Client
from serene.client.session.leaving import PATIENCE_S
from serene.client.session.reports import Reports
from serene.client.session.requests import NoAnswer, Refused, SessionLost
from serene.client.session.updates import CaughtUp, Update
from serene.process.interrupts import allowed
from serene.report import Report
from serene.steps import REPORTED, StepTimes

LOG = logging.getLogger("serene")


class Session:
    """One worker's training, over a client that the session closes.

    apply: called with each read sum of contributions, float32[vector_length] in gradient units, to change the worker's
    parameters. join_timeout_s: for every join. on_lost: called when the switch has lost the session, before the worker
    joins the next one. on_members: called with the number of members after joining, and after a read with another
    number. ``facts``: fields that the program adds to the reports. It may write loss, accuracy, the optimiser's
    momentum (0 to less than 1) and compute_s (seconds) there. Without compute_s, all the time between exchanges counts
    as computing.
    """

    def __init__(
        self,
        client: Client,
        apply: Callable[[np.ndarray], None] = lambda delta: None,
        *,
        join_timeout_s: float = 60.0,
        on_lost: Callable[[SessionLost], None] = lambda lost: None,
        on_members: Callable[[int], None] = lambda members: None,
    ) -> None:
        self.client = client
        self._apply = apply
        self._join_timeout_s = join_timeout_s
        self._on_lost, self._on_members = on_lost, on_members
        self.members = 0  # number of members, by the last answer; 0 before ``join``
        client.while_waiting = lambda: self.report("waiting")
        self.facts: Report = {"loss": None, "accuracy": None, "compute_s": 0.0}
        self._compute_s = 0.0  # facts["compute_s"] when the last exchange ended
        self._ended_at: float | None = None  # the time of that, on the client's clock; None during an exchange
        self.iteration = 0  # the last contributed one, from 1
        self.epoch: int | None = None  # that iteration's
        self.round: int | None = None  # that iteration's
        self.network_s = 0.0
        self.waiting_s = 0.0
        self.reads_at_risk = 0  # reads that may have held more contributions than fit 32 bits
        self.sessions_lost = 0  # sessions that the switch has lost
        self.contributions_lost = 0  # with them, per slot, of all workers together, minus those in the sum twice
        self.iterations_repeated = 0  # contributed again although the restored sums may hold them
        self._agreement = Agreement()
        self._reports = Reports(client, self.telemetry)
        self._steps = StepTimes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def join(self) -> Membership:
        """Joins, and catches up with the job's earlier contributions. Raises as `Client.join` and `Client.exchange`."""
        membership = self.client.join(self._join_timeout_s)
        self._take(self.catch_up())
        self._note_members()
        return membership

    def _note_members(self) -> None:
        if self.client.members != self.members:
            self.members = self.client.members
            self._on_members(self.members)

    def exchange(self, gradient: np.ndarray) -> Update | None:
        """Contributes a gradient, as of `Client.exchange`, and applies the read. Returns None if the switch lost its
        state meanwhile and the restored and applied sum contains the contribution.

        Held interrupts (`serene.process.interrupts`) may come while it waits: then the iteration does not count. Raises
        as `Client.exchange` and, if the session is lost, as `join`; never SessionLost.
        """
        counts_itself = self.facts["compute_s"] != self._compute_s
        if not counts_itself and self._ended_at is not None:
            self.facts["compute_s"] += self.client.clock() - self._ended_at
        self.report("exchanging")
        self._ended_at = None
        update = self._exchange(gradient)
        if update is not None:
            exchange_s = update.network_s + update.waiting_s
            compute_s = self.facts["compute_s"] - self._compute_s
            self._steps.add(update.round, compute_s, exchange_s, update.waiting_s, update.epoch)
        self._compute_s, self._ended_at = self.facts["compute_s"], self.client.clock()
        if not counts_itself:
            self.report("computing")
        return update

    def _exchange(self, gradient: np.ndarray) -> Update | None:
        while True:
            before = self._agreement.sample(self.client.held) if self.client.keeps_reads else None
            try:
                with allowed():
                    update = self.client.exchange(gradient)
                break
            except SessionLost as lost:
                with allowed():
                    missed = self.resume(lost)
                self._note_members()
                if self._take(missed):
                    self.iteration += 1
                    return None
        sample = self._agreement.sample
        delta = sample(update.delta) if before is None else sample(self.client.held) - before
        self._agreement.note(sample(gradient), delta)
        self._apply(update.delta)
        self.iteration, self.epoch, self.round = self.iteration + 1, update.epoch, update.round
        self.network_s += update.network_s
        self.waiting_s += update.waiting_s
        self.reads_at_risk += update.read_at_risk
        self._note_members()
        return update

    def finish(self, timeout_s: float) -> bool:
        """Leaves and, when all have left, reads once more. Then all workers have applied every contribution. Returns
        whether it succeeded within the time and before the controller had cleared the job. Raises as `exchange`, but
        not Refused after it has left."""
        self.report("finished", force=True)
        while True:
            try:
                if self.client.membership.racks > 1:
                    # A leaf's last packet to the root may be lost, and no timer repeats it. A read makes the leaf send
                    # it again, so that all workers can read the whole sum at the end.
                    self._read()
                return self.client.leave_and_wait(timeout_s) and self._read_at_the_end()
            except SessionLost as lost:
                self._take(self.resume(lost))

    def _read_at_the_end(self) -> bool:
        """Returns whether it succeeded: the controller clears a job that has been over for a while."""
        try:
            return self._read()
        except Refused as refused:
            LOG.warning("the last read came too late: %s", refused)
            return False

    def _read(self) -> bool:
        """Returns whether it succeeded: a leaf whose root is down answers HELLO, but no read."""
        over_racks = self.client.membership.racks > 1
        try:
            read = self.client.pull(PATIENCE_S if over_racks else math.inf)
        except NoAnswer:
            if not over_racks:
                raise
            return False
        self._apply(read.delta)
        self.reads_at_risk += read.read_at_risk
        return True

    def leave(self) -> None:
        """Leaves without waiting for the others. If the switch has lost its state, it first restores the sums with
        them."""
        self.report("finished", force=True)
        while True:
            try:
                self.client.leave()
                return
            except SessionLost as lost:
                self.resume(lost)

    def abandon(self) -> None:
        """Leaves in the middle of the training, so that the others do not wait for this worker for ever. If the switch
        has lost its state, joins the next session, because the others wait for it there, and leaves that."""
        self.report("stopped", force=True)
        while True:
            try:
                self.client.leave()
                return
            except SessionLost:
                self.client.join()

    # -- lost sessions -----------------------------------------------------------------------------------------

    def resume(self, lost: SessionLost) -> CaughtUp | None:
        """Joins the session after a lost one, and catches up; returns as ``catch_up``."""
        self._on_lost(lost)
        self.sessions_lost += 1
        self.client.join(self._join_timeout_s)
        return self.catch_up()

    def catch_up(self) -> CaughtUp | None:
        """The sum that the worker has to apply, as `Client.catch_up`; joins the next session if this one is lost
        meanwhile."""
        while True:
            try:
                missed = self.client.catch_up()
                break
            except SessionLost:
                self.client.join(self._join_timeout_s)
        if missed is not None and missed.restored is not None:
            if missed.restored.donor is None:
                LOG.warning("the sums were restored without this worker; they may lack some of its contributions")
            self.contributions_lost += missed.restored.lost
            self.iterations_repeated += missed.restored.repeated
        return missed

    def _take(self, missed: CaughtUp | None) -> bool:
        """Applies the missed contributions. Returns whether the unfinished iteration is among them."""
        if missed is None:
            return False
        self._apply(missed.delta)
        self.reads_at_risk += missed.read_at_risk
        return missed.restored is not None and missed.restored.contained

    # -- telemetry ---------------------------------------------------------------------------------------------

    def report(self, state: str, *, force: bool = False) -> None:
        """Reports the worker's state: computing, exchanging, waiting, paused, finished or stopped."""
        self._reports.report(state, force=force)

    def telemetry(self) -> Report:
        """The worker's data for `serenectl`. Times in seconds. Times and counts are totals since the worker began,
        those of packets since it joined."""
        client = self.client
        return {
            "iteration": self.iteration,
            "epoch": self.epoch,
            "round": self.round,
            "at_epoch": client.epoch,
            "at_round": client.round,
            **self.facts,
            **self._agreement.facts(),
            "network_s": self.network_s,
            "waiting_s": self.waiting_s,
            "retransmissions": client.counts.retransmissions,
            "clipped_values": client.clipped_values,
            "packets_sent": client.counts.sent,
            "packets_received": client.counts.received,
            "contributions_sent": client.contributions_sent,
            "sessions_lost": self.sessions_lost,
            "contributions_lost": self.contributions_lost,
            "iterations_repeated": self.iterations_repeated,
            REPORTED: self._steps.text(),
        }
