"""The emulated Clos network: builds it, has its hosts exchange, and measures.

python -m experiments.network_study.emulated.measure --out FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import IO, Any

from mininet.net import Mininet
from mininet.node import Switch

from experiments.network_study.emulated.plan import EMULATED, Emulated
from experiments.network_study.emulated.rows import Row, keep, kept
from experiments.network_study.methods import METHODS
from experiments.shared import studies
from serene.errors import SereneError
from serene.spawn import module
from topologies.clos import Clos
from topologies.nodes import Router
from topologies.processes import ROOT, NotReady, set_up_turn

RATIOS = (1.0, 0.25)
LINK_MBIT = 4.0  # of some 64 links: little for two cores
VALUES = 125_000  # 500 kB, a second of a link
REPEATS = 3
READY_S, FINISHED_S = 240.0, 600.0
BEGIN_IN_S = 0.5  # all hosts have been told by then


class NotMeasured(SereneError):
    """A part of the emulation failed; the message has what it said."""


class Part:
    """A process in a node, which answers lines with lines."""

    def __init__(self, node: Any, arguments: Sequence[str], log: IO[bytes]) -> None:
        self.name, self._log = node.name, log
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = node.popen(
            module(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=str(ROOT),
            env=environment,
        )  # fmt: skip

    def tell(self, line: str) -> None:
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def answer(self) -> str:
        """Raises NotMeasured when it has ended."""
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._log.flush()
            said = Path(self._log.name).read_text(errors="replace")[-1500:]
            raise NotMeasured(f"{self.name} ended with status {self._process.returncode}: {said}")
        return str(line.decode().strip())

    def end(self) -> str:
        """Its input ends; what it says then."""
        said, _ = self._process.communicate()
        return str(said.decode().strip())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Aggregating(Switch):  # type: ignore[misc]
    """A place for one of the programs that add up; without a part in the tree, a switch that does nothing."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **{**params, "inNamespace": True})

    def start(self, controllers: list[Any]) -> None:
        """Its program is started when it is known what it is to add up."""


@contextmanager
def network(emulated: Emulated, switch: type[Switch]) -> Iterator[Any]:
    with set_up_turn(READY_S):
        net = Mininet(
            topo=Clos(emulated.ports, emulated.leaves, emulated.ratio, emulated.link_mbit),
            controller=None, switch=switch, build=False,
        )  # fmt: skip
        try:
            net.start()
        except BaseException:
            net.stop()
            raise
    try:
        yield net
    finally:
        net.stop()


def _tree(net: Any, emulated: Emulated, logs: Path, stack: ExitStack) -> list[Part]:
    """Leaves that add up, and the first spine as their root. Hosts find the switch's address behind their one link."""
    half = emulated.ports // 2
    racks = [list(range(leaf * half, leaf * half + half)) for leaf in range(emulated.leaves)]
    parts = []
    for number, name in enumerate([f"leaf{leaf + 1}" for leaf in range(emulated.leaves)] + ["spine1"]):
        node = net[name]
        wanted = half + 1 if number < emulated.leaves else emulated.leaves
        ports = {port: interface.name for port, interface in node.intfs.items() if 0 < port <= wanted}
        role = {"role": "leaf", "rack": number} if number < emulated.leaves else {"role": "root"}
        options = json.dumps({**role, "racks": racks, "values": emulated.values, "ports": ports})
        parts.append(_part(node, ("experiments.network_study.emulated.switch", options), logs, stack))
    for part in parts:
        _expect_ready(part)
    for host in net.hosts:
        host.cmd("ip route replace default dev", host.defaultIntf())
    return parts


def _part(node: Any, arguments: Sequence[str], logs: Path, stack: ExitStack) -> Part:
    log = stack.enter_context((logs / f"{node.name}.log").open("wb"))
    part = Part(node, arguments, log)
    stack.callback(part.kill)
    return part


def _expect_ready(part: Part) -> None:
    if (said := part.answer()) != "ready":
        raise NotMeasured(f"{part.name} said {said!r} instead of being ready")


def measure(emulated: Emulated, logs: Path, repeats: int = REPEATS) -> Row:
    """Exchanges in a network of their own. Raises NotMeasured, NotReady."""
    in_network = METHODS[emulated.method].in_network
    with network(emulated, Aggregating if in_network else Router) as net, ExitStack() as stack:
        switches = _tree(net, emulated, logs, stack) if in_network else []
        hosts = []
        for number in range(emulated.network.hosts):
            options = json.dumps({"emulated": asdict(emulated), "host": number})
            arguments = ("experiments.network_study.emulated.hosts", options)
            hosts.append(_part(net[f"h{number + 1}"], arguments, logs, stack))
        for host in hosts:
            _expect_ready(host)
        seconds, waited, idle = [], [], []
        for number in range(-1, repeats):  # the first one warms up
            before = _processors()
            begin = time.monotonic() + BEGIN_IN_S
            for host in hosts:
                host.tell(repr(begin))
            answers = [json.loads(host.answer()) for host in hosts]
            if number >= 0:
                idle.append(_idle(before, _processors()))
                seconds.append(max(answer["seconds"] for answer in answers))
                waited.append(max(answer["waited_s"] for answer in answers))
        for host in hosts:
            host.end()
        dropped = [json.loads(switch.end()) for switch in switches]
        if any(dropped):
            raise NotMeasured(f"switches have dropped packets: {dropped}")
    return {
        **asdict(emulated), "simulated_s": emulated.simulated_s(), "emulated_s": median(seconds), "samples_s": seconds,
        "idle": min(idle), "waited_s": max(waited),
    }  # fmt: skip


def _processors() -> list[int]:
    """Of all processors together, in ticks: user, nice, system, idle, waiting for a disk, ..."""
    return [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]


def _idle(before: Sequence[int], after: Sequence[int]) -> float:
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return (spent[3] + spent[4]) / max(sum(spent), 1)


def questions() -> list[Emulated]:
    return [Emulated(method, ratio, LINK_MBIT, VALUES) for ratio in RATIOS for method in EMULATED]


def main() -> int:
    from topologies.isolation import run_isolated

    parser = argparse.ArgumentParser(prog="python -m experiments.network_study.emulated.measure", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a folder for what is measured; what is there is kept")
    options = parser.parse_args()

    def run() -> int:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the first process of a namespace has no default
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            with studies.alone(options.out):
                _measure_all(options.out)
        except (SereneError, NotReady, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 0

    try:
        return run_isolated(run)
    except OSError as error:
        print(f"error: {error} (emulated hosts need root)", file=sys.stderr)
        return 1


def _measure_all(folder: Path) -> None:
    """What an earlier run has not measured."""
    rows = kept(folder)
    for question in questions():
        if any(all(row[key] == value for key, value in asdict(question).items()) for row in rows):
            continue
        rows.append(measure(question, folder))
        keep(folder, rows)
        print(f"{question.method}, r = {question.ratio:g}: {rows[-1]['emulated_s']:.2f} s", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
