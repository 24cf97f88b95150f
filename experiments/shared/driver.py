"""Does a study's tasks on any executor. The driver is the process that hands them out and keeps their results."""

from __future__ import annotations

import os
import queue
import socket
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from serene.errors import SereneError
from serene.experiments.shared.build import this_build
from serene.experiments.shared.pool import Processes, WorkerLost
from serene.process.outputs import CannotWrite

TRIES = 3  # of a task whose worker died

T = TypeVar("T")
R = TypeVar("R")


class ClusterFailed(SereneError):
    """The cluster cannot do any task; the message states why."""


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """What a worker returns of a task. trouble: why this task failed. refused: why this worker can do no task at
    all."""

    result: R | None = None
    trouble: str | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Done(Generic[T, R]):
    """A task with its result; trouble: why it has none."""

    task: T
    result: R | None
    trouble: str | None


def work_off(todo: Sequence[T], do: Callable[[T], R], executor: Executor) -> Generator[Done[T, R], None, None]:
    """Does all tasks on the executor, and yields each as it is done.

    Workers get ``do`` and the task, pickled, and nothing else. A task whose worker dies is tried again, TRIES times in
    all. When the generator is closed, tasks that have not begun are cancelled. Raises ClusterFailed.
    """
    call: Callable[[T], Outcome[R]] = partial(_attempt, do, None if isinstance(executor, Processes) else this_build())
    ended: queue.SimpleQueue[Future[Outcome[R]]] = queue.SimpleQueue()
    running: dict[Future[Outcome[R]], int] = {}
    deaths: Counter[int] = Counter()
    # dask reports all tasks that a dying worker had, whichever killed it. They are tried once more, one at a time.
    suspects: list[int] = []
    alone: set[int] = set()  # those that have had that second try

    def hand_out(place: int) -> None:
        future = executor.submit(call, todo[place])
        running[future] = place
        future.add_done_callback(ended.put)

    try:
        for place in range(len(todo)):
            hand_out(place)
        while running or suspects:
            if not running:
                alone.add(suspects[-1])
                hand_out(suspects.pop())
            future = ended.get()
            place = running.pop(future)
            try:
                outcome = future.result()
            except WorkerLost as error:
                deaths[place] += 1
                if deaths[place] < TRIES:
                    hand_out(place)
                else:
                    yield Done(
                        todo[place], None, f"each of {TRIES} workers died while it ran this cell; the last: {error}"
                    )
                continue
            except ClusterFailed:
                raise
            except CancelledError:
                raise ClusterFailed("the cluster has dropped the cells: check that its scheduler runs") from None
            except Exception as error:
                if type(error).__name__ != "KilledWorker":  # dask's; by name, for dask need not be installed
                    raise ClusterFailed(
                        f"a worker cannot run Serene's cells: install the same Serene there as here. Its output: "
                        f"{type(error).__name__}: {error}"
                    ) from error
                if place in alone:
                    yield Done(todo[place], None, f"each worker died while it ran this cell: {error}")
                else:
                    suspects.append(place)
                continue
            if outcome.refused:
                raise ClusterFailed(outcome.refused)
            yield Done(todo[place], outcome.result, outcome.trouble)
    finally:
        for future in running:
            future.cancel()


def _attempt(do: Callable[[T], R], driver: str | None, task: T) -> Outcome[R]:
    """Runs on the worker. driver: the driver's build, which has to be the worker's, too; None if both are on the same
    machine."""
    here = f"worker {socket.gethostname()}, process {os.getpid()}"
    if driver is not None and driver != this_build():
        return Outcome(refused=f"another Serene than the driver's runs on {here}: {this_build()}; the driver's is "
                               f"{driver}; install the same on both")  # fmt: skip
    try:
        return Outcome(do(task))
    except CannotWrite as error:  # the next task could not write either
        return Outcome(refused=f"{error}; finished cells are kept: rerun to resume")
    except Exception as error:
        return Outcome(trouble=f"{type(error).__name__}: {error}{f' (on {here})' if driver is not None else ''}")
