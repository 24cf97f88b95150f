"""Counts of random runs, as JSON files, and their sums: ``python -m serene.experiments.correctness.tallies PART...``

``make schedules`` writes one file, a part. Parts can be added up if they are of the same build, with as many racks, and
of different runs.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    dataclasses,
)
from rich.console import Console
from rich.table import Table

from serene.arguments import Parser, command, usage
from serene.errors import SereneError
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.plan import Outcome
from serene.experiments.shared import terminal
from serene.experiments.shared.build import digest, programs, sources
from serene.process import outputs

Pair = tuple[str, str]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]

PLAYED = ("controller", "experiments/correctness", "experiments/shared")  # what runs use, besides the library


class BadPart(SereneError):
    """A file is no part, or cannot be added up with the others; the message states why."""


def build() -> str:
    """A digest of the compiled programs and of the code that runs use."""
    return digest([*programs(), *sources(*PLAYED)])


@dataclass
class Tally:
    """Sums over the runs of one pair. lost, repeated: contributions. broken: how many violations of each property.
    failed: numbers of the runs in which anything was wrong. happened: how often each other event came, by name."""

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

    def note(self, number: int, play: Callable[[], Outcome]) -> Violation | None:
        """Plays a run and counts what happened. A violation is counted and returned, not raised."""
        self.runs += 1
        try:
            outcome = play()
        except Violation as violation:
            self.broken[violation.broken] = self.broken.get(violation.broken, 0) + 1
            self.failed.append(number)
            return violation
        for name in ("swaps", "contributions", "packets"):
            setattr(self, name, getattr(self, name) + getattr(outcome, name))
        self.happened = dict(Counter(self.happened) + Counter(outcome.happened))
        self.lost += outcome.balance.lost
        self.repeated += outcome.balance.repeated
        if outcome.balance.lost or outcome.balance.repeated:
            self.failed.append(number)
        return None

    def add(self, other: Tally) -> None:
        for name, theirs in vars(other).items():
            mine = getattr(self, name)
            setattr(self, name, dict(Counter(mine) + Counter(theirs)) if isinstance(mine, dict) else mine + theirs)
        self.failed.sort()


def _pair(key: object) -> object:
    """A pair's key in JSON, two families with a space between them, as a pair."""
    return tuple(key.split()) if isinstance(key, str) else key


@dataclasses.dataclass(config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))
class Part:
    """Runs ``first`` to ``first + runs - 1`` of each pair in ``tallies``. racks: 0 for one switch, which runs
    ``program``. take_overs: as of `random_plan`. seconds: that they took."""

    build: str
    program: str
    racks: Count
    take_overs: Annotated[float, Field(ge=0, le=1)]
    first: Count
    runs: Count
    seconds: Seconds
    tallies: dict[Annotated[Pair, BeforeValidator(_pair), PlainSerializer(" ".join)], Tally]

    def write(self, path: Path) -> None:
        """Writes the part to a file, as JSON. Raises CannotWrite."""
        outputs.write_text(path, TypeAdapter(Part).dump_json(self, indent=2).decode() + "\n")

    @classmethod
    def read(cls, path: Path) -> Part:
        """Reads a part from the file that ``write`` made. Raises BadPart."""
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except ValidationError as error:
            wrong = error.errors()[0]
            why = ": ".join(filter(None, [".".join(map(str, wrong["loc"])), wrong["msg"]]))
        except OSError as error:
            why = str(error)
        raise BadPart(f"{path}: expected a result file of make schedules: {why}")


def added_up(parts: dict[Path, Part]) -> dict[Pair, Tally]:
    """The sums of all parts, by pair. Raises BadPart, naming the part that differs from another one in what all must
    have in common, or has some of its runs."""
    total: dict[Pair, Tally] = {}
    before: list[tuple[Path, Part]] = []
    for path, part in parts.items():
        for other_path, other in before:
            for what in ("build", "program", "racks", "take_overs"):
                ours, theirs = getattr(part, what), getattr(other, what)
                if ours != theirs:
                    raise BadPart(
                        f"{path}: {what} {ours}, but {other_path} has {theirs}: expected the same in all parts"
                    )
            shared = part.tallies.keys() & other.tallies.keys()
            if shared and max(part.first, other.first) < min(part.first + part.runs, other.first + other.runs):
                raise BadPart(
                    f"{path}: runs {part.first} to {part.first + part.runs - 1}, some of which are in {other_path}: "
                    "expected other runs (FIRST=)"
                )
        before.append((path, part))
        for pair, tally in part.tallies.items():
            total.setdefault(pair, Tally()).add(tally)
    return total


def show(console: Console, tallies: dict[Pair, Tally]) -> Tally:
    """Prints the tables and returns the sum over all pairs."""
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    console.print(table(tallies))
    console.print(happenings(total))
    return total


def summary(total: Tally) -> str:
    """A line that counts what went wrong."""
    return (
        f"{total.lost} contributions lost, {total.repeated} repeated, "
        f"{total.broken.get('no stuck worker', 0)} runs stuck, {len(total.failed)} runs failed"
    )


def table(tallies: dict[Pair, Tally]) -> Table:
    """A row for each pair, and one for all."""
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    rows = []
    for name, tally in [*((" and ".join(pair), tally) for pair, tally in tallies.items()), ("all", total)]:
        stuck = tally.broken.get("no stuck worker", 0)
        numbers = (
            tally.runs, tally.swaps, tally.contributions, tally.packets, tally.lost, tally.repeated, stuck,
            sum(tally.broken.values()) - stuck,
        )  # fmt: skip
        rows.append([name, *(f"{number:,}" for number in numbers), f"{tally.cpu_s:.1f} s"])
    head = ["swaps between", "runs", "swaps", "contributions", "packets", "lost", "repeated", "stuck", "other", "CPU"]
    return terminal.table(head, rows, head[:1])


def happenings(total: Tally) -> Table:
    """A table of how often each event occurred, with the hostile host's attacks last."""
    by = sorted(total.happened.items(), key=lambda item: (item[0].startswith("hostile"), -item[1]))
    return terminal.table(["in all runs", "times"], [(name, f"{times:,}") for name, times in by], ["in all runs"])


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser("Adds up parts of make schedules.")
    parser.add_argument("parts", type=Path, nargs="+", metavar="PART", help="result file of make schedules OUT=PART")
    options = parser.parse_args(arguments)
    with usage():
        parts = {path: Part.read(path) for path in options.parts}
        tallies = added_up(parts)
    console = terminal.console(140)
    total = show(console, tallies)
    console.print(f"{total.runs:,} runs in {len(parts)} parts: {summary(total)}", highlight=False)
    for path, part in parts.items():
        for pair, tally in part.tallies.items():
            if tally.failed:
                print(f"error: {path}: {' and '.join(pair)}: runs {tally.failed[:10]}", file=sys.stderr)
    return int(any(tally.failed for tally in tallies.values()))


if __name__ == "__main__":
    raise SystemExit(ended(main))
