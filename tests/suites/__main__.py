"""What others wrote for BMv2, run on it (where it is installed) and on serene-switch.

    make p4-suites UP4=~/up4 P4_GUIDE=~/p4-guide ...      PTF suites, p4c's packet tests, p4testgen's, loading
    .venv/bin/python -m tests.suites --up4 ~/up4 --write  ... and writes docs/results/p4-suites.csv

Needs root, for a network namespace of its own, and p4c-bm2-ss for all that is not compiled already. Nothing is written
into the checkouts.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from serene.arguments import Parser, command, usage
from serene.errors import BadUsage
from serene.experiments.shared import page_tables
from serene.process import outputs
from tests.embedded import stf_samples
from tests.suites import generated, random_packets
from tests.suites.apart import Apart
from tests.suites.checkouts import (
    CHECKOUTS,
    COMPILER,
    ROOT,
    NotCompiled,
    NotThere,
    Program,
    Suite,
    check,
    programs,
    suites,
)  # fmt: skip
from tests.suites.loading import load
from tests.suites.outcomes import Outcomes
from tests.suites.ptf_runs import PYTHON, run_suite
from tests.suites.switches import available, enter_namespace

DOCUMENT = ROOT / "docs" / "engine.md"
RESULTS = ROOT / "docs" / "results" / "p4-suites.csv"
COLUMNS = ("suite", "checkout", "tests", "bmv2", "ours", "differences")
PARTS = ("ptf", "stf", "loading", "random", "p4testgen")
_ENDED = re.compile(r"not reached: bmv2: Stream removed.*")  # the stream ended with the process
MOST_CHARACTERS = 120  # of a reason
NAMES = {"bmv2": "BMv2", "serene-switch": "ours"}


@dataclass(frozen=True)
class Row:
    """A line of the table: how many of ``tests`` each switch passes, and what is different."""

    suite: str
    tests: int
    passed: dict[str, int]
    differences: tuple[str, ...] = ()
    needs: str = ""
    checkout: str = ""  # its commit

    @property
    def behind(self) -> bool:
        """Returns whether BMv2 passes a test that our switch fails."""
        return any("BMv2 alone" in text for text in self.differences)

    def cells(self) -> tuple[str, ...]:
        counts = [self.needs or str(self.passed.get(switch, "-")) for switch in NAMES]
        return self.suite, self.checkout, str(self.tests or "-"), *counts, "; ".join(self.differences)


def compared(suite: str, outcomes: dict[str, dict[str, str]]) -> Row:
    """The row for outcomes by switch and test: what is no pass is a reason or a word."""
    tests = sorted({test for each in outcomes.values() for test in each})
    outcomes = {switch: {test: _short(word) for test, word in each.items()} for switch, each in outcomes.items()}
    passed = {switch: sum(word == "pass" for word in each.values()) for switch, each in outcomes.items()}
    differences = []
    if len(outcomes) == 2:
        for test in tests:
            words = {switch: outcomes[switch].get(test, "not run") for switch in NAMES}
            alone = [switch for switch in NAMES if words[switch] == "pass"]
            if len(alone) == 1:
                (other,) = (switch for switch in NAMES if switch not in alone)
                differences.append((test, f"{NAMES[alone[0]]} alone ({words[other]})"))
            elif not alone and not words["bmv2"].startswith("skipped"):
                both = dict.fromkeys(words[switch] for switch in NAMES)
                differences.append((test, f"neither ({'; '.join(both)})"))
    return Row(suite, len(tests), passed, tuple(_by_program(differences)))


def _by_program(differences: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Numbered tests of one program that differ in the same way share a text."""
    groups: dict[tuple[str, str], list[str]] = {}
    for test, text in differences:
        program, _, number = test.rpartition(" ")
        named = (program, number) if program and number.isdigit() else (test, "")
        groups.setdefault((named[0], text), []).append(named[1])
    for (program, text), numbers in groups.items():
        yield f"{program} {', '.join(sorted(numbers, key=lambda number: int(number or 0)))}".strip() + f": {text}"


def _short(text: str) -> str:
    """A packet in hexadecimal digits is too long for a table."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 3]}..."


def _ptf_rows(name: str, checkout: Path, switches: Sequence[str], words: Sequence[str]) -> Iterator[Row]:
    for suite in suites(name, checkout):
        if words and not any(word in suite.name for word in words):
            continue
        yield _ptf_row(suite, switches)


def _ptf_row(suite: Suite, switches: Sequence[str]) -> Row:
    if not PYTHON.exists():
        return Row(f"PTF, {suite.name}", 0, {}, needs="needs `make p4-suites`'s environment")
    try:
        outcomes = {switch: run_suite(suite, switch) for switch in switches}
        if not any(outcomes.values()):
            return Row(f"PTF, {suite.name}", 0, {}, needs="ptf ran no test")
        return compared(f"PTF, {suite.name}", outcomes)
    except NotCompiled as error:
        return Row(f"PTF, {suite.name}", 0, {}, needs=f"{COMPILER} refuses the program: {error}")
    except NotThere as error:
        return Row(f"PTF, {suite.name}", 0, {}, needs=str(error))


def _chosen(name: str, checkout: Path, words: Sequence[str]) -> Iterator[tuple[str, Program]]:
    for program in programs(checkout, name):
        label = " ".join([str(program.source.relative_to(checkout)), *program.options])
        if not words or any(word in label for word in words):
            yield label, program


def _part(checkout: Path, words: Sequence[str]) -> str:
    return ", ".join((checkout.name, *words))


def _loading_row(name: str, checkout: Path, switches: Sequence[str], words: Sequence[str], known: Outcomes) -> Row:
    outcomes: dict[str, dict[str, str]] = {switch: {} for switch in switches}
    left_out = set()
    for label, program in _chosen(name, checkout, words):
        for switch in switches:
            try:
                word = known.of("loading", [switch], label, program, partial(_loaded, program, switch))
            except NotThere as error:
                left_out.add(str(error))
                continue
            if word is not None:
                outcomes[switch][label] = word
    row = compared(f"loading, {_part(checkout, words)}", outcomes)
    what = tuple(f"of its P4 text none: {reason}" for reason in left_out)
    return Row(row.suite, row.tests, row.passed, (*what, *row.differences))


def _loaded(program: Program, switch: str) -> str | None:
    loaded = load(program, switch)
    return None if loaded is None else loaded.why_not or "pass"


def _random_row(name: str, checkout: Path, switches: Sequence[str], words: Sequence[str], known: Outcomes) -> Row:
    suite = f"random packets, {_part(checkout, words)}, programs without packet tests"
    if len(switches) < len(NAMES) or shutil.which(COMPILER) is None:
        return Row(suite, 0, {}, needs=f"needs both switches and {COMPILER}")
    outcomes: dict[str, dict[str, str]] = {switch: {} for switch in NAMES}
    silent = 0
    tested = {sample.program.source for sample in stf_samples.samples(checkout)}
    with Apart() as apart:
        for label, program in _chosen(name, checkout, words):
            if program.source in tested:
                continue
            found = known.of("random", NAMES, label, program, partial(random_packets.compared, program, apart))
            if found is None:
                continue
            for switch in NAMES:
                outcomes[switch][label] = found[switch]
            silent += found.get("came out") == "0"
    row = compared(suite, outcomes)
    return replace(row, differences=(*([f"BMv2 drops everything in {silent}"] if silent else []), *row.differences))


def _packet_rows(checkout: Path, switches: Sequence[str], known: Outcomes) -> Iterator[Row]:
    missing = stf_samples.why_not(str(checkout))
    tests = [] if missing else list(stf_samples.samples(checkout))
    for suite in stf_samples.SUITES:
        row = _played(f"packet tests, {suite}", [test for test in tests if test.suite == suite], switches, known)
        yield replace(row, needs=missing)


def _played(suite: str, tests: Sequence[stf_samples.Sample], switches: Sequence[str], known: Outcomes) -> Row:
    """The row of packet tests."""
    outcomes = {
        switch: {
            each.name: "pass" if each.outcome == "pass" else f"{each.outcome}: {_ENDED.sub('BMv2 ends', each.reason)}"
            for each in stf_samples.run_all(tests, switch, known, os.cpu_count() or 1)
            if each.outcome != "not v1model"
        }
        for switch in switches
    }
    return compared(suite, outcomes)


def _generated_rows(
    name: str, checkout: Path, switches: Sequence[str], words: Sequence[str], known: Outcomes
) -> Iterator[Row]:
    suite = f"p4testgen, {_part(checkout, words)}"
    if shutil.which(generated.GENERATOR) is None or shutil.which(COMPILER) is None:
        yield Row(suite, 0, {}, needs=f"needs {generated.GENERATOR} and {COMPILER}")
        return
    own = [
        generated.generate("p4testgen", label, source, program, "-DFIELDS=5")
        for label, source, program in generated.own_programs()
        if not words or any(word in label for word in words)
    ]
    if own:
        row = _generated_row("p4testgen, Serene's programs", own, switches, known)
        yield replace(row, checkout=commit_of(ROOT))

    def made(labelled: tuple[str, Program]) -> generated.Generated | None:
        label, program = labelled
        try:
            program.compiled()
        except NotCompiled:
            return None
        return generated.generate("p4testgen", label, program.source, program, *program.options)

    of_p4 = [(label, program) for label, program in _chosen(name, checkout, words) if program.source.suffix == ".p4"]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        theirs = [each for each in threads.map(made, of_p4) if each is not None]
    yield _generated_row(suite, theirs, switches, known)


def _generated_row(
    suite: str, programs: Sequence[generated.Generated], switches: Sequence[str], known: Outcomes
) -> Row:
    row = _played(suite, [test for each in programs for test in each.samples], switches, known)
    without = [each.why_none for each in programs if each.why_none]
    missing = [f"no tests for {len(without)} of {len(programs)} programs"] if without else []
    return replace(row, differences=(*missing, *row.differences))


def _parser() -> Parser:
    parser = Parser("Runs other projects' P4 test suites.")
    add = parser.add_argument
    for name, (repository, _) in CHECKOUTS.items():
        add(f"--{name.lower().replace('_', '-')}", type=Path, help=f"a checkout of {repository}")
    add("--switch", choices=("both", *NAMES), default="both", help="default: installed ones")
    add("--only", choices=PARTS, action="append", help="may be repeated; default: all parts")
    add("--suite", action="append", default=[], help="part of a PTF suite's or program's name; default: all")
    add("--resume", action="store_true", help="use outcomes of earlier runs with the same switch, program and test")
    add("--write", action="store_true", help=f"writes {RESULTS.relative_to(ROOT)} and its table")
    return parser


@command
def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    given = {name: path.resolve() for name in CHECKOUTS if (path := getattr(options, name.lower())) is not None}
    if not given:
        raise BadUsage(f"name a checkout at least: {', '.join(CHECKOUTS)}")
    with usage():
        for name, path in given.items():
            check(name, path)
    if os.geteuid() != 0:
        raise BadUsage("needs root, for a network namespace of its own")
    enter_namespace()
    switches, rows, parts = available(options.switch), [], options.only or PARTS
    known = Outcomes(options.resume)
    for name, path in given.items():
        for row in _rows(name, path, switches, parts, options.suite, known):
            rows.append(replace(row, checkout=row.checkout or commit_of(path)))
            print(line(rows[-1].cells()), flush=True)
            if options.write:
                write_results(rows)
    return int(any(row.behind for row in rows))


def _rows(
    name: str, checkout: Path, switches: Sequence[str], parts: Sequence[str], words: Sequence[str], known: Outcomes
) -> Iterator[Row]:
    if "ptf" in parts:
        yield from _ptf_rows(name, checkout, switches, words)
    if "stf" in parts and name == "P4C":
        yield from _packet_rows(checkout, switches, known)
    if "loading" in parts:
        yield _loading_row(name, checkout, switches, words, known)
    if "random" in parts and name == "P4C":
        yield _random_row(name, checkout, switches, words, known)
    if "p4testgen" in parts and name == "P4C":
        yield from _generated_rows(name, checkout, switches, words, known)


def commit_of(checkout: Path) -> str:
    """The checkout's commit, shortened; empty where git does not know."""
    asked = ["git", "-C", str(checkout), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write_results(rows: Sequence[Row], results: Path = RESULTS, document: Path = DOCUMENT) -> None:
    """Replaces the rows of the suites that ran, and keeps those of suites that did not run this time; and writes the
    document's table of them."""
    kept = dict[str, tuple[str, ...]]()
    if results.exists():
        with results.open(newline="") as file:
            kept = {cells[0]: tuple(cells) for cells in list(csv.reader(file))[1:]}
    kept |= {row.suite: row.cells() for row in rows if row.tests}
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(kept[suite] for suite in sorted(kept))
    outputs.write_text(results, written.getvalue())
    titles = ("suite", "commit", "tests", "BMv2", "ours", "differences")
    lines = [line(titles), "|---|---|---|---|---|---|", *(line(kept[suite]) for suite in sorted(kept))]
    page_tables.write(document, {"suites": "\n".join(lines)})


if __name__ == "__main__":
    raise SystemExit(main())
