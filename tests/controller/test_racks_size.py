"""The largest job: 256 workers in 8 racks of 32."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.fixedpoint import FixedPoint
from serene.strategy import BSP
from serene.wire import Op
from tests.controller.hosts import Host
from tests.controller.processes import ControllerProcess
from tests.controller.trees import Tree, controller

RACKS, EACH = 8, 32
WORKERS = RACKS * EACH
SIZES = (EACH,) * RACKS


@pytest.fixture
def daemon(tree: Tree, tmp_path: Path) -> Iterator[ControllerProcess]:
    process = controller(tree, tmp_path / "controller.log")
    yield process
    assert process.stop() == 0


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
    assert all(worker.contributions == 1 for worker in daemon.client.job(0).workers)
    for host in hosts.values():
        host.link.close()
