"""All-reduce between processes of one machine: through the embedded switch, and by gloo over loopback.

python -m serene.experiments.performance.one_machine [--workers N] [--values N] [--program NAME]
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import socket
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from serene.arguments import Parser, command, usage, whole
from serene.experiments.performance.parts import Json, run_parts
from serene.program import Program
from serene.sim.hosts import Host
from serene.sim.switch import ProgramSwitch
from serene.strategy import BSP
from serene.topologies.processes import free_ports, mortal

SLOTS = 512  # of the pool
PATIENCE_S = 240.0
KINDS = ("udp", "shm", "gloo")


def popen(worker: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a process of this machine, which ends with the one that starts it."""
    return subprocess.Popen(mortal(command), **options)


class OneMachine:
    """An embedded switch in this process, from ``with`` to the end of the block, with a running job of so many workers.

    kind: of the workers' ports, udp or shm. work: a directory for shm's files. ports: by worker, as options of
    `serene.experiments.performance.hosts` have them.
    """

    def __init__(self, program: Program, workers: int, kind: str, work: Path, session: int = 1) -> None:
        self._switch = ProgramSwitch(program)
        self.ports: dict[int, str] = {}
        hosts = {worker: Host.of(worker) for worker in range(workers)}
        numbers = iter(free_ports(*[24300] * 2 * workers, kind=socket.SOCK_DGRAM))
        for worker, host in hosts.items():
            if kind == "shm":
                path = work / f"port{worker}"
                self._switch.switch.add_shm(host.port, path)
                self.ports[worker] = f"shm:{path}"
            else:
                switch, local = next(numbers), next(numbers)
                self._switch.switch.add_udp(host.port, ("127.0.0.1", switch), ("127.0.0.1", local))
                self.ports[worker] = f"udp:{local}:{switch}"
        self._switch.start_job(
            hosts,
            BSP().compile(range(workers)),
            slots=SLOTS,
            vector_length=SLOTS * program.lanes,
            session=session,
        )

    def __enter__(self) -> OneMachine:
        self._switch.switch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._switch.switch.stop()
        self._switch.close()


def measure(kind: str, program: Program, workers: int, values: int, repeats: int, **more: Any) -> list[Json]:
    """What each worker measured, through ports of a kind, or with gloo (kind is one of KINDS). more: further options of
    `serene.experiments.performance.hosts`."""
    options: Json = {"workers": workers, "values": values, "repeats": repeats, **more}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if kind == "gloo":
            (port,) = free_ports(29500)
            options |= {"interface": "lo", "meet_at": f"127.0.0.1:{port}"}
            parts = {worker: ("gloo", options) for worker in range(workers)}
            return run_parts(popen, parts, work, PATIENCE_S)
        options |= {"slots": SLOTS, "lanes": program.lanes, "incarnation": 1}
        with OneMachine(program, workers, kind, work) as machine:
            parts = {worker: ("pool", {**options, "port": machine.ports[worker]}) for worker in range(workers)}
            return run_parts(popen, parts, work, PATIENCE_S)


def slowest_of(results: list[Json]) -> tuple[float, ...]:
    """For each repeat, the seconds until all workers had their sums."""
    return tuple(max(times) for times in zip(*(result["seconds"] for result in results), strict=True))


@command
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--workers", type=whole(1), default=2, help="number of workers (%(default)s)")
    parser.add_argument("--values", type=whole(1), default=2_460_000, help="number of values (%(default)s)")
    parser.add_argument("--program", default="serene", help="serene, serene_jumbo, or a path to a .json")
    parser.add_argument("--repeats", type=whole(1), default=20, help="measurements of each kind (%(default)s)")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, help="kinds of ports (default: all)")
    options = parser.parse_args()
    with usage():
        program = Program.load(options.program)
    for kind in options.kinds:
        results = measure(kind, program, options.workers, options.values, options.repeats)
        slowest = slowest_of(results)
        cpu = statistics.median(results[0]["cpu_s"])
        print(
            f"{kind:4} {options.values:,} float32, {options.workers} workers: median "
            f"{statistics.median(slowest) * 1e3:.2f} ms, least {min(slowest) * 1e3:.2f}, "
            f"most {max(slowest) * 1e3:.2f}; a worker's CPU {cpu * 1e3:.2f} ms"
        )


if __name__ == "__main__":
    raise SystemExit(ended(main))
