"""A switch between two hosts, attached to them in every way that this kernel offers: what works, and what does not.

    sudo .venv/bin/python -m tests.embedded.attachments [WORDS OF A ROW]      prints the table of docs/switches.md

Hosts are network namespaces. In each case two workers train under BSP through ``serene-switch -i 1@eth1 -i 2@eth2``,
each sum is checked, and then each host sends the other some megabytes over TCP through the same ports.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from serene.arguments import Parser
from serene.errors import SereneError
from serene.strategy import BSP
from tests.controller.processes import ControllerProcess, Process, listens
from tests.embedded.attached import HOSTS, PATIENCE_S
from tests.runs import ROOT, private_network
from tests.support.warm import server

GRPC = "127.0.0.1:9559"
UNDER = "under"  # the interface in the switch's namespace that eth1 or eth2 is made of, where it is not the link itself

FEATURES = {  # ethtool's names: both ends of each link get them
    "as the kernel makes it": (),
    "every offload off": tuple(f"{name} off" for name in ("tx", "rx", "tso", "gso", "gro", "sg")),
    "checksums off (tx, rx)": ("tx off", "rx off"),
    "scatter-gather off (sg)": ("sg off",),
    "TCP segmentation off (tso)": ("tso off",),
    "generic segmentation off (gso)": ("gso off",),
    "UDP segmentation off": ("tx-udp-segmentation off",),
    "generic receive offload on (gro)": ("gro on",),
    "gro on, forwarding UDP runs": ("gro on", "rx-udp-gro-forwarding on"),
    "gro on, by lists": ("gro on", "rx-gro-list on"),
    "VLAN offload off": ("txvlan off", "rxvlan off"),
}


@dataclass(frozen=True)
class Case:
    """A way to attach hosts: the kind of the switch's interfaces and of the hosts', offloads, MTU and program."""

    switch: str = "veth"
    host: str = "veth"
    offloads: str = "as the kernel makes it"
    mtu: int = 1500
    program: str = "serene"

    @property
    def name(self) -> str:
        host = "" if self.host == "veth" else f", hosts behind {self.host}"
        return f"{self.switch}{host}, MTU {self.mtu}, {self.offloads}, {self.program}"


KINDS = ("macvlan bridge", "macvlan private", "macvlan vepa", "macvlan passthru", "bridge")
CASES = (
    *(Case(offloads=name) for name in FEATURES),
    *(Case(kind) for kind in KINDS),
    Case("macvlan passthru", offloads="every offload off"),
    Case(host="macvlan bridge"),
    Case(host="macvlan bridge", offloads="every offload off"),
    Case(mtu=9000, program="serene_jumbo"),
    Case(mtu=9000, program="serene_jumbo", offloads="every offload off"),
    Case("macvlan passthru", mtu=9000, program="serene_jumbo"),
    Case(mtu=1500, program="serene_jumbo"),
)


class Host:
    """A network namespace with an interface eth0, at the switch's port ``number``."""

    def __init__(self, number: int, case: Case) -> None:
        self.address = f"10.0.0.{number}"
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own, switch = "lower" if case.host != "veth" else "eth0", f"eth{number}"
        try:
            while self.network() == os.readlink("/proc/self/ns/net"):
                pass
            lower = f"{UNDER}{number}" if case.switch != "veth" else switch
            _ip(f"link add {lower} mtu {case.mtu} type veth peer name {own} mtu {case.mtu} netns {self._holder.pid}")
            self._derive(case.host, own, "eth0", case.mtu, inside=True)
            self._derive(case.switch, lower, switch, case.mtu, inside=False)
            for command in (
                "link set lo up", f"link set {own} up", f"link set eth0 address 02:00:00:00:00:{number:02x} up",
                f"address add {self.address}/24 dev eth0",
            ):  # fmt: skip
                self.run(["ip", *command.split()])
            for name in {lower, switch}:
                _ip(f"link set {name} up addrgenmode none")
            for feature in FEATURES[case.offloads]:
                _check(["ethtool", "-K", lower, *feature.split()])
                self.run(["ethtool", "-K", own, *feature.split()])
        except BaseException:
            self.end()
            raise

    def network(self) -> str:
        return os.readlink(f"/proc/{self._holder.pid}/ns/net")

    def _derive(self, kind: str, lower: str, name: str, mtu: int, *, inside: bool) -> None:
        """Makes interface ``name`` of this kind from ``lower``."""
        word, _, mode = kind.partition(" ")
        commands = {
            "veth": [],
            "macvlan": [f"link add {name} link {lower} type macvlan mode {mode}"],
            "bridge": [
                f"link add name br-{name} mtu {mtu} type bridge", f"link set {lower} master br-{name}",
                f"link add {name} mtu {mtu} type veth peer name {name}-br mtu {mtu}",
                f"link set {name}-br master br-{name} up addrgenmode none", f"link set br-{name} up addrgenmode none",
            ],
        }[word]  # fmt: skip
        for command in commands:
            _check([*self._within(), "ip", *command.split()] if inside else ["ip", *command.split()])

    def _within(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]

    def run(self, command: Sequence[str]) -> None:
        _check([*self._within(), *command])

    def start(self, what: str, *arguments: str) -> subprocess.Popen[str]:
        """A function of attached.py, in this host."""
        command = [*self._within(), sys.executable, "-m", "tests.embedded.attached", what, *arguments]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> None:
        self._holder.kill()
        self._holder.wait()


def _ip(command: str) -> None:
    _check(["ip", *command.split()])


def _check(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SereneError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")


def outcome(case: Case, scratch: Path) -> dict[str, str]:
    """Returns the outcome of training and of TCP: "yes", or the reason in a line."""
    server("controller")  # here: it would be in the network below otherwise, and outlive it
    with contextlib.ExitStack() as stack:
        stack.enter_context(private_network())
        hosts = []
        try:
            for number in range(1, HOSTS + 1):
                hosts.append(Host(number, case))
                stack.callback(hosts[-1].end)
        except SereneError as error:
            return {"training": str(error), "TCP": "-"}
        ports = [f"-i{number}@eth{number}" for number in range(1, HOSTS + 1)]
        command = ["-m", "serene.switch_command", "--no-p4", *ports, "--", "--grpc-server-addr", GRPC]
        switch = Process([*command, "--cpu-port", "255"], scratch / "switch.log", warm=True)
        stack.callback(switch.kill)
        switch.await_(lambda: listens(GRPC), "the switch listens")
        options = ("--program", case.program, "--ports", f"1-{HOSTS}")
        controller = ControllerProcess.of(GRPC, scratch / "controller.log", *options)
        stack.callback(controller.kill)
        controller.client.create_job(HOSTS, BSP())
        training = _both(hosts, "worker", lambda number: (str(number - 1),))
        tcp = _both(hosts, "tcp", lambda number: (f"10.0.0.{number}", f"10.0.0.{3 - number}"))
        return {"training": training, "TCP": tcp}


def _both(hosts: Sequence[Host], what: str, arguments: Callable[[int], tuple[str, ...]]) -> str:
    running = [host.start(what, *arguments(number)) for number, host in enumerate(hosts, 1)]
    errors = []
    for process in running:
        try:
            _, error = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, error = process.communicate()
            error = error or f"not within {PATIENCE_S:g} s"
        if process.returncode:
            errors.append((error.strip().splitlines() or ["it ended"])[-1])
    return errors[0] if errors else "yes"


# -- the command -----------------------------------------------------------------------------------------------------


def table(words: str) -> Iterator[str]:
    """The table's lines, of the cases whose name contains these words."""
    yield "| the switch's interface | the hosts' | offloads | MTU | program | training | TCP |"
    yield "|---|---|---|---|---|---|---|"
    for case in CASES:
        if words not in case.name:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found = outcome(case, Path(scratch))
        cells = (case.switch, case.host, case.offloads, case.mtu, case.program, found["training"], found["TCP"])
        yield f"| {' | '.join(str(cell) for cell in cells)} |"


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("words", nargs="*", help="only rows whose text contains these words; default: all rows")
    for line in table(" ".join(parser.parse_args().words)):
        print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(ended(main))
