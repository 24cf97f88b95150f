"""An executor that makes a SLURM job of each task, by submitit."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError, UncompletedJobError

from serene.errors import BadUsage, choices
from serene.experiments.shared.driver import ClusterFailed
from serene.experiments.shared.pool import WorkerLost

R = TypeVar("R")

AT_ONCE = 100
KINDS = ("slurm", "local")
# How often a job is polled; submitit then looks for the result's file, and asks SLURM itself once a minute only.
POLL_S = {"slurm": 1.0, "local": 0.05}
# How long a job's result may take to be seen after the job has ended: a network file system shows files late.
RESULT_S = {"slurm": 15.0, "local": 0.0}


class Jobs(ThreadPoolExecutor):
    """An executor with a thread for each job that is under way. ``shutdown`` cancels the jobs.

    options: ``folder``, a directory that all nodes see; ``at_once``, how many jobs at most; ``kind``, "slurm", or
    "local" for processes of this machine; ``submitit``, a table of submitit's own parameters. scratch: where ``folder``
    is by default. Raises BadUsage.
    """

    def __init__(self, options: Mapping[str, Any], scratch: Path) -> None:
        own: dict[str, Any] = {"folder": str(scratch / "jobs"), "at_once": AT_ONCE, "kind": KINDS[0], "submitit": {}}
        unknown = [name for name in options if name not in own]
        if unknown:
            raise BadUsage(f"option {choices(unknown)} of SLURM: expected {choices(own)}")
        own.update(options)
        if own["kind"] not in KINDS:
            raise BadUsage(f"option kind {own['kind']!r} of SLURM: expected {choices(KINDS)}")
        if type(own["at_once"]) is not int or own["at_once"] < 1:
            raise BadUsage(f"option at_once {own['at_once']!r} of SLURM: expected 1 or more")
        for name, kind, expected in (("folder", str, "a path"), ("submitit", dict, "a table")):
            if not isinstance(own[name], kind):
                raise BadUsage(f"option {name} {own[name]!r} of SLURM: expected {expected}")
        try:
            self._submitit = submitit.AutoExecutor(Path(own["folder"]).absolute(), cluster=own["kind"])
            self._submitit.update_parameters(**own["submitit"])
        except (RuntimeError, NameError, AssertionError, OSError, ValueError) as error:
            raise BadUsage(f"SLURM by submitit: {error}") from error
        super().__init__(own["at_once"])
        self._kind: str = own["kind"]
        self._one = threading.Lock()  # submitit is not thread-safe
        self._over = threading.Event()

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        return super().submit(self._as_a_job, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._over.set()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _as_a_job(self, fn: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
        """Submits a job and waits for its result. Raises WorkerLost if the job ends without one, and ClusterFailed if
        none can be submitted or the function raises: `driver` hands tasks whose errors are results."""
        try:
            with self._one:
                job = self._submitit.submit(fn, *args, **kwargs)
        except (FailedSubmissionError, OSError) as error:
            raise ClusterFailed(f"SLURM takes no job: {error}") from error
        try:
            while not self._ended(job):
                self._pause()
            self._await_result(job)
            with self._one:
                job._results_timeout_s = 0  # or submitit would wait for the file here, with the lock held
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

    def _pause(self) -> None:
        if self._over.wait(POLL_S[self._kind]):
            raise CancelledError

    def _await_result(self, job: submitit.Job[R]) -> None:
        """Waits until the result's file is seen, RESULT_S at most."""
        folder, until = job.paths.folder, time.monotonic() + RESULT_S[self._kind]
        with contextlib.suppress(PermissionError):
            folder.chmod(folder.stat().st_mode)  # has an NFS client discard its cached list of the files
        while not job.paths.result_pickle.exists() and time.monotonic() < until:
            self._pause()

    def _ended(self, job: submitit.Job[R]) -> bool:
        with self._one:
            return job.done()


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
