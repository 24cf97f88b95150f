"""Ordinary traffic over racks: hosts exchange frames while the switches still learn their ports."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from serene.wire import mac_bytes
from tests.controller.hosts import FrameLink, Link, packet_end, udp_end
from tests.controller.processes import ControllerProcess, missing
from tests.controller.trees import Tree, bmv2_tree

SIZES = (2, 1)
ROUNDS = 20  # in each of which every host has an address that no switch has heard of
EXCHANGES = 100  # in a round: some of them while one switch knows a host already and another does not
PACE_S = 0.05  # without a frame, before the next exchange: a busy switch drops what its queues have no room for
PATIENCE_S = 120.0


class Host:
    """Of a rack; another one in each round."""

    def __init__(self, number: int, link: Link) -> None:
        self.number, self.link = number, link
        self.wanted: set[bytes] = set()  # that it has not heard yet
        self.heard: Counter[bytes] = Counter()

    def address(self, round_: int) -> bytes:
        return mac_bytes(f"02:00:00:00:{self.number:02x}:{round_:02x}")

    def tell(self, other: Host, round_: int, exchange: int) -> None:
        frame = other.address(round_) + self.address(round_) + b"\x88\xb5" + exchange.to_bytes(46, "big")
        other.wanted.add(frame)
        self.link.send(frame)

    def listen(self, patience_s: float) -> None:
        """Receives until all expected frames have come, or nothing for the given time."""
        while self.wanted and (frame := self.link.receive(patience_s)) is not None:
            self.heard[frame] += 1
            self.wanted.discard(frame)


@pytest.fixture(params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def hosts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Host]]:
    """Hosts in racks whose switches have a controller."""
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"target {request.param} needs {lacking}")
    links: list[Link]
    with ExitStack() as stack:
        if request.param == "embedded":
            tree = Tree(tmp_path, SIZES)
            stack.callback(tree.stop)
            switches = tree.option
            places = [(leaf, at + 1) for leaf, size in zip(tree.leaves, SIZES, strict=True) for at in range(size)]
            links = [FrameLink(udp_end(leaf.peers[port], leaf.ports[port])) for leaf, port in places]
        else:
            switches = stack.enter_context(bmv2_tree(tmp_path, SIZES))
            links = [FrameLink(packet_end(f"h{number}")) for number in range(1, sum(SIZES) + 1)]
        for link in links:
            stack.callback(link.close)
        daemon = ControllerProcess.of(switches, tmp_path / "controller.log", "--ports", f"1-{max(SIZES)}")
        yield [Host(number, link) for number, link in enumerate(links)]
        assert daemon.stop() == 0


def test_hosts_of_racks_keep_reaching_each_other(hosts: list[Host]) -> None:
    """A leaf floods frames for unknown hosts. If the root sent them back, hosts would receive them twice, the sender
    its own; and the leaf would learn its hosts at its uplink, so that frames for them would circulate between leaf and
    root."""
    for round_ in range(ROUNDS):
        for exchange in range(EXCHANGES):
            for one, other in itertools.permutations(hosts, 2):
                one.tell(other, round_, exchange)
            for host in hosts:
                host.listen(PACE_S)
        for host in hosts:
            host.listen(PATIENCE_S)
            assert not host.wanted, f"round {round_}: host {host.number} lacks {len(host.wanted)} frames"
            again = sum(times > 1 for times in host.heard.values())
            own = sum(frame[6:12] == host.address(round_) for frame in host.heard)
            assert not (again or own), (
                f"round {round_}, host {host.number}: {again} frames came twice, {own} of its own came back"
            )
