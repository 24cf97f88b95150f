"""What others wrote for BMv2, run on it (where it is installed) and on serene-switch.

    make p4-suites UP4=~/up4 P4_GUIDE=~/p4-guide ...      PTF suites, p4c's packet tests, loading of every program
    .venv/bin/python -m tests.suites --up4 ~/up4 --write  ... and writes the table of docs/engine.md

Needs root, for a network namespace of its own, and p4c-bm2-ss for all that is not compiled already. Nothing is written
into the checkouts.
"""

from __future__ import annotations

from serene.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.suites.checkouts import CHECKOUTS, ROOT, NotThere, Suite, check, programs, suites
from tests.suites.loading import load
from tests.suites.ptf_runs import PYTHON, run_suite
from tests.suites.switches import available, enter_namespace

DOCUMENT = ROOT / "docs" / "engine.md"
BEGIN, END = "<!-- suites: begin -->", "<!-- suites: end -->"
NAMES = {"bmv2": "BMv2", "serene-switch": "ours"}


@dataclass(frozen=True)
class Row:
    """A line of the table: how many of ``tests`` each switch passes, and what is different."""

    suite: str
    tests: int
    passed: dict[str, int]
    differences: tuple[str, ...] = ()
    needs: str = ""

    @property
    def behind(self) -> bool:
        """Whether BMv2 passes what ours does not."""
        return any("BMv2 alone" in text for text in self.differences)

    def text(self) -> str:
        counts = [self.needs or str(self.passed.get(switch, "-")) for switch in NAMES]
        return f"| {self.suite} | {self.tests or '-'} | {' | '.join(counts)} | {'; '.join(self.differences)} |"


def compared(suite: str, outcomes: dict[str, dict[str, str]]) -> Row:
    """The row for outcomes by switch and test: what is no pass is a reason or a word."""
    tests = sorted({test for each in outcomes.values() for test in each})
    passed = {switch: sum(word == "pass" for word in each.values()) for switch, each in outcomes.items()}
    differences = []
    if len(outcomes) == 2:
        for test in tests:
            words = {switch: outcomes[switch].get(test, "not run") for switch in NAMES}
            alone = [switch for switch in NAMES if words[switch] == "pass"]
            if len(alone) == 1:
                (other,) = (switch for switch in NAMES if switch not in alone)
                differences.append(f"{test}: {NAMES[alone[0]]} alone ({words[other]})")
    return Row(suite, len(tests), passed, tuple(differences))


def _ptf_rows(name: str, checkout: Path, switches: Sequence[str]) -> Iterator[Row]:
    for suite in suites(name, checkout):
        yield _ptf_row(suite, switches)


def _ptf_row(suite: Suite, switches: Sequence[str]) -> Row:
    if not PYTHON.exists():
        return Row(f"PTF, {suite.name}", 0, {}, needs="needs `make p4-suites`'s environment")
    try:
        return compared(f"PTF, {suite.name}", {switch: run_suite(suite, switch) for switch in switches})
    except NotThere as error:
        return Row(f"PTF, {suite.name}", 0, {}, needs=str(error))


def _loading_row(name: str, checkout: Path, switches: Sequence[str]) -> Row:
    outcomes: dict[str, dict[str, str]] = {switch: {} for switch in switches}
    left_out = set()
    for program in programs(checkout):
        label = str(program.source.relative_to(checkout))
        for switch in switches:
            try:
                loaded = load(program, switch)
            except NotThere as error:
                left_out.add(str(error))
                continue
            if loaded is not None:
                outcomes[switch][label] = loaded.why_not or "pass"
    row = compared(f"loading, {checkout.name}", outcomes)
    what = tuple(f"of its P4 text none: {reason}" for reason in left_out)
    return Row(row.suite, row.tests, row.passed, (*what, *row.differences))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", allow_abbrev=False)
    for name, (repository, _) in CHECKOUTS.items():
        parser.add_argument(f"--{name.lower().replace('_', '-')}", type=Path, help=f"a checkout of {repository}")
    parser.add_argument("--switch", choices=("both", *NAMES), default="both", help="default: those that are there")
    parser.add_argument("--write", action="store_true", help="writes the table in docs/engine.md")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    given = {name: path.resolve() for name in CHECKOUTS if (path := getattr(options, name.lower())) is not None}
    if not given:
        print(f"error: name a checkout at least: {', '.join(CHECKOUTS)}", file=sys.stderr)
        return 2
    try:
        for name, path in given.items():
            check(name, path)
    except NotThere as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if os.geteuid() != 0:
        print("error: needs root, for a network namespace of its own", file=sys.stderr)
        return 2
    enter_namespace()
    switches, rows = available(options.switch), []
    for name, path in given.items():
        for row in (*_ptf_rows(name, path, switches), _loading_row(name, path, switches)):
            print(row.text(), flush=True)
            rows.append(row)
    if "P4C" in given:
        command = [sys.executable, "-m", "tests.switch.stf_samples", "--p4c", str(given["P4C"])]
        subprocess.run(command + (["--bmv2"] if "bmv2" in switches else []), check=False)
    if options.write:
        write_table(rows)
    return int(any(row.behind for row in rows))


def write_table(rows: Sequence[Row], document: Path = DOCUMENT) -> None:
    """Replaces the rows of the suites that ran, and keeps those of suites that did not run this time."""
    text = document.read_text()
    head, rest = text.split(BEGIN)
    table, tail = rest.split(END)
    new = {row.suite: row.text() for row in rows if row.tests}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) > 1 and cells[0] not in ("suite", "---"):
            new.setdefault(cells[0], line)
    lines = [
        "",
        "| suite | tests | BMv2 | ours | differences |",
        "|---|---|---|---|---|",
        *(new[key] for key in sorted(new)),
        "",
    ]
    document.write_text(head + BEGIN + "\n".join(lines) + END + tail)


if __name__ == "__main__":
    raise SystemExit(main())
