"""Jobs and pools over several racks: one controller, embedded leaves and a root, and workers' own code."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from serene.client import Pool, Refused, Session
from serene.controller.http.client import ControllerClient, Rejected
from serene.controller.status.model import Explanation
from serene.racks import Racks
from serene.strategy import BSP, Mixed
from tests.controller.processes import PATIENCE_S, ControllerProcess, serenectl, until
from tests.controller.trees import Tree
from tests.ports import some_port

SIZES = (2, 2, 1)
VALUES = 700


def test_workers_rack_is_that_of_its_hello(shared_tree: Tree, racks_client: ControllerClient) -> None:
    racks_client.create_job(3, BSP(), racks=[2, 1, 0])
    for place, claims, why in (
        ((0, 0), 2, "worker 0 names rack 2, but its HELLO came from rack 0"),
        ((1, 1), None, "job 0 has no worker 1 in rack 1: expected 0, the worker's number in its rack"),
        ((2, 0), None, "job 0 has no workers in rack 2: it has 2, 1, 0 by rack"),
    ):
        with shared_tree.client(*place, VALUES, claims=claims) as refused, pytest.raises(Refused, match=why):
            refused.join(PATIENCE_S)


def test_status_and_explain_name_rack_and_level(
    shared_tree: Tree, shared_daemon: ControllerProcess, racks_client: ControllerClient
) -> None:
    created = serenectl("jobs", "create", "--workers", "3", "--racks", "2,1,0", controller=shared_daemon.url)
    assert created.returncode == 0, created.stderr
    with ThreadPoolExecutor(3) as pool, ExitStack() as ending:
        ending.callback(racks_client.delete_job, 0)  # which lets go who waits
        sessions = [Session(shared_tree.client(*place, VALUES)) for place in ((0, 0), (0, 1), (1, 0))]
        for joining in [pool.submit(session.join) for session in sessions]:
            joining.result(120)
        gradient = np.ones(VALUES, np.float32)

        def waits(number: int, *by: int) -> Explanation:
            def explained() -> Explanation | None:
                (explanation,) = racks_client.explain(0, number).workers
                return explanation if explanation.waits_for == list(by) else None

            return until(explained, "it waits")

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
        for line in ("3 racks: 8192 slots of 320 values", "  root 127.0.0.1:", "  leaf3 (leaf of rack 2) 127.0.0.1:"):
            assert line in shown
        names = [line.split()[0] for line in shown.splitlines() if line.strip()[:2] in ("0.", "1.")]
        assert names == ["0.0", "0.1", "1.0"]
        explained = serenectl("explain", "--worker", "1.0", controller=shared_daemon.url)
        assert "worker 1.0 waits in round 1 of epoch 1 for worker 0.0" in explained.stdout
        assert "would end the wait" in explained.stdout
        for command, out, err in (
            ("evict --worker 1.1", "", "error: no worker 1.1: expected 0 to 2, or 0.0 to 1.0\n"),
            ("evict --worker 0.0", "job 0: worker 0.0 is evicted, epoch 2\n", ""),
            ("evict --worker 0.0", "job 0: worker 0.0 is evicted already, no change\n", ""),
            ("readmit --worker 1.0", "job 0: worker 1.0 is a member already, no change\n", ""),
        ):
            printed = serenectl(*command.split(), controller=shared_daemon.url)
            assert (printed.stdout, printed.stderr) == (out, err)
        for done in (second, third):  # nobody waits for it any more
            done.result(120)
        for session in sessions:
            session.client.close()


def test_status_lists_all_switches(shared_tree: Tree, racks_client: ControllerClient) -> None:
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


def test_jobs_create_takes_rack_sizes_and_async_workers(
    shared_daemon: ControllerProcess, racks_client: ControllerClient
) -> None:
    def create(options: str) -> subprocess.CompletedProcess[str]:
        return serenectl("jobs", "create", "--workers", "5", *options.split(), controller=shared_daemon.url)

    for racks, sizes in (("", [2, 2, 1]), ("--racks 2", [3, 2, 0]), ("--racks 1,3,1", [1, 3, 1])):
        done = create(f"{racks} --strategy mixed:1.0,0:3")
        assert done.returncode == 0, done.stderr
        made = racks_client.job(0)
        assert (made.racks, made.strategy) == (sizes, Mixed((0, sizes[0]), 3))
        racks_client.delete_job(0)
    for given, message in (
        ("--racks 3,2", "racks 3, 2: expected 3 numbers, one for each leaf (0: no workers there)"),
        ("--racks 4", "racks 2, 1, 1, 1: expected 3 numbers"),
        ("--racks 3,2,0 --strategy mixed:2.0", "no worker 2.0: expected 0 to 4, or 0.0 to 1.1"),
    ):
        done = create(given)
        assert done.returncode != 0 and message in done.stderr and done.stderr.count("\n") == 1
    assert racks_client.jobs() == []


def test_leaf_in_place_of_the_root_is_refused(shared_tree: Tree, shared_daemon: ControllerProcess) -> None:
    """Its entries stay unchanged."""
    swapped = f"root={shared_tree.leaves[0].grpc},leaf1={shared_tree.root.grpc},leaf2={shared_tree.leaves[1].grpc}"
    asked = ("--switch", swapped, "--election-id", "9", "--http", f"127.0.0.1:{some_port()}")
    up = serenectl("up", "--foreground", *asked)
    assert up.returncode == 1
    assert "a program of another level of the tree. Check the names in --switch, or restart" in up.stderr


def test_pool_sums_cover_all_racks(shared_tree: Tree, racks_client: ControllerClient) -> None:
    """Also with another precision, which swaps the whole tree's policy, and with a rack in which no worker takes
    part."""
    racks, slots, bits = Racks((2, 0, 1)), 16, 32
    job = racks_client.create_job(3, BSP(), pool_slots=slots, racks=racks.sizes)
    lanes = racks_client.status().switch.lanes
    given = np.arange(20_000, dtype=np.float32) % 1000
    expected = given * (1 + 2 + 3)  # whose sums are exact in 32 bits
    with ExitStack() as stack, ThreadPoolExecutor(3) as threads:
        places = [racks.place(worker) for worker in range(3)]
        pools = [
            stack.enter_context(Pool(shared_tree.transport(*at), job.job, at[1], slots=slots, lanes=lanes, rack=at[0]))
            for at in places
        ]
        list(threads.map(lambda pool: pool.join(PATIENCE_S), pools))

        def summed() -> list[np.ndarray]:
            vectors = [given * (worker + 1) for worker in range(3)]
            list(threads.map(lambda pool, values: pool.all_reduce(values, bits=bits, timeout_s=60.0), pools, vectors))
            return vectors

        for _ in range(3):
            assert all((values == expected).all() for values in summed())
        racks_client.set_precision(0, 8)
        for _ in range(20):
            bits = pools[0].precision
            narrow = summed()
            if bits == 8:
                break
        assert [pool.precision for pool in pools] == [8] * 3
        assert all((values == narrow[0]).all() for values in narrow) and not (narrow[0] == expected).all()
        np.testing.assert_allclose(narrow[0], expected, atol=expected.max() / 4)
        for pool in pools:
            pool.leave()
    until(lambda: racks_client.job(0).state == "finished", "the job is over")
