"""Measures exchanges on an emulated Clos network of Mininet hosts.

python -m serene.experiments.network_study.emulated.measure --out FOLDER
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended, held

if __name__ == "__main__":
    end_quietly()

import argparse
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import IO, Any

from mininet.net import Mininet
from mininet.node import Switch

from serene.errors import SereneError
from serene.experiments.network_study.emulated.hosts import STEP
from serene.experiments.network_study.emulated.plan import EMULATED, Emulated
from serene.experiments.network_study.emulated.rows import ROWS, Row, complete, title
from serene.experiments.network_study.methods import METHODS
from serene.experiments.shared import isolated
from serene.experiments.shared.store import alone
from serene.process.spawn import module
from serene.topologies.clos import Clos
from serene.topologies.nodes import Router
from serene.topologies.processes import ROOT, set_up_turn

RATIOS = (1.0, 0.25)
LINK_MBIT = 4.0  # so low that two cores can carry what some 64 links do
VALUES = 125_000  # 500 kB, which take a link one second
REPEATS = 3
FLAT = "flat-butterfly"
READY_S, END_S = 240.0, 60.0
# An exchange is given up after PATIENCE times the time that the simulation says, and PATIENCE_S more.
PATIENCE, PATIENCE_S = 20.0, 120.0
BEGIN_IN_S = 0.5  # from the first line to a host until all begin together; by then all have read theirs


class NotMeasured(SereneError):
    """A process of the emulation failed, or switches dropped packets; the message has the process's log."""


class Part:
    """A process in a Mininet node that reads lines and prints lines. log: for its standard error."""

    def __init__(self, node: Any, arguments: Sequence[str], log: IO[bytes]) -> None:
        self.name, self._log = node.name, log
        self._said = b""  # what it has printed since the last line that was taken
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = node.popen(
            module(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=str(ROOT),
            env=environment,
        )  # fmt: skip

    def tell(self, line: str) -> None:
        """Sends the process a line."""
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def answer(self, within_s: float) -> str:
        """Its next line. Raises NotMeasured if it has ended, or prints nothing for so many seconds."""
        until = time.monotonic() + within_s
        while b"\n" not in self._said:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise NotMeasured(f"no output from {self.name} within {within_s:g} s: {self._logged()}")
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                self._process.wait()
                raise NotMeasured(f"{self.name} ended with status {self._process.returncode}: {self._logged()}")
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line.decode().strip()

    def end(self) -> str:
        """Closes its standard input, and returns what it prints until it ends. Raises NotMeasured if it does not
        end."""
        try:
            said, _ = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"{self.name} has not ended {END_S:g} s after its input: {self._logged()}") from None
        return str(said.decode().strip())

    def _logged(self) -> str:
        self._log.flush()
        return Path(self._log.name).read_text(errors="replace")[-1500:]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Aggregating(Switch):  # type: ignore[misc]
    """A node for one of the switches that add up. Spines that are not needed for the tree do nothing."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **{**params, "inNamespace": True})

    def start(self, controllers: list[Any]) -> None:
        """Does nothing: `_tree` starts the programs, when all nodes are there."""


@contextmanager
def network(emulated: Emulated, switch: type[Switch]) -> Iterator[Any]:
    """The emulated Clos network with nodes of this kind, until the end of the block. Raises NotReady."""
    net = Mininet(
        topo=Clos(emulated.ports, emulated.leaves, emulated.ratio, emulated.link_mbit, emulated.small_first),
        controller=None, switch=switch, build=False,
    )  # fmt: skip
    try:
        with held(), set_up_turn(READY_S):  # a node that is interrupted in a command takes no other one
            net.start()
        yield net
    finally:
        net.stop()


def _tree(net: Any, emulated: Emulated, logs: Path, stack: ExitStack) -> list[Part]:
    """Starts the leaves' programs, and the root's in the first spine. Hosts get a default route, which leads to the
    switch's address."""
    half = emulated.ports // 2
    racks = [list(range(leaf * half, leaf * half + half)) for leaf in range(emulated.leaves)]
    parts = []
    for number, name in enumerate([f"leaf{leaf + 1}" for leaf in range(emulated.leaves)] + ["spine1"]):
        node = net[name]
        wanted = half + 1 if number < emulated.leaves else emulated.leaves
        ports = {port: interface.name for port, interface in node.intfs.items() if 0 < port <= wanted}
        role = {"role": "leaf", "rack": number} if number < emulated.leaves else {"role": "root"}
        options = json.dumps({**role, "racks": racks, "values": emulated.values, "ports": ports})
        parts.append(_part(node, ("serene.experiments.network_study.emulated.switch", options), logs, stack))
    for part in parts:
        _expect_ready(part)
    with held():
        for host in net.hosts:
            host.cmd("ip route replace default dev", host.defaultIntf())
    return parts


def _part(node: Any, arguments: Sequence[str], logs: Path, stack: ExitStack) -> Part:
    log = stack.enter_context((logs / f"{node.name}.log").open("wb"))
    part = Part(node, arguments, log)
    stack.callback(part.kill)
    return part


def _expect_ready(part: Part) -> None:
    if (said := part.answer(READY_S)) != "ready":
        raise NotMeasured(f"{part.name} printed {said!r}, expected 'ready'")


def measure(emulated: Emulated, logs: Path, repeats: int = REPEATS) -> Row:
    """Builds the network, has its hosts exchange ``repeats`` times, and returns what was measured and simulated. logs:
    a folder for the processes' logs. Raises NotMeasured or NotReady."""
    in_network = METHODS[emulated.method].in_network
    with network(emulated, Aggregating if in_network else Router) as net, ExitStack() as stack:
        switches = _tree(net, emulated, logs, stack) if in_network else []
        hosts = []
        for number in range(emulated.network.hosts):
            options = json.dumps({"emulated": asdict(emulated), "host": number})
            arguments = ("serene.experiments.network_study.emulated.hosts", options)
            hosts.append(_part(net[f"h{number + 1}"], arguments, logs, stack))
        for host in hosts:
            _expect_ready(host)
        seconds, waited, idle, steps = [], [], [], []
        for number in range(-1, repeats):  # the first one warms up
            before = _processors()
            begin = time.monotonic() + BEGIN_IN_S
            for host in hosts:
                host.tell(repr(begin))
            answers = [json.loads(line) for line in _exchanged(emulated, hosts)]
            if number >= 0:
                idle.append(_idle(before, _processors()))
                seconds.append(max(answer["seconds"] for answer in answers))
                waited.append(max(answer["waited_s"] for answer in answers))
                steps.append(
                    [(min(each), max(each)) for each in zip(*(answer["ended_s"] for answer in answers), strict=True)]
                )
        for host in hosts:
            host.end()
        dropped = [json.loads(switch.end()) for switch in switches]
        if any(dropped):
            raise NotMeasured(f"switches have dropped packets: {dropped}")
    return {
        "simulated_s": emulated.simulated_s(), "emulated_s": median(seconds), "samples_s": seconds, "idle": min(idle),
        "waited_s": max(waited), "steps_s": steps,
    }  # fmt: skip


def _exchanged(emulated: Emulated, hosts: Sequence[Part]) -> list[str]:
    """The lines that the hosts print at the end of an exchange. Raises NotMeasured."""
    flows, patience_s = emulated.flows(), BEGIN_IN_S + PATIENCE_S + PATIENCE * emulated.simulated_s()
    for _ in range(len(flows) - 1) if emulated.barrier and flows is not None else ():
        for host in hosts:
            if (said := host.answer(patience_s)) != STEP:
                raise NotMeasured(f"{host.name} printed {said!r}, expected {STEP!r}")
        for host in hosts:
            host.tell("")
    return [host.answer(patience_s) for host in hosts]


def _processors() -> list[int]:
    """Time of all processors together, in ticks: user, nice, system, idle, waiting for a disk and so on."""
    return [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]


def _idle(before: Sequence[int], after: Sequence[int]) -> float:
    """The share of the time between two `_processors` in which processors were idle, 0 to 1."""
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return (spent[3] + spent[4]) / max(sum(spent), 1)


def questions() -> list[Emulated]:
    """What is measured: every method as hosts do it; and the flat butterfly, in which data goes both ways over every
    link, also with acknowledgements before data and with a barrier after each step, as the simulation has it."""
    asked = [(method, False, False) for method in EMULATED]
    asked += [(FLAT, True, False), (FLAT, True, True)]
    return [
        Emulated(method, ratio, LINK_MBIT, VALUES, small_first=small_first, barrier=barrier)
        for ratio in RATIOS
        for method, small_first, barrier in asked
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m serene.experiments.network_study.emulated.measure",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for measurements; existing ones are not repeated"
    )
    options = parser.parse_args()

    def work() -> None:
        with alone(options.out):
            told = complete(
                options.out / ROWS, questions(), lambda question: measure(question, options.out),
                lambda question: print(f"measuring: {title(asdict(question))}, r = {question.ratio:g}", flush=True),
            )  # fmt: skip
        for row in told:
            print(f"{title(row)}, r = {row['ratio']:g}: {row['emulated_s']:.2f} s")

    return isolated.command(work, "emulated hosts need root")


if __name__ == "__main__":
    raise SystemExit(ended(main))
