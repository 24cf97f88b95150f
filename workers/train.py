"""One worker of a training job: ``python -m workers.train --worker 2 --workers 4 ...``.

It joins the job, pushes its gradients through the switch, reports to the controller, and leaves. With ``--out`` it
writes worker-N.csv while it runs, and worker-N.json and parameters-N.npy at the end (workers/results.py).
"""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from serene.arguments import Parser
from serene.client import Client, FrameTransport, NoAnswer, SessionLost, Transport, UdpTransport, Update
from serene.errors import SereneError
from serene.wire import HEADER, SWITCH_IP, UNBOUNDED
from workers import data, models, stragglers
from workers.results import WorkerFiles
from workers.training import Recipe, Trainer

REPORT_EVERY_S = 0.2
FIRST_EPHEMERAL_PORT = 49152  # RFC 6335
COLUMNS = (
    "worker",
    "step",
    "t_unix",
    "epoch",
    "round",
    "policy",
    "loss",
    "accuracy",
    "compute_s",
    "network_s",
    "waiting_s",
    "retransmissions",
    "contributions",
)


class Stopped(Exception):
    """A signal asked the worker to end."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass
class Totals:
    """Sums over the run, as the summary has them."""

    compute_s: float = 0.0
    network_s: float = 0.0
    waiting_s: float = 0.0
    step: int = 0
    epoch: int | None = None
    round: int | None = None
    loss: float | None = None
    accuracy: float | None = None
    reads_at_risk: int = 0  # reads that may have held more than 32 bits
    sessions_lost: int = 0  # by the switch, and resumed
    contributions_lost: int = 0  # a slot, of all workers together, with those sessions
    iterations_repeated: int = 0  # that the restored sums may hold already
    last_report: float = field(default=0.0, repr=False)
    last_state: str = field(default="", repr=False)


def policy_text(update: Update) -> str:
    """The policy that an answer carried, in the field's terms; the controller knows the strategy's own name."""
    if update.staleness == UNBOUNDED:
        return "asynchronous"
    return f"{update.sync_mask.bit_count()} counted, quorum {update.quorum}, staleness {update.staleness}"


class Worker:
    """The training loop with its book-keeping."""

    def __init__(self, options: argparse.Namespace, transport: Transport) -> None:
        self._options = options
        recipe = Recipe(
            options.model, options.dataset, options.workers, options.steps, options.batch_size, options.lr,
            options.seed, options.data_dir,
        )  # fmt: skip
        self._trainer = Trainer(recipe, options.worker)
        self._straggler = stragglers.parse(options.straggler)
        self._files: WorkerFiles | None = None
        if options.out is not None:
            self._files = WorkerFiles(options.out, options.out_else, options.worker, COLUMNS)
            self._files.begin(options.steps, self._trainer.size)
        self._client = Client(transport, options.job, options.worker, self._trainer.size)
        self._client.while_waiting = lambda: self._report("waiting")
        self._totals = Totals()
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._initial_accuracy = self._totals.accuracy = self._trainer.accuracy()
        self._digest_when_left: str | None = None

    def run(self) -> None:
        """Joins, trains, leaves; what was done is written in any case."""
        with self._client:
            self._join()
            try:
                self._train()
                self._finish()
            except NoAnswer:
                raise  # there is nobody to say goodbye to
            except (Stopped, SereneError, OSError):
                self._report("stopped", force=True)
                self._client.leave()  # or the others wait for this worker for ever
                raise
            finally:
                self._write_results()

    def _join(self) -> None:
        membership = self._client.join(self._options.join_timeout)
        if membership.workers != self._options.workers:
            self._client.leave()
            raise SereneError(
                f"--workers {self._options.workers}: job {self._options.job} has {membership.workers}; "
                "every contribution would have the wrong weight"
            )
        self._catch_up()

    def _catch_up(self) -> bool:
        """Up to date with a job that has begun before; whether the iteration under way is in its sums already."""
        while True:
            try:
                missed = self._client.catch_up()
            except SessionLost:
                self._client.join(self._options.join_timeout)
                continue
            if missed is None:
                return False
            self._trainer.apply(missed.delta)
            if missed.restored is None:
                return False
            self._totals.contributions_lost += missed.restored.lost
            self._totals.iterations_repeated += missed.restored.repeated
            return missed.restored.contained

    def _resume(self, lost: SessionLost) -> bool:
        """Into the session after the one that the switch has lost; as ``_catch_up``."""
        say(f"worker {self._options.worker}: {lost}; joining again")
        self._totals.sessions_lost += 1
        self._client.join(self._options.join_timeout)
        return self._catch_up()

    def _train(self) -> None:
        self._started_at = time.time()
        try:
            step = 1
            while step <= self._options.steps:
                try:
                    row = self._step(step)
                except SessionLost as lost:
                    step += self._resume(lost)
                    continue
                if self._files is not None:
                    self._files.step(row)
                step += 1
        finally:
            self._ended_at = time.time()
            self._digest_when_left = self._trainer.digest()

    def _step(self, step: int) -> dict[str, Any]:
        totals = self._totals
        began = time.monotonic()
        gradient, loss = self._trainer.gradient(step)
        mean = self._options.compute_ms / 1000 or time.monotonic() - began
        delay = self._straggler.delay(self._options.worker, step, mean, self._options.seed)
        self._pause(began + mean + delay, delay)
        computed = time.monotonic() - began
        totals.loss = loss
        totals.compute_s += computed
        self._report("exchanging")
        update = self._client.exchange(gradient)
        self._apply(update)
        totals.step, totals.epoch, totals.round = step, update.epoch, update.round
        totals.network_s += update.network_s
        totals.waiting_s += update.waiting_s
        evaluated = step % self._options.eval_every == 0 or step == self._options.steps
        if evaluated:
            totals.accuracy = self._trainer.accuracy()
        self._report("computing")
        return {
            "worker": self._options.worker,
            "step": step,
            "t_unix": f"{time.time():.6f}",
            "epoch": update.epoch,
            "round": update.round,
            "policy": policy_text(update),
            "loss": f"{loss:.6f}",
            "accuracy": f"{totals.accuracy:.4f}" if evaluated else "",
            "compute_s": f"{computed:.6f}",
            "network_s": f"{update.network_s:.6f}",
            "waiting_s": f"{update.waiting_s:.6f}",
            "retransmissions": update.retransmissions,
            "contributions": update.contributions,
        }

    def _apply(self, update: Update) -> None:
        self._trainer.apply(update.delta)
        self._totals.reads_at_risk += update.overflow_possible

    def _pause(self, until: float, delay: float) -> None:
        """The rest of the emulated compute time; a long one is a failure that the controller should see."""
        if delay > 1:
            self._report("paused", force=True)
        remaining = until - time.monotonic()
        if remaining > 0:
            time.sleep(remaining)  # emulated compute time, not a wait for something

    def _report(self, state: str, *, force: bool = False) -> None:
        now, totals = time.monotonic(), self._totals
        # The end of what was reported is reported too, or a worker would seem to exchange all the time; and a wait is
        # reported when it begins, because nobody is to wonder why a worker that waits is said to compute.
        ended = totals.last_state in ("exchanging", "waiting") and state == "computing"
        begun = state == "waiting" != totals.last_state
        if not (force or ended or begun) and now - totals.last_report < REPORT_EVERY_S:
            return
        totals.last_report, totals.last_state = now, state
        self._client.report({"state": state, **self._facts()})

    def _facts(self) -> dict[str, Any]:
        totals, counts = self._totals, self._client.counts
        return {
            "iteration": totals.step,
            "epoch": totals.epoch,
            "round": totals.round,
            "at_epoch": self._client.epoch,
            "at_round": self._client.round,
            "loss": totals.loss,
            "accuracy": totals.accuracy,
            "compute_s": totals.compute_s,
            "network_s": totals.network_s,
            "waiting_s": totals.waiting_s,
            "retransmissions": counts.retransmissions,
            "saturated_values": self._client.saturated_values,
            "packets_sent": counts.sent,
            "packets_received": counts.received,
            "contributions_sent": self._client.contributions_sent,
            "sessions_lost": totals.sessions_lost,
            "contributions_lost": totals.contributions_lost,
            "iterations_repeated": totals.iterations_repeated,
        }

    def _finish(self) -> None:
        """Leaves; then, when all have left, reads once more: every replica holds every contribution."""
        self._report("finished", force=True)
        while True:
            try:
                if self._client.leave_and_wait(self._options.finish_timeout):
                    self._apply(self._client.pull())
                    self._totals.accuracy = self._trainer.accuracy()
                return
            except SessionLost as lost:
                self._resume(lost)

    def _write_results(self) -> None:
        if self._files is None:
            return
        worker = self._options.worker
        results = {
            "worker": worker,
            "parameters": self._trainer.size,
            "steps": self._totals.step,
            "started_unix": self._started_at,
            "ended_unix": self._ended_at,
            "initial_accuracy": self._initial_accuracy,
            "final_accuracy": self._totals.accuracy,
            "parameters_sha256": self._trainer.digest(),
            "parameters_sha256_when_left": self._digest_when_left,
            "reads_at_risk": self._totals.reads_at_risk,
            **self._facts(),
        }
        where = self._files.finish(results, self._trainer.parameters)
        if where != self._options.out:
            say(f"worker {worker}: cannot write {self._options.out}; the results are in {where}")


def say(line: str) -> None:
    """To the log, which may be on a disk that is full: that is no reason to stop training."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


# -- command line --------------------------------------------------------------------------------------------


def _two_ports(text: str) -> tuple[tuple[str, int] | int, tuple[str, int]]:
    given = re.fullmatch(r"(fd)?(\d+):(\d+)", text)
    if given:
        inherited, local, switch = bool(given[1]), int(given[2]), int(given[3])
        if 0 < switch < 65536 and (inherited or 0 < local < 65536):
            return local if inherited else ("127.0.0.1", local), ("127.0.0.1", switch)
    raise argparse.ArgumentTypeError(f"{text}: expected LOCAL:SWITCH, UDP ports (or fdN:SWITCH)")


def parser() -> argparse.ArgumentParser:
    result = Parser(prog="python -m workers.train", description="One worker of a training job.")
    add = result.add_argument
    add("--job", type=int, default=0)
    add("--worker", type=int, required=True, help="this worker's id, from 0")
    add("--workers", type=int, required=True, help="of the whole job")
    add("--switch-ip", default=SWITCH_IP, help=f"where the switch answers (default {SWITCH_IP})")
    add(
        "--frame-udp",
        type=_two_ports,
        metavar="LOCAL:SWITCH",
        help="frames in UDP, to a udp: port of serene-switch; LOCAL may be fdN, an inherited socket",
    )
    add("--model", default="mlp", help="mlp or cnn")
    add("--dataset", default="digits", help="digits, mnist or cifar10")
    add("--data-dir", type=Path, default=None)
    add("--steps", type=int, default=200)
    add("--batch-size", type=int, default=32)
    add("--lr", type=float, default=None, help="learning rate (default: the model's own)")
    add("--seed", type=int, default=1)
    add("--straggler", default="none", help="a profile, as slow_worker:probability=0.3")
    add("--compute-ms", type=float, default=50, help="mean compute time of an iteration; 0: as fast as it goes")
    add("--eval-every", type=int, default=5, metavar="STEPS")
    add("--join-timeout", type=float, default=120, metavar="SECONDS")
    add("--finish-timeout", type=float, default=600, metavar="SECONDS", help="to wait for the others at the end")
    add("--out", type=Path, default=None, help="a directory for this worker's results")
    add("--out-else", type=Path, default=None, metavar="DIR", help="where they go if --out cannot be written to")
    return result


def _check(options: argparse.Namespace) -> None:
    models.check_model(options.model)
    data.check_dataset(options.dataset)
    # What packets can say at all; which jobs and workers the switch's program has, the controller tells.
    _expect(options, "workers", 1, 8 * HEADER["sync_mask"].itemsize)
    _expect(options, "worker", 0, options.workers - 1)
    _expect(options, "job", 0, 256 ** HEADER["job"].itemsize - 1)
    for name in ("steps", "batch_size", "eval_every"):
        _expect(options, name, 1)
    for name in ("seed", "compute_ms", "join_timeout", "finish_timeout"):
        _expect(options, name, 0)
    if options.lr is not None and not 0 < options.lr < math.inf:
        raise SereneError(f"--lr {options.lr:g}: expected a number above 0")
    stragglers.check_workers(stragglers.parse(options.straggler), options.workers)


def _expect(options: argparse.Namespace, name: str, low: int, high: int | None = None) -> None:
    value = getattr(options, name)
    if not (math.isfinite(value) and low <= value <= (value if high is None else high)):
        wanted = f"{low} or more" if high is None else f"{low} to {high}"
        raise SereneError(f"--{name.replace('_', '-')} {value}: expected {wanted}")


def _transport(options: argparse.Namespace) -> Transport:
    if options.frame_udp is None:
        return UdpTransport(options.switch_ip)
    local, switch = options.frame_udp
    return FrameTransport(
        options.worker,
        local=local,
        switch=switch,
        switch_ip=options.switch_ip,
        udp_port=FIRST_EPHEMERAL_PORT + os.getpid() % 16384,  # as a kernel's: a restarted worker has another one
    )


def main() -> None:
    options = parser().parse_args()

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        _check(options)
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    try:
        Worker(options, _transport(options)).run()
    except Stopped as stopped:
        raise SystemExit(128 + stopped.number) from None
    except (SereneError, OSError) as error:
        print(f"error: worker {options.worker}: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
