"""Compares the NumPy engine with SimGrid. SimGrid's answers are recorded in simgrid.csv, for where it is not installed.

python -m serene.experiments.network_study.reference           # with SimGrid if it is installed, else with the record
python -m serene.experiments.network_study.reference --write   # writes the record (by SimGrid 3.32, in a minute)
"""

from __future__ import annotations

from serene.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import csv
import io
import sys
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

from serene import outputs
from serene.errors import SereneError
from serene.experiments.network_study.cells import ExchangeCell, NetworkCell
from serene.experiments.network_study.flows import simgrid_engine
from serene.experiments.network_study.methods import names

RECORD = Path(__file__).with_name("simgrid.csv")
NETWORKS = ((2, 128), (2, 512), (3, 256))


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
        for method in (
            "flat-butterfly",
            "layered-butterfly",
            "layered-butterfly-fixed-heads",
            "ring",
            "leaf-spine-aggregation",
        )
    ]
    return main + hashed + slow + large


def recorded() -> list[Pair]:
    """The recorded answers. Raises BadRecord."""
    try:
        with RECORD.open(newline="") as file:
            return [
                Pair(
                    ExchangeCell(
                        NetworkCell(
                            int(row["layers"]), int(row["hosts"]), float(row["ratio"]), float(row["bandwidth_gb"]),
                            float(row["latency_us"]), row["routing"],
                        ),
                        row["method"], float(row["gradient_mb"]),
                    ),
                    float(row["simgrid_s"]),
                )
                for row in csv.DictReader(file)
            ]  # fmt: skip
    except (OSError, ValueError, KeyError) as error:
        raise BadRecord(f"cannot read {RECORD}: {error}") from error


def simulate(questions: list[ExchangeCell]) -> list[Pair]:
    """SimGrid's answers, simulated now. Raises NoSimGrid."""
    return [Pair(cell, replace(cell, engine=simgrid_engine.NAME).answer()["seconds"]) for cell in questions]


def write(pairs: list[Pair]) -> None:
    """Writes the record. Raises CannotWrite."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["layers", "hosts", "ratio", "bandwidth_gb", "latency_us", "routing", "method", "gradient_mb", "simgrid_s"]
    )
    for pair in pairs:
        network = pair.cell.network
        writer.writerow(
            [
                network.layers,
                network.hosts,
                network.ratio,
                network.bandwidth_gb,
                network.latency_us,
                network.routing,
                pair.cell.method,
                pair.cell.gradient_mb,
                repr(pair.simgrid_s),
            ]
        )
    outputs.write_text(RECORD, text.getvalue())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m serene.experiments.network_study.reference", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record what SimGrid says")
    options = parser.parse_args()
    try:
        if options.write:
            outputs.check_file(RECORD, outputs.MB)
        live = options.write or simgrid_engine.installed()
        pairs = simulate(cells()) if live else recorded()
        if options.write:
            write(pairs)
        worst = max(pairs, key=Pair.error)
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(
        f"{len(pairs)} exchanges, {'SimGrid' if live else 'recorded'}: at most {worst.error():.1e} apart ({worst.cell})"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
