"""``python -m serene.experiments.network_study.emulated --out FOLDER``: measures what is missing in the folder, and
prints all. ``make network-study EMULATED=1`` calls it."""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

from pathlib import Path
from typing import Any

from serene.arguments import Parser
from serene.experiments.network_study import findings
from serene.experiments.network_study.emulated import measure, racks
from serene.experiments.network_study.emulated.plan import NETWORKS
from serene.experiments.shared import isolated, terminal
from serene.experiments.shared.machine import CONDITIONS, Conditions, summary
from serene.experiments.shared.measurements import complete
from serene.experiments.shared.store import alone

MEASURED: dict[str, tuple[Any, Any]] = {  # by network: what, and how
    "clos": (measure.questions, measure.measure), "racks": (racks.cases, racks.measure),
}  # fmt: skip


def main() -> int:
    parser = Parser("Measures exchanges on emulated networks, and compares with the simulation.")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for measurements; existing ones are not repeated"
    )
    parser.add_argument("--only", choices=NETWORKS, help="only this network (default: all)")
    options = parser.parse_args()
    console = terminal.console(160, highlight=False)

    def work() -> None:
        with alone(options.out):
            for name in [options.only] if options.only else NETWORKS:
                cases, how = MEASURED[name]
                rows = complete(
                    options.out / NETWORKS[name], cases(), how, lambda case: console.print(f"measuring: {case}")
                )
                head, lines = findings.emulated(rows)
                console.print(terminal.table(head, lines))
                console.print(summary([Conditions.of(row.get(CONDITIONS)) for row in rows]))

    return isolated.command(work, "emulated hosts need root")


if __name__ == "__main__":
    raise SystemExit(ended(main))
