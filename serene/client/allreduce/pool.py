"""All-reduce of vectors of any size, and of numbers of any magnitude, through a job's few slots.

    with Pool(UdpTransport(), job=0, worker=2, slots=512, lanes=320) as pool:
        pool.join(timeout_s=60)
        pool.all_reduce(gradient)        # float32[n]: becomes the sum over all workers
        pool.leave()

A job under BSP serves as a pool: its slots are used in turn. So a vector's next piece goes to the slot that was used
longest ago, in that slot's next round. The slot's sum is cumulative, so the difference of two reads is the sum of one
piece over all workers. The read's count of contributions proves that none is missing. A pool needs BSP with all its
workers: under another policy it raises, and never returns another sum. A BSP epoch may have another precision: the
workers change to it together, between two collectives. (docs/protocol.md; the numbers:
docs/decisions/block-exponents.md)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from typing_extensions import Self

from serene.client.allreduce.blocks import Layout
from serene.client.allreduce.collective import Call, Disagreement, Incomplete, hashes, noise_seed, vote_for
from serene.client.allreduce.fastpool import FastPool
from serene.client.allreduce.plainpool import PlainPool
from serene.client.protocol.exchange import UNSENT
from serene.client.protocol.protocol import PULL_SEQ, Counts, Membership, PlaceTaken, Protocol
from serene.client.session.client import WAITING_S, Client
from serene.client.session.reports import Reports
from serene.client.session.requests import NoAnswer, Refused, SessionLost
from serene.client.transport.transport import Transport
from serene.errors import SereneError
from serene.report import Report
from serene.steps import REPORTED, StepTimes
from serene.wire import HEADER, Op, ReadMode, control_payload, in_header, members_in, precision_in

ASK_S = 0.2  # to wait for the switch's answer to how many workers are missing
LAST_SEQ = PULL_SEQ - 1  # of a slot: its seqs end where those of reads begin


class PoolBroken(SereneError):
    """The job cannot serve as a pool any more; the message names the reason. Its session was lost, a worker left, was
    evicted or restarted, its strategy was swapped, or a collective has failed in the middle."""


@dataclass(frozen=True)
class Format:
    """An epoch, and the bits of gradients' values in it."""

    epoch: int = 1
    precision: int = 32


class Pool:
    """One worker's side of a pool.

    slots, lanes: of the job, which was created as a pool. precision: bits of gradients' values at first, the same on
    all workers. transport, job, worker, silence_s, give_up_s, incarnation, clock, rack: as of `Client`. Raises
    SereneError for a number that its header field does not hold. Not thread-safe: one collective at a time.
    """

    def __init__(
        self,
        transport: Transport,
        job: int,
        worker: int,
        *,
        slots: int,
        lanes: int,
        precision: int = 32,
        silence_s: float = 2.0,
        give_up_s: float = 60.0,
        incarnation: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        rack: int | None = None,
    ) -> None:
        self._slots, self._lanes = in_header("slots", slots, 1, 2**16), in_header("lanes", lanes, 1, 2**16 - 1)
        self._client = Client(
            transport, job, worker, slots * lanes,
            window=slots, silence_s=silence_s, give_up_s=give_up_s, incarnation=incarnation, clock=clock, rack=rack,
        )  # fmt: skip
        self._transport = transport
        self._clock = clock
        self._job, self._worker = job, worker
        self._format = Format(precision=precision)  # the one that all workers have agreed on
        self._heard = self._format  # the newest one that the switch has announced to this worker
        self._broken: str | None = None  # the reason why the pool contributes no more
        self._reports = Reports(self._client, self.telemetry)
        self.while_waiting: Callable[[], None] = lambda: None  # called repeatedly while no piece is finished; may raise
        self.collectives = 0  # the number that have ended, also by an error
        self.network_s = 0.0  # in collectives, waiting included
        self.compute_s = 0.0  # between collectives
        self._ended_at = 0.0  # when the last collective ended, on the clock
        self.waiting_s = 0.0  # in collectives, for other workers
        self.clipped_values = self.lost_values = 0  # numbers of this worker's values, under given scales
        self.limit, self.limit_bits = math.inf, 32  # of the last collective under a given scale
        self.facts: Report = {}  # further fields of reports
        self._steps = StepTimes()
        self._step = 0  # the number of ended steps
        self._step_began = (0.0, 0.0, 0.0)  # compute_s, network_s and waiting_s then
        self._marked = False  # the caller marks the ends of steps

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the transport, without sending LEAVE."""
        self._client.close()

    @property
    def counts(self) -> Counts:
        """Packets since the worker joined. Raises SereneError before `join`."""
        return self._client.counts

    @property
    def precision(self) -> int:
        """Bits of a gradient's values in the next collective, on all workers. `serenectl precision` changes them when
        all workers know of it. Other values have 32."""
        return self._format.precision

    def idle(self) -> None:
        """Call it about every second between collectives: the controller ends a pool's job when a worker is silent."""
        self._reports.report("computing")

    def end_step(self) -> None:
        """Marks the collectives since the last call as one step, for `serenectl explain`. Without any call each
        collective is a step."""
        self._marked = True
        self._note_step()

    def _note_step(self) -> None:
        now = (self.compute_s, self.network_s, self.waiting_s)
        computing, exchanging, waiting = (sum_ - began for sum_, began in zip(now, self._step_began, strict=True))
        if exchanging > 0:
            self._steps.add(self._step, computing, exchanging, waiting)
            self._step += 1
        self._step_began = now

    # -- membership ------------------------------------------------------------------------------------------

    def join(self, timeout_s: float = 60.0) -> Membership:
        """Joins the job when all of its workers have come. Raises as `Client.join`, and PoolBroken if the job has other
        slots or lanes, or has begun before."""
        welcome = self._client.join(timeout_s)
        if (welcome.slots, welcome.lanes) != (self._slots, self._lanes):
            self._broken = f"has {welcome.slots} slots of {welcome.lanes} lanes, not {self._slots} of {self._lanes}"
        elif welcome.lost_sessions:
            self._broken = f"is not new: the switch lost {welcome.lost_sessions} of its sessions"
        self._expect_whole()
        self._layouts: dict[tuple[int, int | None], Layout] = {(32, None): Layout(welcome.workers, welcome.lanes)}
        self._client.skip_catch_up()
        protocol = self._client.protocol
        protocol.whole = welcome.workers
        # All workers begin in this epoch, even if the WELCOME of one that came late was of a newer one.
        protocol.begin_epoch(self._format.epoch)
        compiled = self._client.compiled_link()
        self._engine: PlainPool | FastPool = (
            PlainPool(self._client) if compiled is None else FastPool(self._client, *compiled)
        )
        return welcome

    def leave(self, timeout_s: float = 5.0, died: Collection[int] = ()) -> bool:
        """Leaves the job, as `Client.leave`. Returns whether the job is over, for all or for this worker. The others
        can end the collective that this worker has ended, and begin no other."""
        self._reports.report("finished", force=True)
        try:
            return self._client.leave(timeout_s, died)
        except (SessionLost, Refused):
            return True

    # -- collectives -----------------------------------------------------------------------------------------

    def all_reduce(
        self,
        values: np.ndarray,
        signature: bytes = b"",
        timeout_s: float = 300.0,
        *,
        bits: int = 32,
        unit: int | None = None,
        residual: np.ndarray | None = None,
        lost: np.ndarray | None = None,
    ) -> None:
        """Replaces ``values`` by the sum over all workers, with the same bits on each (errors:
        `serene.client.allreduce.blocks`).

        values: float32[n], C-contiguous and writeable. signature: must be equal in all workers' calls, like n, bits and
        unit. bits: of a value in packets, 32, 16 or 8; in 16 and 8 it is rounded at random, reproducibly. unit: log2 of
        a given unit, in place of voted scales (`unit_of`, `scale.IntSGD`). Values beyond the limit are then clipped,
        and counted in ``clipped_values``. residual: for error feedback, which each worker may use or not: float64[n],
        of earlier calls for the same vector (zeros at first). It is added to the values, the result is sent rounded to
        nearest, and the rest becomes the new residual; under a given scale up to 2^22 limits. lost: float64[n], to
        which values beyond that are added; ``lost_values`` counts them.

        Raises SereneError for arrays of another kind. Raises Disagreement if the workers' calls differ; then
        ``values``, ``residual`` and ``lost`` are unchanged, and the pool stays usable. Raises NoAnswer after
        ``timeout_s``, PoolBroken, or as `Client.exchange`: then the three are undefined, and the pool is unusable.
        """
        plain = values.flags.c_contiguous and values.flags.writeable
        if values.dtype != np.float32 or values.ndim != 1 or not plain:
            raise SereneError(
                f"values are {values.dtype}{list(values.shape)}: expected float32[n], contiguous and writeable"
            )
        for name, vector in (("residual", residual), ("vector of lost values", lost)):
            if vector is not None and (
                vector.dtype != np.float64
                or vector.shape != values.shape
                or not (vector.flags.c_contiguous and vector.flags.writeable)
            ):
                raise SereneError(
                    f"{name} is {vector.dtype}{list(vector.shape)}: expected "
                    f"float64{list(values.shape)}, contiguous and writeable"
                )
        protocol = self._client.protocol
        self._expect_whole()
        layout = self._layout(bits, unit)
        if unit is not None:
            self.limit, self.limit_bits = layout.limit, bits
        if int(protocol.exchange.awaited.max()) + 3 * len(values) // (self._slots * self._lanes) + 3 > LAST_SEQ:
            raise SereneError(f"job {self._job} has used all sequence numbers: start another job")
        mine = hashes(signature, self.collectives, len(values), bits, unit)
        self._reports.report("exchanging")
        began = self._clock()
        if self.collectives:
            self.compute_s += began - self._ended_at
        engine, until = self._engine, began + timeout_s
        kept = [vector[: layout.values_per_group] for vector in (residual, lost) if vector is not None]
        before = [vector.copy() for vector in kept]  # everything that has changed when a disagreement is detected
        try:
            vote = vote_for(self._heard.epoch, self._heard.precision)
            voted = self._heard
            seed = noise_seed(mine, protocol.number)
            engine.begin(Call(values, layout, mine, vote, seed, residual, lost, until))
            self._client.expect_answers(self._heard.epoch)
            self._exchange(engine, protocol, until, timeout_s)
            if (engine.votes == vote * np.uint32(self._client.membership.workers)).all() and voted != self._format:
                protocol.begin_epoch(voted.epoch)
                self._format = voted
            self.clipped_values += engine.clipped_values
            self.lost_values += engine.lost_values
        except (SessionLost, Refused, PlaceTaken) as error:
            self._broken = f"is over for this worker: {error}"
            raise PoolBroken(self._reason()) from error
        except BaseException as error:
            for vector, was in zip(kept, before, strict=True):
                vector[:] = was
            if not isinstance(error, Disagreement) or engine.slots_under_way:
                self._broken = self._broken or f"cannot be used after a failed collective ({error!r})"
            raise
        finally:
            self._settle(protocol)
            self._ended_at = self._clock()
            self.network_s += self._ended_at - began
            self.collectives += 1
            if not self._marked:
                self._note_step()
            self._reports.report("computing")

    def unit_of(self, limit: float, bits: int = 32) -> int:
        """log2 of the finest unit in which values up to ``limit``, 1e-25 to 1e25, can be sent with this number of bits.
        Raises BadScale for another limit."""
        found = self._layout(bits, None).with_limit(limit).unit
        assert found is not None
        return found

    def _layout(self, bits: int, unit: int | None) -> Layout:
        if (bits, unit) not in self._layouts:
            membership = self._client.membership
            self._layouts[bits, unit] = Layout(membership.workers, membership.lanes, bits, unit)
        return self._layouts[bits, unit]

    def _exchange(self, engine: PlainPool | FastPool, protocol: Protocol, until: float, timeout_s: float) -> None:
        over, moved_at = False, self._clock()
        under_way = engine.slots_under_way
        while not over:
            try:
                self._client.exchange_round(engine.step)
                self._broken = self._broken or self._change(protocol)
                over = engine.end()
            except Incomplete as error:
                self._broken = self._broken or f"did not give every worker's contribution: {error}"
                raise PoolBroken(self._reason()) from error
            if self._broken:
                # A worker that leaves has contributed all of this collective, and the others may still lack answers to
                # it. But missing contributions will never come.
                engine.begin_no_more()
                protocol.whole = 0
                if (protocol.exchange.state == UNSENT).any():
                    raise PoolBroken(self._reason())
            if (left := engine.slots_under_way) != under_way:
                under_way, moved_at = left, self._clock()
            elif self._clock() - moved_at > WAITING_S:  # also if incomplete answers come
                self._reports.report("waiting")
                self.while_waiting()
            # A worker that did not run until now may find that all awaited answers have come: then it continues.
            if not over and self._clock() > until and engine.slots_under_way:
                missing = self._missing(protocol, engine)
                raise NoAnswer(f"the collective did not finish within {timeout_s:g} s: {missing}")

    def _settle(self, protocol: Protocol) -> None:
        """Adds up the time spent waiting, which the protocol resets when the next collective begins."""
        self.waiting_s += protocol.exchange.waited_s
        protocol.exchange.waited_s = 0.0

    # -- when it cannot continue -----------------------------------------------------------------------------

    def _expect_whole(self) -> None:
        if self._broken:
            raise PoolBroken(self._reason())

    def _reason(self) -> str:
        return f"job {self._job} {self._broken}"

    def _change(self, protocol: Protocol) -> str | None:
        """A text of a change that a pool cannot work with, or None. Stores a new epoch that it can work with."""
        for policy in (protocol.exchange.announcement, protocol.exchange.policy):
            if policy is None or policy["epoch"] < self._heard.epoch:
                continue
            precision = precision_in(int(policy["members"]))
            if (misfit := self._misfit(policy, precision)) is not None or precision is None:
                return misfit
            if policy["epoch"] > self._heard.epoch:
                self._heard = Format(int(policy["epoch"]), precision)
        return None

    def _misfit(self, policy: np.void, precision: int | None) -> str | None:
        workers, members = self._client.membership.workers, members_in(int(policy["members"]))
        if not policy["sync_mask"] >> self._worker & 1:
            return "no longer waits for this worker: it was evicted, or the strategy was swapped"
        if members != workers:
            return f"has {members} members now, not {workers}: a worker has left or was evicted"
        counted, *policy_values = (int(policy[name]) for name in ("sync_mask", "staleness", "quorum", "read_mode"))
        # Over racks an answer's mask has only the workers of its own rack. There the quorum, which under BSP is the
        # number of workers, shows that all count.
        over_racks = self._client.membership.racks > 1
        if policy_values != [0, workers, ReadMode.SNAPSHOT] or (not over_racks and counted.bit_count() != workers):
            return "is not under BSP any more, which a pool needs"
        return "has a number format unknown to this worker" if precision is None else None

    def _missing(self, protocol: Protocol, engine: PlainPool | FastPool) -> str:
        """Reads from the switch how many contributions the slot has that has waited longest."""
        slot = engine.slots_under_way[0]
        workers, held = self._client.membership.workers, int(protocol.held_totals[slot])
        seq = PULL_SEQ | (self._client.incarnation % PULL_SEQ)
        question = control_payload(
            Op.PULL, bytes(4 * self._lanes), job=self._job, worker=self._worker, slot=slot, seq=seq,
            session=protocol.membership.session, incarnation=self._client.incarnation,
        )  # fmt: skip
        self._transport.send(np.frombuffer(question, np.uint8)[None, :])
        until = self._clock() + ASK_S
        while (left := until - self._clock()) > 0:
            payloads, lengths = self._transport.receive(left)
            for row in np.flatnonzero(lengths >= HEADER.itemsize):
                header = payloads[row, : HEADER.itemsize].view(HEADER)[0]
                if header["op"] == Op.ANSWER and header["seq"] == seq and header["slot"] == slot:
                    there = (int(header["total"]) - held) % 2**32
                    return f"{workers - there} of {workers} workers have not contributed"
        return "the switch does not answer"

    # -- telemetry -------------------------------------------------------------------------------------------

    def telemetry(self) -> Report:
        """The worker's data for `serenectl`, as `Session.telemetry`; here an iteration is a collective."""
        client = self._client
        return {
            "iteration": self.collectives,
            "precision": self.precision,
            "epoch": client.epoch,
            "round": client.round,
            "at_epoch": client.epoch,
            "at_round": client.round,
            "compute_s": self.compute_s,
            "network_s": max(self.network_s - self.waiting_s, 0.0),
            "waiting_s": self.waiting_s,
            "retransmissions": client.counts.retransmissions,
            "packets_sent": client.counts.sent,
            "packets_received": client.counts.received,
            "contributions_sent": client.contributions_sent,
            **self.facts,
            REPORTED: self._steps.text(),
        }
