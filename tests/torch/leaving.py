"""A rank that destroys its group while collectives are under way: ``python -m tests.torch.leaving``, as each rank;
``python -m tests.torch.leaving forked``: a process of multiprocessing that ends after them, without destroying it.

Prints the outcome of each collective: whether the sum was right, or the error.
"""

from __future__ import annotations

import multiprocessing
import sys

import torch
import torch.distributed as dist

COLLECTIVES = 4


def main(destroys: bool) -> None:
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


if __name__ == "__main__":
    if sys.argv[1:] == ["forked"]:
        process = multiprocessing.get_context("fork").Process(target=main, args=(False,))
        process.start()
        process.join()
    else:
        main(True)
