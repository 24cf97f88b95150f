"""The rows of `make bench` as a file in docs/results, and the tables of README.md and docs/ that follow from it.

python -m serene.experiments.performance.results                          # the tables, from the file
python -m serene.experiments.performance.results --bench build/bench.json # the file from a run of `make bench`, too
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from serene.arguments import Parser, command
from serene.errors import SereneError, choices
from serene.experiments.performance.row import HEAD, LEAST_OF_A_SPREAD, Row, Samples
from serene.experiments.shared import page_tables, terminal
from serene.experiments.shared.machine import ROOT
from serene.process import outputs

FILE = ROOT / "docs" / "results" / "bench.csv"
README, PERFORMANCE, ENGINE = ROOT / "README.md", ROOT / "docs" / "performance.md", ROOT / "docs" / "engine.md"
SAMPLES = ("ours", "peer")  # each is three columns: the median, the least and the largest sample
COLUMNS = [
    "work", "unit", "less", "bar", "most", "limit", "ours", "ours_least", "ours_most", "peer", "peer_least",
    "peer_most", "peer_name", "measured", "commit", "machine",
]  # fmt: skip
SHORT = ["work", "ours", "peer", "ratio"]
FOUR = (  # rows of README.md
    "all-reduce of 2,460,000 float32, 2 processes, shm ports, serene_jumbo",
    "PUSH path, embedded, from a Mininet host",
    "all-reduce of 1,000,000 float32 by a pool, 4 hosts, 320 lanes, 100 Mbit/s",
    "all-reduce of 1,000,000 float32 by a pool, 4 hosts, 320 lanes, 1,000 Mbit/s",
)
FIRST = (  # the first table of docs/performance.md
    *FOUR,
    "all-reduce of 100,000 float32 in 16 bits by a pool, 4 hosts, 320 lanes, 100 Mbit/s",
    "all-reduce of 100,000 float32 in 8 bits by a pool, 4 hosts, 320 lanes, 100 Mbit/s",
)
LOOPBACK = "gloo, loopback"  # the peer of rows on one machine
TABLES = ("routes", "ternary entries", "memory of a route")  # in the work of docs/engine.md's rows


def kept(run: Path) -> pd.DataFrame:
    """The file's rows, from what `make bench` wrote. A row that was not measured there, for want of a program, remains
    as it was. Raises SereneError if ``run`` is missing or something else."""
    try:
        made = json.loads(run.read_text())
        rows = [Row(**{**row, "ours": tuple(row["ours"]), "peer": tuple(row["peer"])}) for row in made["rows"]]
        records = [_record(row) for row in rows]
        conditions = {"measured": made["date"], "commit": made["commit"], "machine": made["machine"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SereneError(f"cannot read {run}: {error!r}; expected build/bench.json, which make bench writes") from None
    before = page_tables.read(FILE) if FILE.exists() else pd.DataFrame(columns=COLUMNS)
    new: list[dict[str, Any]] = []
    for row, record in zip(rows, records, strict=True):
        older = before[(before["work"] == row.work) & before["peer"].notna()]
        if not row.peer and not older.empty:
            new += older.to_dict("records")
        elif row.ours and not row.missing:
            new.append({**record, **conditions})
    return pd.DataFrame(new, columns=COLUMNS)


def _record(row: Row) -> dict[str, Any]:
    record = {name: getattr(row, name) for name in COLUMNS[:6]}
    for name in SAMPLES:
        values: Samples = getattr(row, name)
        record[name] = f"{statistics.median(values):.4g}" if values else ""
        spread = len(values) >= LEAST_OF_A_SPREAD
        record[f"{name}_least"], record[f"{name}_most"] = (f"{end(values):.4g}" if spread else "" for end in (min, max))
    return {**record, "peer_name": row.peer_name}


def read(path: Path = FILE) -> list[tuple[Row, str]]:
    """The file's rows, and the day on which each was measured. Their samples are the median and, where it is known,
    the spread. Raises SereneError if the file is missing or something else."""
    found = page_tables.read(path)
    if lacking := [name for name in COLUMNS if name not in found]:
        raise SereneError(f"cannot read {path}: it has no column {choices(lacking)}")
    rows = []
    for record in found.astype(object).where(found.notna(), None).to_dict("records"):
        samples = {
            name: tuple(value for end in ("", "_least", "_most") if (value := record[f"{name}{end}"]) is not None)
            for name in SAMPLES
        }
        plain = {name: record[name] for name in COLUMNS[:6]}
        rows.append((Row(**{**plain, **samples}, peer_name=record["peer_name"] or ""), record["measured"]))
    return rows


def parts(path: Path = FILE) -> dict[Path, dict[str, str]]:
    """The parts of each page that follow from the file, by name. Raises SereneError."""
    rows = read(path)
    if lacking := set(FIRST) - {row.work for row, _ in rows}:
        raise SereneError(f"cannot read {path}: it has no row {choices(sorted(lacking))}")
    large = [(row, day) for row, day in rows if any(word in row.work for word in TABLES)]
    ports = [(row, day) for row, day in rows if row.peer_name == LOOPBACK and " ports" in row.work]
    others = [each for each in rows if each not in large and each not in ports]
    return {
        README: {"bench": short(rows, FOUR)},
        PERFORMANCE: {
            "first": short(rows, FIRST), "bench": whole(others), "one-machine": whole(ports), "made": _made(path),
        },
        ENGINE: {"tables": whole(large)},
    }  # fmt: skip


def short(rows: list[tuple[Row, str]], works: tuple[str, ...]) -> str:
    """The rows of these works, of few columns. Rows that are older than the others name their day."""
    latest, by_work = max(day for _, day in rows), {row.work: (row, day) for row, day in rows}

    def cells(row: Row, day: str) -> Iterator[str]:
        yield row.work if day == latest else f"{row.work} ({day})"
        limit = f" (limit {row.number(row.limit)})" if row.limit else ""
        yield f"{row.middle(row.ours)}{limit}"
        yield f"{row.middle(row.peer)} ({row.peer_name})"
        yield f"{row.ratio:.2g}" if row.ratio else ""

    return page_tables.markdown(SHORT, [list(cells(*by_work[work])) for work in works])


def whole(rows: list[tuple[Row, str]]) -> str:
    """These rows, of all columns."""
    return page_tables.markdown([*HEAD, "measured"], [[*row.cells(), day] for row, day in rows])


def _made(path: Path) -> str:
    latest = page_tables.read(path).sort_values("measured").iloc[-1]
    return f"    make bench    # {latest['measured']}, commit {latest['commit']}, {latest['machine']}"


@command
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--bench", type=Path, help="what `make bench` wrote; its rows are written into the file")
    options = parser.parse_args()
    if options.bench:
        rows = kept(options.bench)
        if lacking := set(FIRST) - set(rows["work"]):
            raise SereneError(f"{options.bench}: expected a whole run of make bench; no row {choices(sorted(lacking))}")
        outputs.write_text(FILE, rows.to_csv(index=False))
    for page, its in parts().items():
        page_tables.write(page, its)
        terminal.console().print(f"{page}", highlight=False)


if __name__ == "__main__":
    raise SystemExit(ended(main))
