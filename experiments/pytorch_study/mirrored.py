"""Gloo with another order of summation, as a yardstick: how far two trainings part that are both right.

torchrun --nproc-per-node 4 -m serene.experiments.pytorch_study.mirrored examples/ddp.py --backend mirrored

registers the process group ``mirrored`` and then runs a program, or with ``-m`` a module. In that group, gloo's
all-reduce has the ranks in reverse order, so that the same numbers are added, and rounded, in another order.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, ProcessGroup, ProcessGroupGloo, Work  # type: ignore[attr-defined]

from serene.torch.group import SwitchGroup

BACKEND = "mirrored"


class MirroredGroup(SwitchGroup):
    """A process group without a job in a switch: it sums through another group of gloo, in which rank r is rank
    ``size - 1 - r``."""

    def _open(self, rank: int, size: int, ranks: Sequence[int]) -> None:
        place = size - 1 - rank
        store = PrefixStore("mirror", self._store)
        kind = ProcessGroup.BackendType.GLOO
        self._mirror = ProcessGroup(store, place, size)
        self._mirror._set_default_backend(kind)
        gloo = ProcessGroupGloo(store, place, size, timeout=self._timeout)
        self._mirror._register_backend(torch.device("cpu"), kind, gloo)

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        self.summed += 1
        return self._mirror.allreduce(tensors, opts)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        whole = input.clone()
        options = dist.AllreduceOptions()
        if opts is not None:
            options.reduceOp = opts.reduceOp
        work = self.allreduce([whole], options)
        work.wait()
        output.copy_(whole.view(self.size(), -1)[self.rank()].view(output.shape))
        return work


def _make(options: Any, _: object) -> ProcessGroup:
    return MirroredGroup(options.store, options.group_rank, options.group_size, options.timeout)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("error: expected a program, as examples/ddp.py, or -m and a module, and its arguments")
    dist.Backend.register_backend(BACKEND, _make, extended_api=True, devices=["cpu"])
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
