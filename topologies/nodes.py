"""Mininet nodes: the embedded switch, BMv2's simple_switch_grpc, Serene's controller, a Linux bridge and a router.

The two P4 switches are interchangeable: both serve P4Runtime on loopback, use interfaces as ports, and get their
program from the controller.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mininet.log import info
from mininet.node import Controller, Node, Switch

from serene.topologies.processes import (
    Background,
    NotReady,
    OwnFolder,
    Server,
    bmv2,
    free_ports,
    listens,
    p4runtime,
    program,
)

DEVICE_ID = 0
P4RUNTIME_PORT = 9559
THRIFT_PORT = 9090
HTTP_PORT = 8559
START_TIMEOUT_S = 60.0
UPLINK = 33  # a leaf's port to the root; a rack has at most 32 workers, whose ports come first


class P4Switch(Switch):  # type: ignore[misc]
    """A switch that a P4Runtime controller commands. ``p4runtime_port``: its TCP port, by default a free one.

    ``faults``: a fault file (docs/faults.md); packets then pass a shim between the links and the switch's ports.
    ``links``: the link's name in the fault file for each port that gets a shim. By default all ports get one, with
    worker w at port w + 1. ``log``: for the switch's output, by default a temporary file. Raises NotReady.
    """

    target = ""

    def __init__(
        self,
        name: str,
        log: Path | None = None,
        p4runtime_port: int | None = None,
        faults: Path | None = None,
        links: Mapping[int, str] | None = None,
        **params: Any,
    ) -> None:
        super().__init__(name, **params)
        self._may_move = p4runtime_port is None
        self.p4runtime_port = p4runtime_port or free_ports(P4RUNTIME_PORT)[0]
        self.process: Background | None = None
        self.shim: Background | None = None
        self._log = log
        self._faults = faults
        self._links = links

    def command(self) -> list[str]:
        """The command line before the ports."""
        raise NotImplementedError

    def start(self, controllers: list[Node]) -> None:
        interfaces = {port: intf.name for port, intf in sorted(self.intfs.items()) if intf.name != "lo"}
        if self._faults is not None:
            interfaces = self._behind_shim(interfaces, self._faults)
        while True:
            command = [*self.command(), *p4runtime(interfaces, self.p4runtime_port)]
            name = f"{self.target}-{self.name}"
            try:
                self.process = Server(name, command, self.p4runtime_port, START_TIMEOUT_S, self._log)
                break
            except NotReady:
                if not self._may_move or not listens(self.p4runtime_port):
                    raise
            self.p4runtime_port = free_ports(P4RUNTIME_PORT)[0]  # another switch took the port first
        for controller in controllers:
            if isinstance(controller, SereneController):
                controller.bring_up(self)

    def _behind_shim(self, interfaces: dict[int, str], faults: Path) -> dict[int, str]:
        """Starts the shim between these interfaces and new ones. Returns the interfaces that the switch has to open, by
        port."""
        links = {port: str(port - 1) for port in interfaces} if self._links is None else self._links
        if not links:
            return interfaces
        inner = {port: f"{self.name}-in{port}" for port in links}
        log = self._log.with_name(f"shim-{self._log.name}") if self._log is not None else None
        named = [f"{link}:{interfaces[port]}:{inner[port]}" for port, link in links.items()]
        command = [program("serene-shim"), str(faults), *named]
        self.shim = Background(f"shim-{self.name}", command, log)
        wanted = set(inner.values())
        self.shim.wait_until(lambda: wanted <= {name for _, name in socket.if_nameindex()}, START_TIMEOUT_S)
        for name in inner.values():
            self.cmd("sysctl -qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
            self.cmd("ip link set dev", name, "up")
        return interfaces | inner

    def start_again(self) -> None:
        """Restarts the switch after ``process.kill()``. It then has no program, no entries and no state."""
        assert self.process is not None
        self.process.start_again()

    def stop(self, deleteIntfs: bool = True) -> None:
        for process in (self.process, self.shim):
            if process is not None:
                process.stop()
        self.process = self.shim = None
        super().stop(deleteIntfs)

    def defaultIntf(self) -> Any:
        return None  # otherwise Mininet would configure the switch's IP address, which belongs to the data plane


class EmbeddedSwitch(P4Switch):
    """Serene's own switch: it compiles the same BMv2 JSON to native code."""

    target = "embedded"

    def command(self) -> list[str]:
        # The hosts' kernels accept several packets merged into one buffer; the shim does not.
        join = ["--join-udp"] if self._faults is None else []
        return [program("serene-switch"), "--no-p4", *join, "--device-id", str(DEVICE_ID)]


class Bmv2Switch(P4Switch):
    """BMv2's simple_switch_grpc. Raises NotReady if it is not installed."""

    target = "bmv2"

    def command(self) -> list[str]:
        return [*bmv2(free_ports(THRIFT_PORT)[0], DEVICE_ID), "--log-level", "warn"]


class Bridge(Switch):  # type: ignore[misc]
    """A Linux bridge, in a network namespace of its own, so that it disappears with the node's processes."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **{**params, "inNamespace": True})

    def start(self, controllers: list[Node]) -> None:
        output = self.cmd("ip link add", self.name, "type bridge && ip link set dev", self.name, "up")
        for interface in self.intfs.values():
            if interface.name != "lo":
                output += self.cmd("ip link set dev", interface.name, "master", self.name)
        if output.strip():
            raise NotReady(f"cannot make a bridge: {output.strip()}")


NEXT_HOP = "169.254.0.1"  # stands for the node at the other end of any link


class Router(Switch):  # type: ignore[misc]
    """A router: the kernel forwards along static routes. The neighbours' MAC addresses are static, too, so nothing is
    learned or flooded. ``routes``: pairs of a destination's IP address and a port. Hosts at its ports get a default
    route through it. Raises NotReady."""

    def __init__(self, name: str, routes: Sequence[tuple[str, int]] = (), **params: Any) -> None:
        super().__init__(name, **{**params, "inNamespace": True})
        self._routes = routes

    def start(self, controllers: list[Node]) -> None:
        ports = {port: interface for port, interface in self.intfs.items() if interface.name != "lo"}
        settings = ["net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0"]
        # Without this the kernel would drop packets as spoofed: packets to a host may take another path than packets
        # from it.
        names = ("all", *(interface.name for interface in ports.values()))
        settings += [f"net.ipv4.conf.{name}.rp_filter=0" for name in names]
        _succeed(self, ["sysctl", "-qw", *settings])
        ours = ["link set lo up"]  # loopback has an address; without any address the kernel refuses every gateway
        ours += [
            f"route replace {target} via {NEXT_HOP} dev {ports[port].name} onlink" for target, port in self._routes
        ]
        for interface in ports.values():
            other = _other_end(interface)
            ours.append(_neighbour(interface))
            if not isinstance(other.node, Switch):
                theirs = [f"route replace default via {NEXT_HOP} dev {other.name} onlink", _neighbour(other)]
                _succeed(other.node, ["ip", "-batch", "-"], theirs)
        _succeed(self, ["ip", "-batch", "-"], ours)


def _other_end(interface: Any) -> Any:
    link = interface.link
    return link.intf2 if link.intf1 is interface else link.intf1


def _neighbour(interface: Any) -> str:
    other = _other_end(interface)
    return f"neigh replace {NEXT_HOP} lladdr {other.MAC()} dev {interface.name} nud permanent"


def _succeed(node: Node, command: list[str], lines: Sequence[str] = ()) -> None:
    """Runs a command in the node. lines: its input. Raises NotReady with its output if it fails."""
    process = node.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = process.communicate("".join(f"{line}\n" for line in lines).encode())
    if process.returncode:
        raise NotReady(f"{node.name}: {' '.join(command)}: {output.decode(errors='replace').strip()}")


class SereneController(Controller):  # type: ignore[misc]
    """Runs ``serenectl up`` when its P4 switch has started, or all switches of a tree (topologies/leaf_spine.py).
    ``http_port``: by default a free port. Processes in the hosts, which have their own loopback interfaces, reach it at
    ``unix_url``. Raises NotReady."""

    def __init__(
        self,
        name: str,
        log: Path | None = None,
        http_port: int | None = None,
        p4_program: str = "serene",
        slots: int | None = None,
        **params: Any,
    ) -> None:
        Node.__init__(self, name, inNamespace=False, **params)
        self.port, self.protocol, self.ip = None, "p4runtime", "127.0.0.1"
        self.http_port = http_port or free_ports(HTTP_PORT)[0]
        self.process: Background | None = None
        self._log = log
        self._program, self._slots = p4_program, slots
        self._folder: OwnFolder | None = None  # of the socket
        self._tree: dict[str, P4Switch] = {}  # the root and the leaves that have started

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def unix_url(self) -> str:
        assert self._folder is not None, "the controller has been started"
        return f"unix:{self._folder.path}/controller.sock"

    def start(self) -> None:
        """Does nothing: Mininet starts controllers first, and this one needs its switches (`bring_up`)."""

    def bring_up(self, switch: P4Switch) -> None:
        """Called by each P4 switch when it has started. Starts the controller when all its switches have started."""
        if self.process is not None:
            raise NotReady("the topology has more than one switch or tree; the controller commands one")
        if "level" not in switch.params:
            ports = [port for port, interface in switch.intfs.items() if interface.name != "lo"]
            one = ["--switch", f"127.0.0.1:{switch.p4runtime_port}", "--program", self._program]
            self._begin([*one, "--ports", ",".join(map(str, sorted(ports)))])
            return
        self._tree[switch.params["level"]] = switch
        root = self._tree.get("root")
        racks = len(self._tree) - 1
        if root is not None and racks == sum(interface.name != "lo" for interface in root.intfs.values()):
            leaves = [f"leaf{rack + 1}" for rack in range(racks)]
            named = [f"--switch={name}=127.0.0.1:{self._tree[name].p4runtime_port}" for name in ("root", *leaves)]
            hosts = {
                port for leaf in leaves for port in self._tree[leaf].intfs if port not in (0, UPLINK)
            }  # 0: loopback
            self._begin([*named, "--uplink", str(UPLINK), "--ports", ",".join(map(str, sorted(hosts)))])

    def _begin(self, switches: Sequence[str]) -> None:
        self._folder = OwnFolder()
        command = [
            program("serenectl"), "up", "--foreground", *switches, "--device-id", str(DEVICE_ID),
            *([] if self._slots is None else ["--slots", str(self._slots)]),
            "--http", f"127.0.0.1:{self.http_port}", "--socket", self.unix_url.removeprefix("unix:"),
            "--wait", str(START_TIMEOUT_S),
        ]  # fmt: skip
        name = f"controller-{self.name}"
        self.process = Server(name, command, self.http_port, START_TIMEOUT_S + 30, self._log)
        info(f"\n*** In the hosts: SERENE_CONTROLLER={self.unix_url}\n")

    def start_again(self) -> None:
        """Restarts it after ``process.kill()``. It takes over the jobs that it finds in the switch."""
        assert self.process is not None
        self.process.start_again()

    def stop(self, *args: Any, **kwargs: Any) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
        Node.stop(self, *args, **kwargs)
