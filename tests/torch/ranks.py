"""What one rank of a process group does for a test: ``python -m tests.torch.ranks WHAT ARGUMENT ...``, as each rank.

WHAT is one of the functions in PROGRAMS, which say what they print.
"""

from __future__ import annotations

import multiprocessing
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import set_debug_level_from_env

from serene.errors import SereneError
from serene.torch import ErrorFeedback

COLLECTIVES = 4  # that are under way when a rank leaves


def leave(destroys: bool = True) -> None:
    """Destroys its group, or ends, while collectives are under way. Prints the outcome of each: whether the sum was
    right, or the error."""
    dist.init_process_group("serene")
    size = dist.get_world_size()
    given = [torch.full((300_000,), number + 1.0) for number in range(COLLECTIVES)]
    works = [dist.all_reduce(values, async_op=True) for values in given]
    if destroys:
        dist.destroy_process_group()
    for number, (values, work) in enumerate(zip(given, works, strict=True)):
        assert work is not None
        try:
            work.wait()
            print(bool((values == size * (number + 1.0)).all()), flush=True)
        except Exception as error:
            print(repr(error), flush=True)


def leave_forked() -> None:
    """A process of multiprocessing that ends after them, without destroying its group."""
    process = multiprocessing.get_context("fork").Process(target=leave, args=(False,))
    process.start()
    process.join()


def takes_feedback(group: dist.ProcessGroup) -> bool:
    try:
        ErrorFeedback(group)
    except SereneError:
        return False
    return True


def many_groups(backend: str, *numbers: str) -> None:
    """For each number makes so many groups beside the default group, and destroys them. Prints the job of each group,
    the default group's first, and whether all groups sum and those without a job refuse error feedback."""
    dist.init_process_group(backend)
    for number in numbers:
        groups: list[Any] = [dist.group.WORLD, *(dist.new_group([0, 1]) for _ in range(int(number)))]
        sums = []
        for group in groups:
            values = torch.full((3,), dist.get_rank() + 1.0)
            dist.all_reduce(values, group=group)
            sums.append(values.tolist() == [3.0] * 3)
        refused = all(takes_feedback(group) == (group.job is not None) for group in groups)
        print([group.job for group in groups], all(sums) and refused, flush=True)
        for group in groups[1:]:
            dist.destroy_process_group(group)
    dist.destroy_process_group()


def watched() -> None:
    """Prints the profiler's events of the process group, and what $TORCH_DISTRIBUTED_DEBUG=DETAIL says of a broadcast
    of tensors of different shapes."""
    set_debug_level_from_env()  # tests start processes that have imported PyTorch before they get this environment
    dist.init_process_group("serene")
    with torch.autograd.profiler.profile() as profile:
        dist.all_reduce(torch.ones(9))
        dist.reduce_scatter_single(torch.ones(4), torch.ones(4 * dist.get_world_size()))
    print(*(event.name for event in profile.function_events if event.name.startswith("serene")), flush=True)
    try:
        dist.broadcast(torch.ones(4 + dist.get_rank()), 0)
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
    dist.destroy_process_group()


def lag(folder: str) -> None:
    """Sums, step after step, until rank 0 finds FOLDER/over; rank 1 computes longer."""
    dist.init_process_group("serene")
    rank, over = dist.get_rank(), torch.zeros(1000)
    while not over.any():
        time.sleep(0.3 if rank == 1 else 0.05)
        over.fill_(float(rank == 0 and Path(folder, "over").exists()))
        dist.all_reduce(over)
    dist.destroy_process_group()


def busy_gloo() -> None:
    """Repeatedly calls each collective of gloo's while gloo's threads release the tensors of an earlier one."""
    from tests.torch import collectives  # other programs need none of what it imports

    dist.init_process_group("serene")
    for collective in collectives.OF_GLOO:
        for _ in range(40):
            # gloo holds the last reference to these tensors, and its thread needs the GIL to release it.
            for _ in range(3):
                dist.all_reduce(torch.ones(4, dtype=torch.int64), dist.ReduceOp.MAX, async_op=True)
            collective(None)
    dist.barrier()
    print("over", flush=True)
    dist.destroy_process_group()


def gloo_threads(program: str, *arguments: str) -> None:
    """Runs a program, and prints how many of gloo's threads remain after it has destroyed its process group."""
    destroy_process_group = dist.destroy_process_group

    def threads() -> int:
        return sum("gloo" in name.read_text() for name in Path("/proc/self/task").glob("*/comm"))

    def destroy_and_tell(group: dist.ProcessGroup | None = None) -> None:
        assert threads(), "they have another name"
        destroy_process_group(group)
        print(f"{threads()} threads of gloo's", flush=True)

    dist.destroy_process_group = destroy_and_tell
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


PROGRAMS: list[Callable[..., None]] = [leave, leave_forked, many_groups, watched, lag, busy_gloo, gloo_threads]

if __name__ == "__main__":
    {program.__name__: program for program in PROGRAMS}[sys.argv[1]](*sys.argv[2:])
