"""A million packets through the P4 program, some of them lost, duplicated and reordered: ``make soak``.

One long run in one process and in virtual time: four workers contribute while strategies are swapped, until so many
packets have reached the switch. At the end every replica has to be the sum of all contributions.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import time
from pathlib import Path

from rich.console import Console

from serene.arguments import Parser, command, probability, usage, whole
from serene.experiments.correctness.virtual.plan import Outcome, Plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from serene.faults import Faults, PacketFaults, load
from serene.program import Program

WORKERS, SLOTS = 4, 256
SWAP_EVERY_S = 0.5


def soak(packets: int, faults: Faults, seed: int, program: Program) -> Outcome:
    """One run in which about so many packets reach the switch. Raises Violation, and BadFaults for events that cannot
    be played here."""
    iterations = -(-packets // (WORKERS * SLOTS))
    plan = Plan(
        seed=seed,
        slots=SLOTS,
        iterations=(iterations,) * WORKERS,
        mean_s=(0.02, 0.02, 0.02, 0.05),
        faults=faults,
        swaps=10**6,
        swap_every_s=SWAP_EVERY_S,
        frames_together=SLOTS,
        too_late_s=60.0 * iterations + 1000,
    )
    switch = P4Switch(program)
    return Schedule(switch, plan, alternating(FAMILIES, seed, WORKERS)).run()


@command
def main() -> int:
    parser = Parser(__doc__)
    parser.add_argument(
        "--packets", type=whole(1), default=1_000_000, help="packets that reach the switch (default 1000000)"
    )
    parser.add_argument(
        "--loss", type=probability, default=0.01, help="probability that a packet is lost (default 0.01)"
    )
    parser.add_argument(
        "--duplication", type=probability, default=0.01, help="probability that it is duplicated (default 0.01)"
    )
    parser.add_argument(
        "--reordering", type=probability, default=0.01, help="probability that it is reordered (default 0.01)"
    )
    parser.add_argument("--faults", type=Path, help="fault file (docs/faults.md) instead of the default faults")
    parser.add_argument("--seed", type=whole(0), default=1, help="random seed")
    parser.add_argument("--program", default="serene", help="serene, serene_jumbo, or a path to a .json")
    options = parser.parse_args()
    packets = PacketFaults(loss=options.loss, duplication=options.duplication, reordering=options.reordering)
    with usage():
        faults = load(options.faults) if options.faults else Faults(options.seed, (packets,))
        faults.check(WORKERS)
        program = Program.load(options.program)
    began = time.monotonic()
    outcome = soak(options.packets, faults, options.seed, program)
    took = time.monotonic() - began
    say = Console(width=160, highlight=False).print
    say(
        f"{outcome.packets:,} packets reached the switch in {took:.0f} s ({outcome.packets / took:,.0f} a second); on "
        f"the links, both ways, {outcome.lost:,} were lost, {outcome.duplicated:,} duplicated, "
        f"{outcome.reordered:,} reordered"
    )
    say(
        f"{WORKERS} workers, {outcome.swaps} swaps, {outcome.virtual_s:.0f} s of virtual time, "
        f"{outcome.retransmissions:,} retransmissions"
    )
    verdict = f"{outcome.balance.lost} lost, {outcome.balance.repeated} repeated"
    say(f"{outcome.contributions:,} contributions: {verdict}")
    return int(bool(outcome.balance.lost or outcome.balance.repeated))


if __name__ == "__main__":
    raise SystemExit(ended(main))
