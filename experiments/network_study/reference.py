"""Compares the NumPy engine with SimGrid. SimGrid's answers are recorded in simgrid.csv, for where it is not installed.

python -m serene.experiments.network_study.reference           # with SimGrid if it is installed, else with the record
python -m serene.experiments.network_study.reference --write   # writes the record (by SimGrid 3.32, in a minute)
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path

import pandas as pd

from serene.arguments import Parser, command
from serene.errors import SereneError
from serene.experiments.network_study.cells import ExchangeCell, NetworkCell
from serene.experiments.network_study.flows import simgrid_engine
from serene.experiments.network_study.methods import names
from serene.process import outputs

RECORD = Path(__file__).with_name("simgrid.csv")
NETWORK = [field.name for field in fields(NetworkCell)]
NETWORKS = ((2, 128), (2, 512), (3, 256))
# The methods that SimGrid simulates in reasonable time on the largest networks.
LARGE = ("flat-butterfly", "layered-butterfly", "layered-butterfly-fixed-heads", "ring", "leaf-spine-aggregation")


class BadRecord(SereneError):
    """The record cannot be read."""


@dataclass(frozen=True)
class Pair:
    """A question, and SimGrid's answer in seconds."""

    cell: ExchangeCell
    simgrid_s: float

    def error(self) -> float:
        """The difference of the NumPy engine's answer, relative to SimGrid's."""
        return abs(_seconds(self.cell) / self.simgrid_s - 1)


@cache
def _seconds(cell: ExchangeCell) -> float:
    """The NumPy engine's answer, which takes 40 ms in the mean; a report asks twice."""
    return float(cell.answer()["seconds"])


def cells() -> list[ExchangeCell]:
    """What is recorded: all methods with the largest and the smallest bisection ratio, routes by a hash and slow links
    on the smallest network, and on the largest networks the methods that SimGrid simulates in reasonable time."""
    methods = names(lambda method: method.recorded)
    main = [
        ExchangeCell(NetworkCell(layers, hosts, ratio), method)
        for (layers, hosts), ratio, method in product(NETWORKS, (1.0, 0.125), methods)
    ]
    hashed = [ExchangeCell(NetworkCell(2, 128, 0.25, routing="ecmp"), method) for method in methods]
    slow = [ExchangeCell(NetworkCell(2, 128, 0.5, 1.0, 1.0), method, 1.0) for method in methods]
    large = [
        ExchangeCell(NetworkCell(layers, hosts, ratio), method)
        for (layers, hosts), ratio in product(((2, 2048), (3, 1024)), (1.0, 0.125))
        for method in LARGE
    ]
    return main + hashed + slow + large


def recorded() -> list[Pair]:
    """The recorded answers. Raises BadRecord."""
    try:
        rows = pd.read_csv(RECORD).to_dict("records")
        return [
            Pair(ExchangeCell(NetworkCell(*(row[name] for name in NETWORK)), row["method"], row["gradient_mb"]),
                 row["simgrid_s"])
            for row in rows
        ]  # fmt: skip
    except (OSError, ValueError, KeyError) as error:
        raise BadRecord(f"cannot read {RECORD}: {error}") from error


def simulate(questions: list[ExchangeCell]) -> list[Pair]:
    """SimGrid's answers, simulated now. Raises NoSimGrid."""
    return [Pair(cell, replace(cell, engine=simgrid_engine.NAME).answer()["seconds"]) for cell in questions]


def write(pairs: list[Pair]) -> None:
    """Writes the record. Raises CannotWrite."""
    rows = [
        {**asdict(pair.cell.network), "method": pair.cell.method, "gradient_mb": pair.cell.gradient_mb,
         "simgrid_s": pair.simgrid_s}
        for pair in pairs
    ]  # fmt: skip
    outputs.write_text(RECORD, pd.DataFrame(rows).to_csv(index=False))


@command
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--write", action="store_true", help="record SimGrid's results")
    options = parser.parse_args()
    if options.write:
        outputs.check_file(RECORD, outputs.MB)
    live = options.write or simgrid_engine.installed()
    pairs = simulate(cells()) if live else recorded()
    if options.write:
        write(pairs)
    worst = max(pairs, key=Pair.error)
    print(
        f"{len(pairs)} exchanges, {'SimGrid' if live else 'recorded'}: at most {worst.error():.1e} apart ({worst.cell})"
    )


if __name__ == "__main__":
    raise SystemExit(ended(main))
