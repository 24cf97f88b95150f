"""Compiles the data plane for Tofino, p4src/tna, into p4src/build/tofino (Tofino 1) and tofino2 (Tofino 2). Each has a
table of the chip's resources that it uses. It also compiles variants with other sizes, of which only the table is kept.

python scripts/p4_tofino.py             # needs p4c-barefoot and bfas on the PATH
python scripts/p4_tofino.py --frontier  # also what other numbers of lanes, workers and slots take (many compilations)
python scripts/p4_tofino.py --check     # needs no compiler: do the output and the sources have the recorded digests?

core.p4, tna.p4 and t2na.p4 are looked for in p4c-barefoot's installation; P4C_INCLUDE=DIRECTORY:DIRECTORY names other
directories.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "p4src"
MAIN = "tna/serene.p4"
TOOLS = {"p4c-barefoot": "p4c's Tofino backend", "bfas": "its assembler"}
OUTPUT = ("serene.p4", "serene.p4info.txtpb", "serene.stateful", "resources.md")
VALUE_BITS = (32, 16, 8)  # a lane of 32 bits carries one value, two or four: docs/decisions/number-formats.md


@dataclass(frozen=True)
class Chip:
    """A chip, and the program's sizes on it."""

    name: str
    target: str  # p4c's name of it
    architecture: str
    generation: int  # the sources' __TARGET_TOFINO__
    stages: int
    containers: int  # of packet headers and metadata, both directions together
    lanes: int  # these three as in tna/sizes.p4
    slots: int
    worker_bits: int = 4

    @property
    def build(self) -> Path:
        """The directory of the output."""
        return SOURCES / "build" / self.target


TOFINO_1 = Chip("Tofino 1", "tofino", "tna", 1, 12, 224, 32, 3584)
TOFINO_2 = Chip("Tofino 2", "tofino2", "t2na", 2, 20, 280, 60, 2816)
CHIPS = (TOFINO_1, TOFINO_2)

FRONTIER_BUILD = TOFINO_1.build
FRONTIER: list[tuple[Chip, dict[str, int]]] = [  # the sizes that differ from the sources' own
    (TOFINO_1, {}),
    (TOFINO_1, {"FIELDS": 16}),
    (TOFINO_1, {"FIELDS": 24}),
    (TOFINO_1, {"FIELDS": 28}),
    (TOFINO_1, {"FIELDS": 36}),
    (TOFINO_1, {"SLOTS_IN_USE": 1024}),
    (TOFINO_1, {"SLOTS_IN_USE": 4096}),
    (TOFINO_1, {"FIELDS": 28, "SLOTS_IN_USE": 4096}),
    (TOFINO_1, {"WORKER_BITS": 5, "SLOTS_IN_USE": 1792}),
    (TOFINO_1, {"WORKER_BITS": 5}),
    (TOFINO_2, {}),
    (TOFINO_2, {"FIELDS": 32}),
    (TOFINO_2, {"FIELDS": 48}),
    (TOFINO_2, {"FIELDS": 64}),
    (TOFINO_2, {"SLOTS_IN_USE": 3072}),
    (TOFINO_2, {"WORKER_BITS": 5, "SLOTS_IN_USE": 1408}),
]


class CannotCompile(Exception):
    """The program does not compile, or uses more than the chip has, or the compiler's output is wrong. The message
    gives the reason."""


def source_digest(start: bytes = b"") -> str:
    """SHA-256 of all sources without their comments, as the output has neither comments nor line numbers."""
    total = hashlib.sha256(start)
    for folder in ("include", "tna"):
        for path in sorted((SOURCES / folder).glob("*.p4")):
            total.update(f"{path.relative_to(SOURCES)}\n".encode())
            total.update(code(path.read_text()).encode())
    return total.hexdigest()


def code(text: str) -> str:
    """A source without `//` comments and blank lines. Ends of lines stay, as macros depend on them. A comment that
    continues on the next line stays, and so do all comments of a source with `/*`."""
    if "/*" in text:
        return text
    lines = (
        line if line.endswith("\\") else re.sub(r'("[^"]*")|//.*', r"\1", line).rstrip() for line in text.splitlines()
    )
    return "".join(f"{line}\n" for line in lines if line)


def stamp(chip: Chip) -> str:
    """The text of serene.sha256: the digests of the sources, and of the output for a chip."""
    written = hashlib.sha256()
    for name in OUTPUT:
        written.update(f"{name}\n".encode())
        written.update((chip.build / name).read_bytes())
    return f"sources {source_digest()}\noutput {written.hexdigest()}\n"


def frontier_stamp() -> str:
    """The text of frontier.sha256: the digests of the variants and the sources, and of the table."""
    sources = source_digest(repr([(chip.target, sizes) for chip, sizes in FRONTIER]).encode())
    table = hashlib.sha256((FRONTIER_BUILD / "frontier.md").read_bytes())
    return f"sources {sources}\noutput {table.hexdigest()}\n"


def stale() -> str:
    """A text about output that is missing or has changed since it was written, with the command that writes it; empty
    if there is none."""
    for chip in CHIPS:
        output = [chip.build / name for name in (*OUTPUT, "serene.sha256")]
        if found := _stale(output, partial(stamp, chip)):
            return f"{found}: run 'make p4-tofino'"
    found = _stale([FRONTIER_BUILD / "frontier.md", FRONTIER_BUILD / "frontier.sha256"], frontier_stamp)
    return f"{found}: run 'make p4-tofino FRONTIER=1'" if found else ""


def _stale(paths: Sequence[Path], expect: Callable[[], str]) -> str:
    """The same for these files. The last file has to contain the text that ``expect`` returns."""
    there = paths[-1].parent.relative_to(SOURCES.parent)
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        return f"{there}: {' and '.join(missing)} missing"
    recorded, expected = paths[-1].read_text().split("\n"), expect().split("\n")
    if recorded[0] != expected[0]:
        return f"{there}: the sources have changed since they were compiled"
    return "" if recorded == expected else f"{there}: the output has changed since it was compiled"


@dataclass
class Cost:
    """The resources of a chip that a program uses. It may use more stages than the chip has."""

    stages: int
    table: list[list[int]]  # a row for each stage, a column for each of KINDS
    containers: int  # of headers and metadata, both directions; not those that only the deparser reads

    def total(self, kind: str) -> int:
        """The number of a kind of resource that all stages use together."""
        return sum(row[list(KINDS).index(kind)] for row in self.table)


# The number in a stage, and the two keys of the used ones in bfas's resources.json.
KINDS = {
    "stateful ALUs": (4, "meter_alus", "meters"),
    "counters": (4, "statistic_alus", "stats"),
    "SRAM": (80, "rams", "srams"),
    "map RAM": (48, "map_rams", "maprams"),
    "TCAM": (24, "tcams", "tcams"),
    "tables": (16, "logical_tables", "ids"),
    "crossbar bytes": (194, "xbar_bytes", "bytes"),
}


def includes(out: Path) -> list[str]:
    """The include directories: the sources', and those of core.p4 and tna.p4 through links in ``out``. When p4c prints
    the program, it writes `#include` lines for files of its own directory. Files that it finds through links are
    printed in full."""
    compiler = Path(shutil.which("p4c-barefoot") or "").resolve()
    named = os.environ.get("P4C_INCLUDE", str(compiler.parents[1] / "share" / "p4c" / "p4include"))
    folders = [Path(folder).resolve() for folder in filter(None, named.split(":"))]
    links = [out / f"include_{number}" for number in range(len(folders))]
    for link, folder in zip(links, folders, strict=True):
        link.symlink_to(folder)
    return ["include", "tna", *map(str, links)]


def compile_variant(out: Path, chip: Chip, sizes: dict[str, int]) -> str:
    """Compiles and assembles the program with these sizes into ``out``. Returns an error's text, empty on success.
    Raises CannotCompile if the compiler's output is wrong."""
    (out / "dump").mkdir(parents=True)
    compiler = [
        "p4c-barefoot", "--target", chip.target, "--arch", chip.architecture,
        f"-D__TARGET_TOFINO__={chip.generation}", "-g",
        *(f"-D{name}={value}" for name, value in sizes.items()),
        *(f"-I{directory}" for directory in includes(out)),
        "--p4runtime-force-std-externs", "--p4runtime-files", str(out / "serene.p4info.txtpb"),
        "--top4", "FrontEndLast", "--dump", str(out / "dump"), "-o", str(out), MAIN,
    ]  # fmt: skip
    assembler = ["bfas", "-o", str(out), str(out / "pipe" / "serene.bfa")]
    for command in (compiler, assembler):
        try:
            # Run in p4src, so that the output contains no path of this machine.
            done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, timeout=1800, check=False)
        except subprocess.TimeoutExpired:
            return f"{command[0]}: no result after 30 minutes"
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line.lower()]
            why = (
                re.sub(r".*error: |\S+\.p4\(\d+\): |Could not place table \S+: ", "", lines[0])
                if lines
                else f"status {done.returncode}"
            )
            return f"{command[0]}: {why}"
    dumped, assembly = frontend_text(out), assembly_text(out)
    if "#include" in dumped:
        raise CannotCompile(
            f"core.p4 and {chip.architecture}.p4 were not found where they were looked for: set P4C_INCLUDE"
        )
    selects = dumped.count("transition select(")
    matches = len(re.findall(r"^ +match: \[", assembly, re.MULTILINE))
    if matches < selects:  # docs/tofino.md describes this error of p4c's backend
        raise CannotCompile(
            f"the assembly has {matches} of the parsers' {selects} selects: the compiler lacks our patch "
            "(docs/tofino.md)"
        )
    return ""


def frontend_text(out: Path) -> str:
    """The program as p4c's frontend printed it. out: as for ``compile_variant``."""
    (dumped,) = (out / "dump").glob("*FrontEndLast.p4")
    return dumped.read_text()


def assembly_text(out: Path) -> str:
    """The program's assembly. out: as for ``compile_variant``."""
    return (out / "pipe" / "serene.bfa").read_text()


def cost(out: Path, chip: Chip) -> Cost:
    """The chip's resources that the program uses. out: as for ``compile_variant``."""
    resources = json.loads((out / "pipe" / "logs" / "resources.json").read_text())["resources"]["mau"]["mau_stages"]
    table = [[len(stage[part].get(what) or []) for _, part, what in KINDS.values()] for stage in resources]
    used = [number for number, row in enumerate(table) if any(row)]
    phv = json.loads((out / "pipe" / "logs" / "phv.json").read_text())
    taken = {item["phv_number"] for item in phv["containers"] if item["slices"]}
    containers = len([number for number in taken if number < chip.containers])
    return Cost(max(used) + 1, table[: max(used) + 1], containers)


def report(found: Cost, chip: Chip) -> str:
    """The table for resources.md, in Markdown."""
    lines = [
        "| stage | " + " | ".join(f"{name} of {there}" for name, (there, _, _) in KINDS.items()) + " |",
        "|" + "---|" * (len(KINDS) + 1),
        *(f"| {number} | " + " | ".join(map(str, row)) + " |" for number, row in enumerate(found.table)),
        "| together | "
        + " | ".join(f"{found.total(name)} of {there * chip.stages}" for name, (there, _, _) in KINDS.items())
        + " |",
        "",
        f"Containers of packet headers and metadata: {found.containers} of {chip.containers}.",
    ]
    return "\n".join(lines) + "\n"


def stateful(assembly: str) -> str:
    """The registers' instructions, extracted from the assembly."""
    blocks = re.findall(r"^  stateful .*\n(?:    .*\n)*", assembly, re.MULTILINE)
    kept = r" +(p4: |exact group|format: |pred_|actions:|\w+:$|- (?!\[))"
    parts = [[line for line in block.splitlines() if re.match(kept, line)] for block in blocks]
    drop = r" +(column|maprams|input_xbar):"
    return "".join(f"{line}\n" for part in parts for line in part if not re.match(drop, line))


def compile_default(chip: Chip) -> Cost:
    """Compiles the program with the sources' own sizes and replaces the output for a chip. If it raises CannotCompile,
    the output is unchanged."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "out")
        failure = compile_variant(out, chip, {})
        if failure:
            raise CannotCompile(f"{chip.name}: {failure}")
        found = cost(out, chip)
        if found.stages > chip.stages:
            raise CannotCompile(f"{found.stages} stages, {chip.name} has {chip.stages}")
        chip.build.mkdir(parents=True, exist_ok=True)
        (chip.build / "serene.p4").write_text(frontend_text(out))
        shutil.copyfile(out / "serene.p4info.txtpb", chip.build / "serene.p4info.txtpb")
        (chip.build / "serene.stateful").write_text(stateful(assembly_text(out)))
        (chip.build / "resources.md").write_text(report(found, chip))
        (chip.build / "serene.sha256").write_text(stamp(chip))
    return found


def frontier() -> str:
    """The table for frontier.md, in Markdown: the sizes of each variant, the number of values in a packet by their
    bits, and the resources. Compiles as many variants at a time as there are processors, and prints each row when it is
    known."""
    formats = "/".join(map(str, VALUE_BITS))
    rows = [
        f"| chip | lanes | values of {formats} bits | workers | slots | stages "
        "| stateful ALUs | SRAM | TCAM | containers |",
        "|" + "---|" * 10,
    ]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for row in pool.map(frontier_row, *zip(*FRONTIER, strict=True)):
            rows.append(row)
            print(row, flush=True)
    return "\n".join(rows) + "\n"


def frontier_row(chip: Chip, variant: dict[str, int]) -> str:
    """Compiles a variant and returns its row. Raises CannotCompile."""
    lanes, slots = variant.get("FIELDS", chip.lanes), variant.get("SLOTS_IN_USE", chip.slots)
    values = "/".join(str(32 // bits * lanes) for bits in VALUE_BITS)
    workers = 1 << variant.get("WORKER_BITS", chip.worker_bits)
    sizes = f"| {chip.name} | {lanes} | {values} | {workers} | {slots} |"
    with tempfile.TemporaryDirectory() as scratch:
        failure = compile_variant(Path(scratch, "out"), chip, variant)
        if failure:
            return f"{sizes} does not fit: {failure} | | | | |"
        found = cost(Path(scratch, "out"), chip)
    stages = str(found.stages) if found.stages <= chip.stages else f"{found.stages}: does not fit"
    parts = [str(found.total(kind)) for kind in ("stateful ALUs", "SRAM", "TCAM")]
    return f"{sizes} {stages} | {' | '.join(parts)} | {found.containers} |"


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        found = stale()
        if found:
            print(f"error: {found}", file=sys.stderr)
        return 1 if found else 0
    for tool, what in TOOLS.items():
        if shutil.which(tool) is None:
            print(f"error: {tool} is not installed ({what}); the output is unchanged", file=sys.stderr)
            return 1
    try:
        for chip in CHIPS:
            taken = compile_default(chip)
            where, used = chip.build.relative_to(SOURCES.parent), taken.total("stateful ALUs")
            print(f"{where}: {taken.stages} of {chip.stages} stages, {used} stateful ALUs", flush=True)
        if sys.argv[1:] == ["--frontier"]:
            (FRONTIER_BUILD / "frontier.md").write_text(frontier())
            (FRONTIER_BUILD / "frontier.sha256").write_text(frontier_stamp())
    except CannotCompile as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
