"""The same controller over BMv2's switches: leaves and a root between veth pairs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.strategy import ASP, BSP
from serene.wire import Op
from tests.controller.hosts import FrameLink, Host, packet_end
from tests.controller.processes import ControllerProcess, missing
from tests.controller.trees import bmv2_tree

RACKS = 2

pytestmark = pytest.mark.bmv2


@pytest.fixture
def switches(tmp_path: Path) -> Iterator[str]:
    """A leaf has one worker's port, and one to the root."""
    lacking = missing("bmv2")
    if lacking:
        pytest.skip(f"target bmv2 needs {lacking}")
    with bmv2_tree(tmp_path, (1,) * RACKS) as named:
        yield named


def test_a_round_and_a_swap(switches: str, tmp_path: Path) -> None:
    daemon = ControllerProcess.of(switches, tmp_path / "controller.log", "--ports", "1")
    client = daemon.client
    client.create_job(RACKS, BSP(), racks=[1, 1])
    hosts = [Host(rack + 1, FrameLink(packet_end(f"h{rack + 1}"))) for rack in range(RACKS)]
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
