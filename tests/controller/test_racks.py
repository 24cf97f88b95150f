"""Jobs over several racks: one controller, embedded leaves and a root, and workers' own code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from serene.client import Refused, Session
from serene.controller.http.client import ControllerClient, Rejected
from serene.controller.status.model import Explanation
from serene.strategy import BSP, Mixed
from tests.controller.processes import ControllerProcess, serenectl, until
from tests.controller.trees import Tree
from tests.ports import some_port

SIZES = (2, 2, 1)
VALUES = 700


def test_workers_rack_is_that_of_its_hello(fabric: Tree, racks_client: ControllerClient) -> None:
    racks_client.create_job(3, BSP(), racks=[2, 1, 0])
    with (
        fabric.client(0, 0, VALUES, says=2) as liar,
        pytest.raises(Refused, match="worker 0 names rack 2, but its HELLO came from rack 0"),
    ):
        liar.join(120.0)
    with (
        fabric.client(1, 1, VALUES) as too_many,
        pytest.raises(Refused, match="job 0 has no worker 1 in rack 1: expected 0 to 0"),
    ):
        too_many.join(120.0)
    with (
        fabric.client(2, 0, VALUES) as elsewhere,
        pytest.raises(Refused, match="job 0 has no workers in rack 2: it has 2, 1, 0 by rack"),
    ):
        elsewhere.join(120.0)


def test_status_and_explain_name_rack_and_level(
    fabric: Tree, shared_daemon: ControllerProcess, racks_client: ControllerClient
) -> None:
    told = serenectl("jobs", "create", "--workers", "3", "--racks", "2,1,0", controller=shared_daemon.url)
    assert told.returncode == 0, told.stderr
    with ThreadPoolExecutor(3) as pool, ExitStack() as ending:
        ending.callback(racks_client.delete_job, 0)  # which lets go who waits
        sessions = [Session(fabric.client(*place, VALUES)) for place in ((0, 0), (0, 1), (1, 0))]
        for joining in [pool.submit(session.join) for session in sessions]:
            joining.result(120)
        gradient = np.ones(VALUES, np.float32)

        def waits(number: int, *by: int) -> Explanation:
            def told() -> Explanation | None:
                (explanation,) = racks_client.explain(0, number).workers
                return explanation if explanation.waits_for == list(by) else None

            return until(told, "it waits")

        first = pool.submit(sessions[0].exchange, gradient)
        both = waits(0, 1, 2)
        assert (both.level, both.racks) == ("root", [0, 1])
        assert both.text.endswith("; at the leaf of its own rack 0 and at the root for rack 1")
        second = pool.submit(sessions[1].exchange, gradient)
        assert waits(1, 2).text.endswith("; at the root for rack 1")
        rest = waits(0, 2)
        assert "worker 0.0 waits in round 0 of epoch 1 for worker 1.0 to contribute to its round (1.0 is" in rest.text
        assert (rest.level, rest.racks) == ("root", [1])
        third = pool.submit(sessions[2].exchange, gradient)
        for done in (first, second, third):
            done.result(120)
        third = pool.submit(sessions[2].exchange, gradient)
        second = pool.submit(sessions[1].exchange, gradient)
        own = waits(1, 0)
        assert (own.level, own.racks) == ("leaf", [0])
        assert own.text.endswith("; at the leaf of its own rack 0")
        shown = serenectl("status", controller=shared_daemon.url).stdout
        for line in ("3 racks: 8192 slots of 320 values", "root root 127.0.0.1:", "leaf of rack 2 leaf3 127.0.0.1:"):
            assert line in shown
        assert [line.split()[0] for line in shown.splitlines() if line.strip()[:2] in ("0.", "1.")] == [
            "0.0",
            "0.1",
            "1.0",
        ]
        explained = serenectl("explain", "--worker", "1.0", controller=shared_daemon.url)
        assert "worker 1.0 waits in round 1 of epoch 1 for worker 0.0" in explained.stdout
        assert "would let it continue" in explained.stdout
        wrong = serenectl("evict", "--worker", "1.1", controller=shared_daemon.url)
        assert (wrong.returncode, wrong.stderr) == (2, "error: no worker 1.1: expected 0 to 2, or 0.0 to 1.0\n")
        evicted = serenectl("evict", "--worker", "0.0", controller=shared_daemon.url)
        assert evicted.stdout == "job 0: worker 0.0 is evicted, epoch 2\n"
        repeated = serenectl("evict", "--worker", "0.0", controller=shared_daemon.url)
        assert repeated.stdout == "job 0: worker 0.0 is evicted already, no change\n"
        member = serenectl("readmit", "--worker", "1.0", controller=shared_daemon.url)
        assert member.stdout == "job 0: worker 1.0 is a member already, no change\n"
        for done in (second, third):  # nobody waits for it any more
            done.result(120)
        for session in sessions:
            session.client.close()


def test_status_lists_all_switches(fabric: Tree, racks_client: ControllerClient) -> None:
    status = racks_client.status()
    assert [(switch.name, switch.level, switch.rack, switch.program) for switch in status.switches] == [
        ("root", "root", None, "serene_root"),
        ("leaf1", "leaf", 0, "serene_leaf"),
        ("leaf2", "leaf", 1, "serene_leaf"),
        ("leaf3", "leaf", 2, "serene_leaf"),
    ]
    assert all(switch.connected and "stranger" in switch.drops for switch in status.switches)
    for racks, why in (
        ([1, 1, 0], "racks have 2 workers in all, the job 3: expected the same number"),
        ([2, 1], r"racks 2, 1: expected 3 numbers, one for each leaf \(0: no workers there\)"),
        ([1, 1, 1, 0], "racks 1, 1, 1, 0: expected 3 numbers"),
    ):
        with pytest.raises(Rejected, match=why):
            racks_client.create_job(3, BSP(), racks=racks)
    with pytest.raises(Rejected, match="a pool of 64 workers: expected 1 to 63"):
        racks_client.create_job(64, BSP(), pool_slots=4)


@pytest.mark.parametrize(
    ("racks", "sizes"), [((), [2, 2, 1]), (("--racks", "2"), [3, 2, 0]), (("--racks", "1,3,1"), [1, 3, 1])]
)
def test_jobs_create_sets_rack_sizes_and_async_workers(
    fabric: Tree,
    shared_daemon: ControllerProcess,
    racks_client: ControllerClient,
    racks: tuple[str, ...],
    sizes: list[int],
) -> None:
    told = serenectl(
        "jobs", "create", "--workers", "5", *racks, "--strategy", "mixed:1.0,0:3", controller=shared_daemon.url
    )
    assert told.returncode == 0, told.stderr
    made = racks_client.job(0)
    assert (made.racks, made.strategy) == (sizes, Mixed((0, sizes[0]), 3))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("--racks", "3,2"),
            "racks 3, 2: expected 3 numbers, one for each leaf (0: no workers there)",
        ),
        (("--racks", "4"), "racks 2, 1, 1, 1: expected 3 numbers"),
        (("--racks", "3,2,0", "--strategy", "mixed:2.0"), "no worker 2.0: expected 0 to 4, or 0.0 to 1.1"),
    ],
)
def test_jobs_create_refuses_impossible_racks_and_workers(
    fabric: Tree, shared_daemon: ControllerProcess, racks_client: ControllerClient, given: tuple[str, ...], said: str
) -> None:
    told = serenectl("jobs", "create", "--workers", "5", *given, controller=shared_daemon.url)
    assert told.returncode != 0 and said in told.stderr and told.stderr.count("\n") == 1
    assert racks_client.jobs() == []


def test_leaf_in_place_of_the_root_is_refused(fabric: Tree, shared_daemon: ControllerProcess) -> None:
    """Its entries stay unchanged."""
    swapped = f"root={fabric.leaves[0].grpc},leaf1={fabric.root.grpc},leaf2={fabric.leaves[1].grpc}"
    up = serenectl(
        "up", "--foreground", "--switch", swapped, "--election-id", "9", "--http", f"127.0.0.1:{some_port()}"
    )
    assert up.returncode == 1
    assert "a program of another level of the tree. Check the names in --switch, or restart" in up.stderr
