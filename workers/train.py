"""One worker of a training job: ``python -m serene.workers.train --worker 2 --workers 4 ...``.

It joins the job, does its steps (`Worker._train` is the loop), and leaves. A step computes a gradient, contributes it,
reads the sum of all workers' contributions, and moves the parameters against that sum. With ``--out`` the worker writes
worker-N.csv while it runs, and worker-N.json and parameters-N.npy at the end (workers/results.py).
"""

from __future__ import annotations

from serene.process.interrupts import Interrupted, allowed, end_quietly, ended, held

if __name__ == "__main__":
    end_quietly()

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from serene.arguments import command, usage
from serene.client import Client, NoAnswer, Session, Update
from serene.clock import unix_s
from serene.errors import SereneError
from serene.process.at_exit import leave_garbage
from serene.strategy import parse
from serene.wire import UNBOUNDED
from serene.workers import options as command_line
from serene.workers import stragglers
from serene.workers.baselines import Baseline, GlooExchange, Place, ServerExchange
from serene.workers.options import Options, transport
from serene.workers.results import WorkerFiles
from serene.workers.rpc import RpcExchange
from serene.workers.training import Trainer

# Test images for measuring the accuracy during training. With a CNN, all 10,000 take as long as hundreds of steps.
EVALUATED = 2000
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
    """One worker: its replica of the model, its session or baseline, and its results."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._trainer = Trainer(options, options.worker)
        self._straggler = stragglers.parse(options.straggler)
        self._files: WorkerFiles | None = None
        if options.out is not None:
            self._files = WorkerFiles(options.out, options.out_else, options.worker, COLUMNS)
            self._files.begin(options.steps, self._trainer.size)
        self._session = self._new_session()
        self._facts = self._session.facts
        self._initial_accuracy = self._facts["accuracy"] = self._trainer.accuracy(EVALUATED)
        self._started_at: float | None = None  # Unix seconds, as is _ended_at
        self._ended_at: float | None = None
        self._digest_when_left: str | None = None

    def _new_session(self) -> Session | Baseline:
        """The exchange of gradients that --exchange names: the switch, parameter servers, or gloo."""
        options, apply = self._options, self._trainer.apply
        if options.exchange == "switch":
            rack, worker = options.place
            return Session(
                Client(transport(options), options.job, worker, self._trainer.size, rack=rack),
                apply,
                join_timeout_s=options.join_timeout,
                on_lost=lambda lost: log_line(f"worker {options.worker}: {lost}; joining again"),
            )
        place = Place(options.worker, options.workers, self._trainer.size)
        strategy = parse(options.strategy)
        if options.exchange == "gloo":
            return GlooExchange(place, strategy, apply, options.servers[0], options.join_timeout)
        if options.exchange == "rpc":
            return RpcExchange(place, strategy, apply, options.servers[0], options.join_timeout)
        return ServerExchange(place, strategy, apply, options.servers, options.join_timeout)

    def run(self) -> None:
        """Joins the job, trains, leaves, and writes the results, even if the training is interrupted or fails."""
        with held(), self._session as session:
            with allowed():
                self._join()
            try:
                with self._recording():
                    self._train()
                with allowed():
                    everybody_left = session.finish(self._options.finish_timeout)
                if everybody_left:
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
                f"--workers {self._options.workers}: job {self._options.job} has {membership.workers} workers"
            )

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Records when the training begins and ends, and the digest of the final parameters."""
        self._started_at = unix_s()
        try:
            yield
        finally:
            self._ended_at = unix_s()
            self._digest_when_left = self._trainer.digest()

    def _train(self) -> None:
        """The training loop. Interrupts come only during the emulated compute time and in the exchange."""
        options, trainer, session = self._options, self._trainer, self._session
        for step in range(1, options.steps + 1):
            gradient, loss, compute_s = self._compute(step)
            self._facts["loss"] = loss
            self._facts["compute_s"] += compute_s

            # Contributes the gradient and blocks until the strategy lets this worker continue. Then it calls
            # `trainer.apply` with the sum of all contributions that have arrived since the last exchange.
            update = session.exchange(gradient)

            evaluated = step % options.eval_every == 0 or step == options.steps
            if evaluated:
                self._facts["accuracy"] = trainer.accuracy(EVALUATED)
            session.report("computing")
            if update is not None and self._files is not None:  # a step in which the session was lost has no Update
                self._files.step(self._row(step, update, compute_s, evaluated))

    def _compute(self, step: int) -> tuple[np.ndarray, float, float]:
        """The gradient of a step's batch, float32[size], the loss, and the time in seconds. The time is at least the
        emulated compute time and the straggler profile's delay together."""
        options, began = self._options, time.monotonic()
        gradient, loss = self._trainer.gradient(step)
        mean_s = options.compute_ms / 1000 or time.monotonic() - began  # --compute-ms 0: the gradient's real time
        delay_s = self._straggler.delay(options.worker, step, mean_s, options.seed)
        if delay_s > 1:  # emulates a failure: the controller's views show a pause, not computing
            self._session.report("paused", force=True)
        with allowed():
            time.sleep(max(began + mean_s + delay_s - time.monotonic(), 0))  # emulated compute time
        return gradient, loss, time.monotonic() - began

    def _row(self, step: int, update: Update, compute_s: float, evaluated: bool) -> dict[str, Any]:
        """A step's row of worker-N.csv, by column. The accuracy is empty if it was not evaluated after the step."""
        return {
            "worker": self._options.worker,
            "step": step,
            "t_unix": f"{unix_s():.6f}",
            "epoch": update.epoch,
            "round": update.round,
            "policy": policy_text(update),
            "loss": f"{self._facts['loss']:.6f}",
            "accuracy": f"{self._facts['accuracy']:.4f}" if evaluated else "",
            "compute_s": f"{compute_s:.6f}",
            "network_s": f"{update.network_s:.6f}",
            "waiting_s": f"{update.waiting_s:.6f}",
            "retransmissions": update.retransmissions,
            "contributions": update.contributions,
        }

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
            log_line(f"worker {worker}: cannot write {self._options.out}; the results are in {where}")


def policy_text(update: Update) -> str:
    """The fields of the policy that the answers carried. Only the controller knows the strategy's name."""
    if update.staleness == UNBOUNDED:
        return "asynchronous"
    return f"{update.sync_mask.bit_count()} counted, quorum {update.quorum}, staleness {update.staleness}"


def log_line(line: str) -> None:
    """Writes a line to standard error, which is the worker's log. A full disk does not end the training."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


@command
def main() -> int:
    leave_garbage()
    with usage():
        options = command_line.options()
    try:
        Worker(options).run()
    except (SereneError, OSError) as error:
        print(f"error: worker {options.worker}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
