"""Where a study's cells run: in processes of this machine, on a dask cluster, or as SLURM jobs (docs/clusters.md)."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from serene import distribution
from serene.errors import BadUsage, SereneError
from serene.experiments.shared.driver import ClusterFailed
from serene.experiments.shared.pool import Processes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SLURM = "slurm"
SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")  # of a dask scheduler's address
PATIENCE_S = 30  # for a dask scheduler to answer

R = TypeVar("R")


class MissingExtra(SereneError):
    """A library is missing that is installed only with Serene's extra ``cluster``."""


@dataclass(frozen=True)
class Cluster:
    """Where cells run. where: a dask scheduler's address, ``slurm``, or empty for processes of this machine. options: a
    TOML file, for ``slurm`` only."""

    where: str = ""
    options: Path | None = None

    def check(self) -> None:
        """Checks the options. Raises BadUsage, or MissingExtra where a library is missing."""
        if self.options is not None and self.where != SLURM:
            raise BadUsage(f"--cluster-options {self.options}: options are for --cluster {SLURM}")
        if self.where == SLURM:
            _options(self.options)
            _library("submitit")
        elif self.where:
            try:
                parts = urlsplit(self.where)
                is_address = parts.scheme in SCHEMES and parts.hostname and parts.port
            except ValueError:  # a port that is no number from 0 to 65535, or brackets without an IPv6 address
                is_address = False
            if not is_address:
                raise BadUsage(f"--cluster {self.where}: expected tcp://host:port of a dask scheduler, or {SLURM}")
            _library("distributed")

    @contextmanager
    def executor(self, processes: int, scratch: Path, preload: tuple[str, ...] = ()) -> Iterator[Executor]:
        """An executor; at the end of the block, tasks that still run are given up. processes: how many, and preload:
        which modules they import once for all, if they are of this machine. scratch: a directory for SLURM's files, if
        the options name no other. Raises as ``check`` does, and ClusterFailed."""
        self.check()
        if not self.where:
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            executor: Executor = Processes(processes, preload)
        elif self.where == SLURM:
            from serene.experiments.shared.slurm import Jobs

            executor = Jobs(_options(self.options), scratch)
        else:
            with _dask(self.where) as executor:
                yield executor
            return
        try:
            yield executor
        finally:
            executor.shutdown(cancel_futures=True)


HERE = Cluster()


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--cluster`` and ``--cluster-options`` for a study's command line."""
    add = parser.add_argument
    add(
        "--cluster",
        default="",
        metavar="WHERE",
        help=f"tcp://host:port of a dask scheduler, or {SLURM}; default: this machine",
    )
    add(
        "--cluster-options", type=Path, metavar="FILE", help=f"TOML file with the options of {SLURM} (docs/clusters.md)"
    )


def chosen(options: argparse.Namespace) -> Cluster:
    """The cluster that the command line names. Raises as ``Cluster.check``."""
    cluster = Cluster(options.cluster, options.cluster_options)
    cluster.check()
    return cluster


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        client = _library("distributed").Client(address, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterFailed(f"no dask scheduler answers at {address} within {PATIENCE_S} s: {error}") from error
    with client:
        yield _DaskExecutor(client)


class _DaskExecutor(Executor):
    """dask's own executor never ends a future whose result is lost with its worker and cannot be computed again."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., R], /, *arguments: Any, **further: Any) -> Future[R]:
        # Not pure: dask would answer a repeated task from its memory.
        task = self._client.submit(function, *arguments, pure=False, **further)
        ended: Future[R] = Future()
        ended.add_done_callback(lambda ended: task.cancel() if ended.cancelled() and not task.cancelled() else None)
        self._client.loop.add_callback(self._pass_on, task, ended)
        return ended

    async def _pass_on(self, task: Any, ended: Future[R]) -> None:
        """Ends the future as dask's task ends, which is repeated if its result is lost."""
        try:
            end = partial(ended.set_result, await self._client.gather(task, asynchronous=True))
        except BaseException as error:
            end = partial(ended.set_exception, error)
        if task.cancelled():
            ended.cancel()
        if ended.set_running_or_notify_cancel():
            end()


def _options(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise BadUsage(f"--cluster-options {path}: {error}") from None
    return found


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(f"a cluster needs {name} ({error}): {distribution.to_install('cluster')}") from error
