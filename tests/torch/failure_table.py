"""Prints a table of what each rank says, and after how long, when a rank, the switch or the controller is killed.

    python -m tests.torch.failure_table

Four ranks of DistributedDataParallel by the process group, on one machine; the group's timeout is 20 s. A rank that has
said nothing after 75 s either goes on or waits. The whole takes about five minutes.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.controller.processes import ROOT, until
from tests.torch.local import Local, local_switch, start_ranks

RANKS, TIMEOUT_S, PATIENCE_S, LOOK_S = 4, 20, 75, 3
BY_DDP = 1  # as `tests.torch.failing` numbers the ways
VICTIMS = ["rank 1", "the switch", "the switch, and started again", "the controller"]


def kill(victim: str, local: Local, ranks: list[subprocess.Popen[str]]) -> None:
    if victim == "rank 1":
        ranks[1].kill()
    elif victim == "the controller":
        os.kill(int(next(local.folder.glob("controller-*.pid")).read_text()), signal.SIGKILL)
    else:
        os.kill(json.loads(next(local.folder.glob("switch-*.json")).read_text())[0], signal.SIGKILL)


def start_switch(local: Local) -> None:
    """Starts the switch again at the same address, for the controller that still runs."""
    program = f"from serene.controller.commands import local; local.start({local.switch!r}, range(1, {RANKS + 1}))"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=dict(local.environment), check=True)


def steps(folder: Path) -> list[str]:
    return [(folder / f"step-{rank}").read_text() for rank in range(RANKS)]


def row(victim: str) -> list[str]:
    """Returns one row of the table: each rank's error after the victim was killed, and when it came."""
    with tempfile.TemporaryDirectory() as name, local_switch(Path(name), "--ports", f"1-{RANKS}") as local:
        folder = Path(name)
        arguments = ["-m", "tests.torch.failing", name, f"way={BY_DDP}", f"timeout_s={TIMEOUT_S}"]
        ranks = start_ranks(local, RANKS, arguments)
        try:
            until(lambda: all((folder / f"began-{rank}").exists() for rank in range(RANKS)), "all train", 120)
            began = time.time()
            kill(victim, local, ranks)
            if victim.endswith("started again"):
                start_switch(local)
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end and any(process.poll() is None for process in ranks):
                time.sleep(0.1)
            before = steps(folder)
            time.sleep(LOOK_S)
            after = steps(folder)
            return [_said(ranks[rank], folder / f"failed-{rank}", began, after[rank] != before[rank])
                    for rank in range(RANKS)]  # fmt: skip
        finally:
            for process in ranks:
                process.kill()
                process.wait()
            if victim == "the controller":
                local.up()


def _said(process: subprocess.Popen[str], failed: Path, began: float, goes_on: bool) -> str:
    if process.poll() is None:
        return "goes on" if goes_on else f"waits, for more than {PATIENCE_S} s"
    if not failed.exists():
        return "is killed" if process.returncode == -signal.SIGKILL else f"ends with status {process.returncode}"
    last = process.communicate()[0].strip().splitlines()[-1]
    return f"{float(failed.read_text()) - began:.1f} s: {last.partition(': ')[2]}"


def main() -> None:
    print("| killed | rank | says |\n|---|---|---|")
    for victim in VICTIMS:
        for rank, said in enumerate(row(victim)):
            print(f"| {victim} | {rank} | {said} |", flush=True)


if __name__ == "__main__":
    raise SystemExit(ended(main))
