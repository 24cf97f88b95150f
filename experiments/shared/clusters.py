"""Where a study's cells run: in processes of this machine, on a dask cluster, or as SLURM jobs (docs/clusters.md)."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
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
        executor: Executor = client.get_executor(pure=False)  # or dask would answer a repeated task from its memory
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


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
