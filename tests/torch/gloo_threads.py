"""Runs a program, and prints how many of gloo's threads remain after it has destroyed its process group.

... python -m tests.torch.gloo_threads PROGRAM ARGUMENT...
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import torch.distributed as dist

destroy_process_group = dist.destroy_process_group


def threads() -> int:
    return sum("gloo" in name.read_text() for name in Path("/proc/self/task").glob("*/comm"))


def destroy_and_tell(group: dist.ProcessGroup | None = None) -> None:
    assert threads(), "they have another name"
    destroy_process_group(group)
    print(f"{threads()} threads of gloo's", flush=True)


if __name__ == "__main__":
    dist.destroy_process_group = destroy_and_tell
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
