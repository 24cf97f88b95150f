"""How fast is it? One table: our program on the embedded switch and on BMv2, in one run. `make bench` calls this.

Absolute numbers belong to the machine and the hour; the ratios are what counts. Every row is measured several times
and shows the median and the spread. What is not installed is a row that says so.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from controller.api import ControllerClient
from experiments.network import MininetNetwork
from experiments.push_path import PushPath
from experiments.settings import BMV2, check
from serene.errors import SereneError
from serene.program import VARIANTS, Program

REPEATS = 5
SECONDS = 3.0  # of one repeat over the network
OUTPUT = Path("build/bench.json")
WORK = "answered PUSHes"


@dataclass(frozen=True)
class Row:
    """One measurement: packets per second of each repeat, or why there is none."""

    work: str
    switch: str
    program: str
    lanes: int
    packets_per_s: tuple[float, ...]
    missing: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.packets_per_s) if self.packets_per_s else 0.0

    @property
    def spread(self) -> str:
        if not self.packets_per_s:
            return ""
        low, high = min(self.packets_per_s), max(self.packets_per_s)
        return f"{100 * (low / self.median - 1):+.0f} % {100 * (high / self.median - 1):+.0f} %"


def over_network(target: str, program: Program, work: Path) -> list[float]:
    """PUSHes of one worker in a Mininet host, through the kernel's sockets, with up to 32 in flight."""
    settings = check(
        target=target, workers="1", strategy="bsp", straggler="none", steps="1", model="mlp", dataset="digits",
        data_dir=None, link_mbit="", seed="1", compute_ms="0", program=program.name, mininet=True, out=work / "none",
    )  # fmt: skip
    with MininetNetwork(settings, work) as network, ControllerClient(network.url) as controller:
        controller.create_job(1, settings.strategy)
        results = work / "pushes.json"
        script = Path(__file__).with_name("bench_worker.py")
        command = [sys.executable, str(script), str(REPEATS), str(SECONDS), str(results)]
        with (work / "bench-worker.log").open("wb") as log:
            process = network.popen(0, command, stdout=log, stderr=log)
            status = process.wait(timeout=60 + REPEATS * SECONDS * 4)
        if status:
            raise SereneError((work / "bench-worker.log").read_text()[-2000:])
        return [float(value) for value in json.loads(results.read_text())]


def measure_all(console: Console) -> list[Row]:
    rows = []
    for name in VARIANTS:
        program = Program.load(name)
        console.print(f"measuring {name}", style="dim")
        measure = PushPath(program).measure
        measure()  # the first one meets cold memory
        rows.append(Row(WORK, "embedded, in process", name, program.lanes, tuple(measure() for _ in range(REPEATS))))
        for target in ("embedded", "bmv2"):
            label = f"{target}, Mininet host"
            if target == "bmv2" and shutil.which(BMV2) is None:
                rows.append(Row(WORK, label, name, program.lanes, (), f"{BMV2} is not installed"))
                continue
            with tempfile.TemporaryDirectory() as work:
                rows.append(Row(WORK, label, name, program.lanes, tuple(over_network(target, program, Path(work)))))
    return rows


def table(rows: Sequence[Row]) -> Table:
    """Peer is BMv2 with the same program."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("work", "switch", "program", "packets/s", "values/s", "spread", "ratio to BMv2"):
        shown.add_column(heading, justify="left" if heading in ("work", "switch", "program") else "right")
    for row in rows:
        peer = next((r.median for r in rows if r.program == row.program and r.switch.startswith("bmv2")), 0.0)
        if row.missing:
            shown.add_row(row.work, row.switch, row.program, row.missing, "", "", "")
            continue
        shown.add_row(
            row.work, row.switch, row.program, f"{row.median:,.0f}", f"{row.median * row.lanes / 1e6:,.1f} M",
            row.spread, f"{row.median / peer:.1f}" if peer else "-",
        )  # fmt: skip
    return shown


def main() -> int:
    from topologies.isolation import run_isolated

    console = Console() if sys.stdout.isatty() else Console(width=140)  # a pipe has no width to fold to

    def run() -> int:
        try:
            rows = measure_all(console)
        except SereneError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        console.print(table(rows))
        OUTPUT.parent.mkdir(exist_ok=True)
        OUTPUT.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
        console.print(f"{OUTPUT}", highlight=False)
        return 0

    try:
        return run_isolated(run)
    except OSError as error:
        print(f"error: {error} (make bench uses Mininet: run it as root)", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
