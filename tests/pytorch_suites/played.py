"""Has PyTorch's tests run on the process group $PLAYED where they ask for gloo: a plugin of pytest's.

PyTorch's tables of what a backend can do know gloo, and not serene. So PyTorch is given gloo's name for all ($BACKEND),
and here groups of gloo are made of $PLAYED: the same tests run on both.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import Any

import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase

init_process_group, new_group = dist.init_process_group, dist.new_group


def played(backend: str | None) -> str | None:
    return os.environ["PLAYED"] if backend in ("gloo", "cpu:gloo") else backend


def init_of_played(backend: str | None = None, *args: Any, **named: Any) -> None:
    init_process_group(played(backend), *args, **named)


def new_group_of_played(*args: Any, **named: Any) -> Any:
    return new_group(*args, **{**named, "backend": played(named.get("backend"))})


dist.init_process_group = init_of_played
dist.new_group = new_group_of_played

if os.environ["PLAYED"] == "serene":
    with suppress(ImportError):  # without torchft none of its tests is played
        import torchft.process_group

        from serene.torch.torchft import ProcessGroupSerene

        torchft.process_group.ProcessGroupGloo = ProcessGroupSerene

# Ranks are forked from a process without threads that has imported all of this, which each would else do for itself.
RANKS = multiprocessing.get_context("forkserver")
RANKS.set_forkserver_preload([__name__, *os.environ.get("PRELOAD", "").split()])


def in_environment(environment: dict[str, str], target: Callable[..., None], *args: Any, **named: Any) -> None:
    os.environ.update(environment)
    target(*args, **named)


def forked(target: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> BaseProcess:
    return RANKS.Process(target=in_environment, args=(dict(os.environ), target, *args), kwargs=kwargs, name=name)


def spawn_processes(self: MultiProcessTestCase) -> None:
    self._start_processes(forked)


MultiProcessTestCase._spawn_processes = spawn_processes  # type: ignore[method-assign]
