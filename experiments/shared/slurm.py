"""An executor whose tasks are jobs that submitit hands to SLURM, one job a task."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError, UncompletedJobError

from experiments.shared.driver import ClusterFailed
from experiments.shared.pool import WorkerLost
from experiments.shared.studies import BadUsage
from serene.errors import choices

R = TypeVar("R")

POLL_S = 1.0  # between two looks at a job; submitit asks SLURM once a minute and looks for the result's file else
AT_ONCE = 100
KINDS = ("slurm", "local")


class Jobs(ThreadPoolExecutor):
    """A thread waits for each job. After ``shutdown`` jobs are cancelled.

    options: ``folder`` (which all nodes see), ``at_once`` (jobs), ``kind`` ("slurm", or "local": processes of this
    machine) and ``submitit``, a table of submitit's own. Raises BadUsage.
    """

    def __init__(self, options: Mapping[str, Any], scratch: Path) -> None:
        own: dict[str, Any] = {"folder": str(scratch / "jobs"), "at_once": AT_ONCE, "kind": KINDS[0], "submitit": {}}
        unknown = [name for name in options if name not in own]
        if unknown:
            raise BadUsage(f"option {choices(unknown)} of SLURM: expected {choices(own)}")
        own.update(options)
        if own["kind"] not in KINDS:
            raise BadUsage(f"option kind {own['kind']!r} of SLURM: expected {choices(KINDS)}")
        if not isinstance(own["at_once"], int) or own["at_once"] < 1:
            raise BadUsage(f"option at_once {own['at_once']!r} of SLURM: expected 1 or more")
        try:
            self._submitit = submitit.AutoExecutor(Path(own["folder"]).absolute(), cluster=own["kind"])
            self._submitit.update_parameters(**own["submitit"])
        except (RuntimeError, NameError, AssertionError, OSError) as error:
            raise BadUsage(f"SLURM by submitit: {error}") from error
        super().__init__(own["at_once"])
        self._one = threading.Lock()  # submitit is not made for several threads
        self._over = threading.Event()

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        return super().submit(self._as_a_job, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._over.set()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _as_a_job(self, fn: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
        """Raises WorkerLost, and ClusterFailed where no job can be begun or the function raises."""
        try:
            with self._one:
                job = self._submitit.submit(fn, *args, **kwargs)
        except (FailedSubmissionError, OSError) as error:
            raise ClusterFailed(f"SLURM takes no job: {error}") from error
        try:
            while not self._ended(job):
                if self._over.wait(POLL_S):
                    raise CancelledError
            with self._one:
                result: R = job.result()
        except FailedJobError as error:
            raise ClusterFailed(f"job {job.job_id}: {_last_line(error)}") from error
        except UncompletedJobError as error:
            raise WorkerLost(f"job {job.job_id} ended without a result ({_last_line(error)})") from error
        finally:
            if self._over.is_set():
                with self._one:
                    job.cancel(check=False)
        return result

    def _ended(self, job: submitit.Job[R]) -> bool:
        with self._one:
            return job.done()


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
