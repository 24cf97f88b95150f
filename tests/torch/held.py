"""Runs a program whose DistributedOptimizer waits at a step until a file is there.

    python -m tests.torch.held STEP FILE PROGRAM

While it waits, its process's number is in a file FILE.NUMBER, so that a test can tell, and may kill it.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from serene.torch import DistributedOptimizer


def main(at: int, file: Path, program: str) -> None:
    step, steps = DistributedOptimizer.step, 0

    def held(self: DistributedOptimizer, *arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == at:
            file.with_name(f"{file.name}.{os.getpid()}").touch()
            while not file.exists():
                time.sleep(0.02)
        return step(self, *arguments)

    DistributedOptimizer.step = held  # type: ignore[method-assign,assignment]
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
