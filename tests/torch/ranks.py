"""Starts the ranks of `tests.torch.ddp_worker`.

They are forked from a process without threads that has already imported PyTorch and the modules that its optimisers
import when they are first used. That saves each rank two seconds of processor time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.controller.processes import SwitchProcess
from tests.torch import ddp_worker

RANKS = multiprocessing.get_context("forkserver")
RANKS.set_forkserver_preload(["torch._dynamo", ddp_worker.__name__])


def started(
    switch: SwitchProcess | None, log: Path, rank: int, workers: int, rendezvous: int, out: Path,
    settings: Mapping[str, float],
) -> BaseProcess:  # fmt: skip
    """A rank's process, at the port rank + 1 of the switch, whatever network that is in. The rest: as of
    `ddp_worker`."""
    with switch.end(rank + 1) if switch else contextlib.nullcontext() as end:
        given = (log, rank, workers, rendezvous, out, settings, end)
        process = RANKS.Process(target=ddp_worker.logged, args=given)
        process.start()
    return process
