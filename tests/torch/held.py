"""Runs a program whose DistributedOptimizer waits at a step until a file is there.

    python -m tests.torch.held STEP FILE PROGRAM

While it waits, its process's number is in a file FILE.NUMBER, so that a test can tell, and may kill it. At the end
FILE.NUMBER.npz has what it has sent, and the sum that it has read: int32[values].
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from serene.torch import DistributedOptimizer


def main(at: int, file: Path, program: str) -> None:
    step, steps = DistributedOptimizer.step, 0
    optimizer: DistributedOptimizer | None = None
    own = file.with_name(f"{file.name}.{os.getpid()}")

    def held(self: DistributedOptimizer, *arguments: Any) -> Any:
        nonlocal steps, optimizer
        steps, optimizer = steps + 1, self
        if steps == at:
            own.touch()
            while not file.exists():
                time.sleep(0.02)
        return step(self, *arguments)

    DistributedOptimizer.step = held  # type: ignore[method-assign,assignment]
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")
    assert optimizer is not None
    np.savez(f"{own}.npz", sent=optimizer.sum_of_updates_sent.numpy(), read=optimizer.sum_of_updates_read.numpy())


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
