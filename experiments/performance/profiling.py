"""Profiles of both switches, which show what the time for a packet is spent on: ``make profile``.

The embedded switch is compiled with a cycle counter for each stage and each action, and runs in this process. Counting
itself takes about 25 cycles a visit, so that what is visited often looks more expensive than it is. Then both switches
run in Mininet, with one worker that pushes, and `perf` samples whether they are in the P4 program, in the code around
it, or in the kernel. A line names what is not installed.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from serene.arguments import Parser
from serene.errors import SereneError
from serene.experiments.performance.networks import serene_network, with_job
from serene.experiments.performance.push_path import SLOTS, PushPath
from serene.experiments.run.settings import BMV2
from serene.experiments.shared import isolated, terminal
from serene.program import Program

PROFILE = ("-DPROFILE",)  # as in runtime/switch.h
STAGES = ("outside", "receive", "parse", "checksum", "match", "replicate", "deparse", "send")
MAX_STAGES = len(STAGES) + 1024
REPEATS = 10
WARM_S, SECONDS = 2.0, 5.0
PATIENCE_S = 120.0
SHOWN = 14
LEAST = 0.02  # share of the time; stages that take less are summed up


def stages(program: Program) -> list[tuple[str, float, float]]:
    """A row for each stage or action of the embedded switch, the most expensive first: its name, and its cycles and
    visits per packet."""
    path = PushPath(program, PROFILE)
    path.measure()
    cycles, entered = (ctypes.c_uint64 * MAX_STAGES)(), (ctypes.c_uint64 * MAX_STAGES)()
    path.switch.profile(cycles, entered)
    for _ in range(REPEATS):
        path.measure()
    path.switch.profile(cycles, entered)
    packets = entered[STAGES.index("deparse")]
    names = dict(enumerate(STAGES))
    names.update({len(STAGES) + action.id: action.name for action in path.switch.program.actions})
    return sorted(
        (
            (name, cycles[stage] / packets, entered[stage] / packets)
            for stage, name in names.items()
            if entered[stage] and name != "outside"
        ),
        key=lambda row: -row[1],
    )


def stage_table(rows: list[tuple[str, float, float]], lanes: int) -> Table:
    total = sum(cycles for _, cycles, _ in rows)
    cells = [
        [name, f"{cycles:,.0f}", f"{cycles / total:.0%}", f"{times:.2f}"]
        for name, cycles, times in rows if cycles >= LEAST * total
    ]  # fmt: skip
    rest = [cycles for _, cycles, _ in rows if cycles < LEAST * total]
    cells += [[f"{len(rest)} others", f"{sum(rest):,.0f}", f"{sum(rest) / total:.0%}", ""]] if rest else []
    head = ["stage or action", "cycles a packet", "share", "times a packet"]
    title = f"embedded switch, in process, {lanes} lanes"
    return terminal.table(head, [*cells, ["all", f"{total:,.0f}", "", ""]], head[:1], title)


def perf(target: str, program: Program, work: Path) -> list[tuple[float, str, str]]:
    """The switch's processor time while one worker pushes as fast as it is answered: for each function its share (0 to
    1), where it is, and its name. work: a directory for perf's data. Raises SereneError."""
    options = {"values": SLOTS * program.lanes, "repeats": 1, "seconds": 2 * WARM_S + SECONDS}
    data = work / "perf.data"
    with serene_network(target, program.name, 1, None, work) as network:
        recording = ["perf", "record", "-q", "-F", "999", "-p", str(network.parts["switch"].pid), "-o", str(data)]
        recording += ["--delay", str(int(2 * WARM_S * 1e3)), "--", "sleep", str(2 * WARM_S + SECONDS)]
        with subprocess.Popen(recording, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as recorder:
            with_job(network, {0: ("pushes", options)}, work, PATIENCE_S)
            output, _ = recorder.communicate(timeout=PATIENCE_S)
        if recorder.returncode:
            raise SereneError(f"perf: {output.strip()[-300:]}")
    report = subprocess.run(
        ["perf", "report", "-q", "--stdio", "--no-children", "-s", "dso,symbol", "-i", str(data)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [
        (float(share) / 100, _place(kind, dso), re.split(r"\s{2,}", symbol.strip())[0])
        for share, dso, kind, symbol in re.findall(r"^\s*([\d.]+)%\s+(\S+)\s+\[(.)\] (.*)$", report.stdout, re.M)
    ]


def _place(kind: str, dso: str) -> str:
    """Where a function is, from perf's kind and file. The compiled program is a library that is named after a
    digest."""
    if kind == "k":
        return "kernel"
    return "the P4 program" if re.fullmatch(r"[0-9a-f]{32}\.so", dso) else dso


def perf_table(target: str, rows: list[tuple[float, str, str]]) -> Table:
    by_place: dict[str, float] = {}
    for share, where, _ in rows:
        by_place[where] = by_place.get(where, 0.0) + share
    places = ", ".join(f"{where} {share:.0%}" for where, share in sorted(by_place.items(), key=lambda p: -p[1])[:5])
    cells = [[f"{share:.1%}", where, function[:70]] for share, where, function in rows[:SHOWN]]
    return terminal.table(
        ["share", "where", "function"], cells, ["where", "function"], f"{target} in Mininet: {places}"
    )


def profile(console: Console) -> None:
    program = Program.load("serene")
    console.print(stage_table(stages(program), program.lanes))
    for target in ("embedded", "bmv2"):
        console.print()
        if shutil.which("perf") is None:
            console.print(f"{target} in Mininet: perf is not installed (Debian: linux-perf)")
        elif target == "bmv2" and shutil.which(BMV2) is None:
            console.print(f"{target} in Mininet: {BMV2} is not installed")
        else:
            with tempfile.TemporaryDirectory() as work:
                console.print(perf_table(target, perf(target, program, Path(work))))


def main() -> int:
    Parser("Profiles both switches in Mininet (needs root).").parse_args()
    console = terminal.console(120, highlight=False)
    return isolated.command(lambda: profile(console), "make profile uses Mininet: run it as root")


if __name__ == "__main__":
    raise SystemExit(ended(main))
