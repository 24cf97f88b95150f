"""One worker of a training job: ``python -m workers.train --worker 2 --workers 4 ...``.

It joins the job, pushes its gradients through the switch, reports to the controller, and leaves. With ``--out`` it
writes worker-N.csv while it runs, and worker-N.json and parameters-N.npy at the end (workers/results.py).
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from typing import Any

from serene.at_exit import leave_garbage
from serene.client import Client, NoAnswer, Session, Update
from serene.clock import unix_s
from serene.errors import SereneError
from serene.interrupts import Interrupted, allowed, ended, held
from serene.strategy import parse
from serene.wire import UNBOUNDED
from workers import options as command_line
from workers import stragglers
from workers.baselines import Exchange, GlooExchange, Place, ServerExchange
from workers.results import WorkerFiles
from workers.training import Recipe, Trainer

EVALUATED = 2000  # test images, while it trains: with a CNN, 10,000 of them take as long as hundreds of steps
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


class Worker:
    """The training loop, and what is written of it."""

    def __init__(self, options: argparse.Namespace) -> None:
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
        self._session = self._exchange()
        self._facts = self._session.facts
        self._initial_accuracy = self._facts["accuracy"] = self._trainer.accuracy(EVALUATED)
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._digest_when_left: str | None = None

    def _exchange(self) -> Exchange:
        """What the gradients go through: the switch, or a baseline."""
        options, apply = self._options, self._trainer.apply
        if options.exchange == "switch":
            rack, worker = command_line.place(options)
            return Session(
                Client(command_line.transport(options), options.job, worker, self._trainer.size, rack=rack),
                apply,
                join_timeout_s=options.join_timeout,
                on_lost=lambda lost: say(f"worker {options.worker}: {lost}; joining again"),
            )
        place = Place(options.worker, options.workers, self._trainer.size)
        kind = GlooExchange if options.exchange == "gloo" else ServerExchange
        where = options.servers[0] if options.exchange == "gloo" else options.servers
        return kind(place, parse(options.strategy), apply, where, options.join_timeout)

    def run(self) -> None:
        """Joins, trains, leaves; what was done is written in any case."""
        with held(), self._session as session:
            with allowed():
                self._join()
            try:
                self._train()
                with allowed():
                    over = session.finish(self._options.finish_timeout)
                if over:
                    self._facts["accuracy"] = self._trainer.accuracy()
            except NoAnswer:
                raise  # the switch does not answer: LEAVE would not arrive
            except (Interrupted, SereneError, OSError):
                session.abandon()
                raise
            finally:
                self._write_results()

    def _join(self) -> None:
        membership = self._session.join()
        if membership.workers != self._options.workers:
            self._session.abandon()
            raise SereneError(
                f"--workers {self._options.workers}: job {self._options.job} has {membership.workers}; "
                "every contribution would have the wrong weight"
            )

    def _train(self) -> None:
        self._started_at = unix_s()
        try:
            for step in range(1, self._options.steps + 1):
                self._step(step)
        finally:
            self._ended_at = unix_s()
            self._digest_when_left = self._trainer.digest()

    def _step(self, step: int) -> None:
        began = time.monotonic()
        gradient, loss = self._trainer.gradient(step)
        mean = self._options.compute_ms / 1000 or time.monotonic() - began
        delay = self._straggler.delay(self._options.worker, step, mean, self._options.seed)
        self._pause(began + mean + delay, delay)
        computed = time.monotonic() - began
        self._facts["loss"] = loss
        self._facts["compute_s"] += computed

        update = self._session.exchange(gradient)

        evaluated = step % self._options.eval_every == 0 or step == self._options.steps
        if evaluated:
            self._facts["accuracy"] = self._trainer.accuracy(EVALUATED)
        self._session.report("computing")
        if update is not None and self._files is not None:
            self._files.step(self._row(step, update, computed, evaluated))

    def _row(self, step: int, update: Update, computed: float, evaluated: bool) -> dict[str, Any]:
        """By COLUMNS."""
        return {
            "worker": self._options.worker,
            "step": step,
            "t_unix": f"{unix_s():.6f}",
            "epoch": update.epoch,
            "round": update.round,
            "policy": policy_text(update),
            "loss": f"{self._facts['loss']:.6f}",
            "accuracy": f"{self._facts['accuracy']:.4f}" if evaluated else "",
            "compute_s": f"{computed:.6f}",
            "network_s": f"{update.network_s:.6f}",
            "waiting_s": f"{update.waiting_s:.6f}",
            "retransmissions": update.retransmissions,
            "contributions": update.contributions,
        }

    def _pause(self, until: float, delay: float) -> None:
        """The rest of the emulated compute time; a long one is a failure that the controller should see."""
        if delay > 1:
            self._session.report("paused", force=True)
        remaining = until - time.monotonic()
        with allowed():
            time.sleep(max(remaining, 0))  # emulated compute time, not a wait for something

    def _write_results(self) -> None:
        if self._files is None:
            return
        worker, session = self._options.worker, self._session
        results = {
            "worker": worker,
            "parameters": self._trainer.size,
            "steps": session.iteration,
            "started_unix": self._started_at,
            "ended_unix": self._ended_at,
            "initial_accuracy": self._initial_accuracy,
            "final_accuracy": self._facts["accuracy"],
            "parameters_sha256": self._trainer.digest(),
            "parameters_sha256_when_left": self._digest_when_left,
            "reads_at_risk": session.reads_at_risk,
            **session.telemetry(),
        }
        where = self._files.finish(results, self._trainer.parameters)
        if where != self._options.out:
            say(f"worker {worker}: cannot write {self._options.out}; the results are in {where}")


def policy_text(update: Update) -> str:
    """The policy that an answer carried, in the field's terms; the controller knows the strategy's own name."""
    if update.staleness == UNBOUNDED:
        return "asynchronous"
    return f"{update.sync_mask.bit_count()} counted, quorum {update.quorum}, staleness {update.staleness}"


def say(line: str) -> None:
    """Writes to the log; training goes on if the log's disk is full."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def main() -> int:
    leave_garbage()
    options = command_line.parser().parse_args()
    try:
        command_line.check(options)
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        Worker(options).run()
    except (SereneError, OSError) as error:
        print(f"error: worker {options.worker}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
