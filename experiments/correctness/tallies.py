"""What was counted in random runs, as JSON, and sums of it: ``python -m experiments.correctness.tallies PART...``

``make schedules`` writes one part. Parts add up only if they are of one build, on as many racks, and of different runs.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.table import Table

from experiments.shared import terminal
from serene import outputs
from serene.arguments import Parser
from serene.errors import SereneError

Pair = tuple[str, str]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]

ROOT = Path(__file__).parents[2]
PLAYED = ("serene", "controller", "experiments/correctness", "experiments/shared")  # what runs are made of


class BadPart(SereneError):
    """A part that cannot be added up with the others, or is none."""


def build() -> str:
    """SHA-256 over the compiled programs and the code that runs are made of."""
    paths = [*(ROOT / "p4src" / "build").glob("*.json")]
    for folder in PLAYED:
        paths += [path for kind in ("py", "c", "h") for path in (ROOT / folder).rglob(f"*.{kind}")]
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(ROOT)}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@dataclass
class Tally:
    """Sums over the runs of one pair. broken: violations by property. failed: numbers of the runs that had one.
    happened: what else there was in them, by name."""

    runs: Count = 0
    swaps: Count = 0
    contributions: Count = 0
    packets: Count = 0
    lost: Count = 0
    repeated: Count = 0
    cpu_s: Seconds = 0.0
    broken: dict[str, Count] = field(default_factory=dict)
    failed: list[Count] = field(default_factory=list)
    happened: dict[str, Count] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        for name in ("runs", "swaps", "contributions", "packets", "lost", "repeated", "cpu_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.broken = dict(Counter(self.broken) + Counter(other.broken))
        self.happened = dict(Counter(self.happened) + Counter(other.happened))
        self.failed = sorted(self.failed + other.failed)


class _Written(BaseModel):
    """A part as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    build: str
    program: str
    racks: Count
    first: Count
    runs: Count
    seconds: Seconds
    pairs: dict[str, Tally]


@dataclass
class Part:
    """Runs ``first`` to ``first + runs - 1`` of each of some pairs. racks: 0 is one switch. program: of one switch."""

    build: str
    program: str
    racks: int
    first: int
    runs: int
    seconds: float
    tallies: dict[Pair, Tally]

    def write(self, path: Path) -> None:
        """Raises CannotWrite."""
        pairs = {" ".join(pair): asdict(tally) for pair, tally in self.tallies.items()}
        head = {key: value for key, value in vars(self).items() if key != "tallies"}
        outputs.write_text(path, json.dumps({**head, "pairs": pairs}, indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> Part:
        """Raises BadPart."""
        try:
            said = _Written.model_validate_json(path.read_bytes())
            tallies = {(first, second): tally for (first, second), tally in _by_pair(said)}
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(map(str, wrong["loc"]))
            raise _no_part(path, f"{where}: {wrong['msg']}" if where else wrong["msg"]) from None
        except (OSError, ValueError) as error:
            raise _no_part(path, str(error)) from None
        return cls(said.build, said.program, said.racks, said.first, said.runs, said.seconds, tallies)


def _no_part(path: Path, why: str) -> BadPart:
    return BadPart(f"{path}: not what make schedules has written: {why}")


def _by_pair(written: _Written) -> Iterable[tuple[list[str], Tally]]:
    return ((name.split(), tally) for name, tally in written.pairs.items())


def added_up(parts: dict[Path, Part]) -> dict[Pair, Tally]:
    """By pair. Raises BadPart, naming the part that does not belong to the first one or repeats runs of another."""
    total: dict[Pair, Tally] = {}
    before: list[tuple[Path, Part]] = []
    for path, part in parts.items():
        for other_path, other in before:
            for what in ("build", "program", "racks"):
                ours, theirs = getattr(part, what), getattr(other, what)
                if ours != theirs:
                    raise BadPart(f"{path}: {what} {ours}, that of {other_path} is {theirs}: expected parts of one")
            shared = part.tallies.keys() & other.tallies.keys()
            if shared and max(part.first, other.first) < min(part.first + part.runs, other.first + other.runs):
                raise BadPart(
                    f"{path}: runs {part.first} to {part.first + part.runs - 1}, of which {other_path} has some: "
                    "expected others (FIRST=)"
                )
        before.append((path, part))
        for pair, tally in part.tallies.items():
            total.setdefault(pair, Tally()).add(tally)
    return total


def show(console: Console, tallies: dict[Pair, Tally]) -> Tally:
    """The tables; the sum over all pairs."""
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    console.print(table(tallies))
    console.print(happenings(total))
    return total


def summary(total: Tally) -> str:
    return (
        f"{total.lost} contributions lost, {total.repeated} repeated, "
        f"{total.broken.get('no stuck worker', 0)} runs stuck, {len(total.failed)} runs failed"
    )


def table(tallies: dict[Pair, Tally]) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 2))
    columns = (
        "swaps between", "runs", "swaps", "contributions", "packets", "lost", "repeated", "stuck", "other", "CPU",
    )  # fmt: skip
    for heading in columns:
        shown.add_column(heading, justify="left" if heading == "swaps between" else "right")
    total = Tally()
    for pair, tally in tallies.items():
        total.add(tally)
        shown.add_row(*_row(" and ".join(pair), tally))
    shown.add_row(*_row("all", total), style="bold")
    return shown


def _row(name: str, tally: Tally) -> list[str]:
    stuck = tally.broken.get("no stuck worker", 0)
    numbers = (
        tally.runs, tally.swaps, tally.contributions, tally.packets, tally.lost, tally.repeated, stuck,
        sum(tally.broken.values()) - stuck,
    )  # fmt: skip
    return [name, *(f"{number:,}" for number in numbers), f"{tally.cpu_s:.1f} s"]


def happenings(total: Tally) -> Table:
    """How many of each there were."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2))
    shown.add_column("in all runs")
    shown.add_column("times", justify="right")
    for name, times in sorted(total.happened.items(), key=lambda item: (item[0].startswith("hostile"), -item[1])):
        shown.add_row(name, f"{times:,}")
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m experiments.correctness.tallies", description="Adds up parts of make schedules.")
    parser.add_argument("parts", type=Path, nargs="+", metavar="PART", help="what make schedules OUT=PART has written")
    options = parser.parse_args(arguments)
    try:
        parts = {path: Part.read(path) for path in options.parts}
        tallies = added_up(parts)
    except BadPart as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    console = terminal.console(140)
    total = show(console, tallies)
    console.print(f"{total.runs:,} runs in {len(parts)} parts: {summary(total)}", highlight=False)
    for path, part in parts.items():
        for pair, tally in part.tallies.items():
            if tally.failed:
                print(f"error: {path}: {' and '.join(pair)}: runs {tally.failed[:10]}", file=sys.stderr)
    return int(any(tally.failed for tally in tallies.values()))


if __name__ == "__main__":
    raise SystemExit(main())
