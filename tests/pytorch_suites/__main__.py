"""``python -m tests.pytorch_suites [--out FILE]``: PyTorch's tests that come with it, on gloo and on serene.

Prints how many passed on each, and every test that gloo passes and serene does not. Its exit status says whether there
is one whose name is not in KNOWN.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import torch

from tests.pytorch_suites.playing import Ended, play
from tests.torch.local import local_switch

RUNS = ((3, "OFF"), (4, "OFF"), (3, "DETAIL"))
KNOWN = {"test_monitored_barrier": "`dist.monitored_barrier` refuses every backend but gloo by name"}


def why_known(name: str) -> str | None:
    return next((why for start, why in KNOWN.items() if name.startswith(start)), None)


def compared(gloo: dict[str, Ended], ours: dict[str, Ended]) -> list[str]:
    """A line for each test that gloo passes and serene does not."""
    return [
        f"{name}: {ours[name].status}: {why_known(name) or ours[name].why}"
        for name, ended in sorted(gloo.items())
        if ended.status == "passed" and ours[name].status != "passed"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="make pytorch-suites")
    parser.add_argument("--out", type=Path, help="a file for what is printed")
    parser.add_argument("--ranks", type=int, choices=(3, 4), help="only the runs of so many ranks")
    arguments = parser.parse_args()
    lines, unknown = [f"PyTorch {torch.__version__}"], 0
    for ranks, debug in RUNS:
        if arguments.ranks not in (None, ranks):
            continue
        with tempfile.TemporaryDirectory() as folder, local_switch(Path(folder)) as local:
            ended = {backend: play(backend, ranks, local.environment, debug=debug) for backend in ("serene", "gloo")}
        passed = {name: sum(one.status == "passed" for one in of.values()) for name, of in ended.items()}
        differences = compared(ended["gloo"], ended["serene"])
        unknown += sum(why_known(line.split(":")[0]) is None for line in differences)
        setting = "" if debug == "OFF" else f", TORCH_DISTRIBUTED_DEBUG={debug}"
        lines += [f"{ranks} ranks{setting}: of {len(ended['gloo'])} tests gloo passes {passed['gloo']}, serene "
                  f"{passed['serene']}", *(f"    {line}" for line in differences)]  # fmt: skip
        print("\n".join(lines[-1 - len(differences) :]), flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + os.linesep)
    raise SystemExit(unknown > 0)


if __name__ == "__main__":
    main()
