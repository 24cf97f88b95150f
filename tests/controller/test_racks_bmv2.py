"""The same controller over BMv2's switches: leaves and a root between veth pairs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from serene.strategy import ASP, BSP
from serene.wire import Op
from tests.controller.hosts import Host, PacketLink
from tests.controller.processes import ControllerProcess, Process, listens, missing, own_network, until
from tests.controller.trees import UPLINK
from tests.ports import some_port

RACKS = 2

pytestmark = pytest.mark.bmv2


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[list[str]]:
    """P4Runtime servers: the root's, then the leaves'. A leaf has one worker's port, and one to the root."""
    lacking = missing("bmv2")
    if lacking:
        pytest.skip(f"target bmv2 needs {lacking}")
    with ExitStack() as stack:
        stack.enter_context(own_network())  # s1-h1 and s2-h2 are the workers' links
        interfaces: list[dict[int, str]] = [{}]
        for rack in range(RACKS):
            down, up = f"d{rack + 1}", f"u{rack + 1}"
            subprocess.run(["ip", "link", "add", down, "type", "veth", "peer", "name", up], check=True)
            for end in (down, up):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                subprocess.run(["ip", "link", "set", end, "up"], check=True)
            interfaces[0][rack + 1] = down
            interfaces.append({1: f"s{rack + 1}", UPLINK: up})
        grpc = []
        for number, ports in enumerate(interfaces):
            address = f"127.0.0.1:{some_port()}"
            command = ["simple_switch_grpc", "--no-p4", "--device-id", "0", "--thrift-port", str(some_port())]
            command += [f"-i{port}@{interface}" for port, interface in ports.items()]
            process = Process(
                [*command, "--", "--grpc-server-addr", address, "--cpu-port", "255"], tmp_path / f"switch{number}.log"
            )
            stack.callback(process.kill)
            until(lambda at=address: listens(at), "the switch listens")  # type: ignore[misc]
            grpc.append(address)
        yield grpc


def test_a_round_and_a_swap(addresses: list[str], tmp_path: Path) -> None:
    named = ",".join(f"{name}={address}" for name, address in zip(("root", "leaf1", "leaf2"), addresses, strict=True))
    daemon = ControllerProcess.of(named, tmp_path / "controller.log", "--ports", "1")
    client = daemon.client
    client.create_job(RACKS, BSP(), racks=[1, 1])
    hosts = [Host(rack + 1, PacketLink(f"h{rack + 1}")) for rack in range(RACKS)]
    hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WAIT)
    hosts[1].ask(lambda: hosts[1].hello(0, 0, 5), Op.WELCOME)
    welcome = hosts[0].ask(lambda: hosts[0].hello(0, 0, 5), Op.WELCOME)
    session = welcome["session"]

    def push(rack: int, values: list[int], **fields: int) -> None:
        hosts[rack].push(0, 0, values, session=session, **fields)

    push(1, [20], epoch=1, seq=1)
    first = hosts[0].ask(lambda: push(0, [1], epoch=1, seq=1), Op.ANSWER)
    second = hosts[1].ask(lambda: push(1, [20], epoch=1, seq=1), Op.ANSWER)
    for answer in (first, second):
        assert (answer["total"], answer["round"], answer["members"]) == (2, 1, 2)
        assert int.from_bytes(answer.body[:4], "big") == 21
    assert client.set_strategy(0, ASP()).epoch == 2
    # Whoever asks hears of the new epoch, and nobody waits in it.
    hosts[0].ask(lambda: push(0, [300], epoch=1, round=1, seq=2), Op.ANSWER)
    third = hosts[0].ask(lambda: push(0, [4000], epoch=2, seq=3), Op.ANSWER)
    assert (third["epoch"], third["total"], int.from_bytes(third.body[:4], "big")) == (2, 4, 4321)
    assert [worker.contributions for worker in client.job(0).workers] == [3, 1]
    assert all(switch.connected for switch in client.status().switches)
    assert daemon.stop() == 0
