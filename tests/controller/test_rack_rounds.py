"""Rounds over trees of switches: one with 256 workers, and one on BMv2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.fixedpoint import FixedPoint
from serene.strategy import ASP, BSP
from serene.wire import Op
from tests.controller.hosts import FrameLink, Host, packet_end
from tests.controller.processes import ControllerProcess, missing, until
from tests.controller.trees import Tree, bmv2_tree

RACKS, EACH = 8, 32
WORKERS = RACKS * EACH
SIZES = (EACH,) * RACKS


def test_256_workers_join_and_complete_a_round(tree: Tree, daemon: ControllerProcess) -> None:
    job = daemon.client.create_job(WORKERS, BSP())
    assert (job.racks, job.scale) == ([EACH] * RACKS, FixedPoint.of(WORKERS).scale)
    places = [(rack, place) for rack in range(RACKS) for place in range(EACH)]
    hosts: dict[tuple[int, int], Host] = {where: tree.host(*where) for where in places}

    def hello(where: tuple[int, int]) -> None:
        hosts[where].hello(0, where[1], 5)

    for where in places[:-1]:
        hosts[where].ask(lambda at=where: hello(at), Op.WAIT)  # type: ignore[misc]
    welcome = hosts[places[-1]].ask(lambda: hello(places[-1]), Op.WELCOME)
    assert welcome.body[18] == 0, "256 workers, in a byte"

    def push(number: int) -> None:
        where = places[number]
        hosts[where].push(0, where[1], [1, number], session=welcome["session"], epoch=1, seq=1)

    for number in range(WORKERS):
        push(number)
    for number, where in enumerate(places):
        answer = hosts[where].ask(lambda at=number: push(at), Op.ANSWER)  # type: ignore[misc]
        assert (answer["total"], answer["round"], answer["members"]) == (WORKERS, 1, 0)
        assert [int.from_bytes(answer.body[at : at + 4], "big") for at in (0, 4)] == [256, sum(range(256))]
    until(lambda: all(worker.contributions == 1 for worker in daemon.client.job(0).workers), "all are counted")
    for host in hosts.values():
        host.link.close()
    assert daemon.stop() == 0


@pytest.fixture
def bmv2_switches(tmp_path: Path) -> Iterator[str]:
    """Two racks. A leaf has one worker's port, and one to the root."""
    lacking = missing("bmv2")
    if lacking:
        pytest.skip(f"target bmv2 needs {lacking}")
    with bmv2_tree(tmp_path, (1, 1)) as named:
        yield named


@pytest.mark.bmv2
def test_bmv2_tree_completes_a_round_and_a_swap(bmv2_switches: str, tmp_path: Path) -> None:
    daemon = ControllerProcess.of(bmv2_switches, tmp_path / "controller.log", "--ports", "1")
    client = daemon.client
    client.create_job(2, BSP(), racks=[1, 1])
    hosts = [Host(rack + 1, FrameLink(packet_end(f"h{rack + 1}"))) for rack in range(2)]
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
    until(lambda: [worker.contributions for worker in client.job(0).workers] == [3, 1], "all are counted")
    assert all(switch.connected for switch in client.status().switches)
    assert daemon.stop() == 0
