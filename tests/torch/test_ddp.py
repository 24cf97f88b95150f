"""DistributedDataParallel through the switch trains as it does with gloo, within what fixed point rounds off."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from serene.client import Client, Refused, Session
from serene.client.parts import Parts
from serene.controller.automatic.observer import Observer
from serene.controller.http.client import ControllerClient
from serene.errors import SereneError
from serene.strategy import ASP, BSP, SSP
from serene.torch import SwitchReducer, reduce_bucket
from tests.controller.conftest import controller, switch, warm
from tests.controller.processes import ControllerProcess, SwitchProcess, until
from tests.ports import some_port
from tests.torch import ddp_worker
from tests.torch.ranks import started

__all__ = ["controller", "switch", "warm"]

WORKERS = 3
PATIENCE_S = 120
Gloo = Callable[[int], list[np.ndarray]]


@pytest.fixture
def client(controller: ControllerProcess) -> Iterator[ControllerClient]:
    yield controller.client
    for job in controller.client.jobs():
        controller.client.delete_job(job.job)


def run(switch: SwitchProcess | None, out: Path, workers: int = WORKERS, expect: int = 0, **settings: float) -> str:
    """One process a rank, until each has ended with the status ``expect``; what they said."""
    rendezvous, processes, log = some_port(), [], out / "ranks.log"
    for rank in range(workers):
        saved = out / f"{bool(switch)}-{rank}.npy"
        processes.append(started(switch, log, rank, workers, rendezvous, saved, settings))
    try:
        for process in processes:
            process.join(PATIENCE_S)
            assert process.exitcode == expect, log.read_text()
    finally:
        for process in processes:
            process.kill()
            process.join()
    return log.read_text()


def train(switch: SwitchProcess | None, out: Path, workers: int = WORKERS, **settings: float) -> list[np.ndarray]:
    """Every worker's parameters at the end."""
    run(switch, out, workers, 0, **settings)
    return [np.load(out / f"{bool(switch)}-{rank}.npy") for rank in range(workers)]


@pytest.fixture(scope="session")
def gloo(tmp_path_factory: pytest.TempPathFactory) -> Gloo:
    """Every worker's parameters at the end, for a number of workers that train with gloo: always the same."""
    return cache(lambda workers: train(None, tmp_path_factory.mktemp("gloo"), workers))


def expect_what_gloo_gives(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for parameters in ours[1:]:
        assert np.array_equal(parameters, ours[0]), "under BSP everybody reads the same bits"
    np.testing.assert_allclose(ours[0], theirs[0], atol=2e-5)
    assert not np.array_equal(ours[0], theirs[0]), "one of them was not used"


def test_ddp_ends_where_gloo_ends(switch: SwitchProcess, client: ControllerClient, gloo: Gloo, tmp_path: Path) -> None:
    client.create_job(WORKERS, BSP())
    ours = train(switch, tmp_path)
    expect_what_gloo_gives(ours, gloo(WORKERS))
    assert client.job(0).state == "finished"


@pytest.mark.parametrize("died_after", [1, 3])
def test_ranks_that_were_restarted_train_as_if_they_were_the_first(
    switch: SwitchProcess, client: ControllerClient, gloo: Gloo, tmp_path: Path, died_after: int
) -> None:
    """As torchrun does it: all die without LEAVE, and come back at the same addresses, to the same job."""
    client.create_job(WORKERS, BSP())
    run(switch, tmp_path, expect=17, die_after=died_after)
    assert client.job(0).state == "running"
    ours = train(switch, tmp_path)
    expect_what_gloo_gives(ours, gloo(WORKERS))


def test_the_mean_is_that_of_the_workers_that_take_part(
    switch: SwitchProcess, client: ControllerClient, gloo: Gloo, tmp_path: Path
) -> None:
    """A third worker joins and is evicted before anybody contributes: the mean of the two others is what gloo has."""
    client.create_job(3, BSP())

    def idle() -> None:
        with Client(switch.transport(2), 0, 2, ddp_worker.LANES * ddp_worker.slots()) as third:
            third.join()
            client.evict(0, 2)

    with ThreadPoolExecutor(1) as pool:
        third = pool.submit(idle)
        ours = train(switch, tmp_path, workers=2, members=2)
        third.result(PATIENCE_S)
    expect_what_gloo_gives(ours, gloo(2))


def test_clipping_is_said(switch: SwitchProcess, client: ControllerClient, tmp_path: Path) -> None:
    client.create_job(WORKERS, BSP())
    said = run(switch, tmp_path, loss_scale=65536)
    assert "were beyond the job's limit of 8 and were clipped" in said


class Bucket:
    """One of DDP's, of a whole module whose gradients are all the same."""

    def __init__(self, module: nn.Module, gradient: float) -> None:
        self._module, self._gradient = module, gradient

    def parameters(self) -> list[torch.Tensor]:
        return list(self._module.parameters())

    def gradients(self) -> list[torch.Tensor]:
        return [torch.full_like(parameter, self._gradient) for parameter in self.parameters()]


def test_a_read_that_32_bits_may_not_hold_is_said(switch: SwitchProcess, client: ControllerClient) -> None:
    """One worker is away while the other contributes more than what a difference of two reads can hold."""
    client.create_job(2, ASP(), limit=500.0)
    networks = [nn.Linear(10, 10, bias=False) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        made = [
            pool.submit(SwitchReducer, network, worker=worker, transport=switch.transport(worker))
            for worker, network in enumerate(networks)
        ]
    with made[0].result() as busy, made[1].result() as away:
        for _ in range(busy.client.fixed_point.capacity):
            busy.reduce(Bucket(networks[0], 400.0)).wait()  # type: ignore[arg-type]
        assert not busy.reads_at_risk
        with pytest.warns(RuntimeWarning, match="held more than 4 contributions of up to 500"):
            away.reduce(Bucket(networks[1], 400.0)).wait()  # type: ignore[arg-type]
        assert away.reads_at_risk == 1


def reducers(switch: SwitchProcess, networks: list[nn.Module]) -> list[SwitchReducer]:
    with ThreadPoolExecutor(len(networks)) as pool:
        made = [
            pool.submit(SwitchReducer, network, worker=worker, transport=switch.transport(worker))
            for worker, network in enumerate(networks)
        ]
    return [reducer.result() for reducer in made]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_gradients_of_other_types(switch: SwitchProcess, client: ControllerClient, dtype: torch.dtype) -> None:
    client.create_job(2, BSP())
    networks: list[nn.Module] = [nn.Linear(10, 10, bias=False, dtype=dtype) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(reducer) for reducer in reducers(switch, networks)]
        if dtype is torch.float64:
            with pytest.raises(SereneError, match="a gradient of float64: expected float32, float16 or bfloat16"):
                both[0].reduce(Bucket(networks[0], 1.0))  # type: ignore[arg-type]
            return
        means = [both[worker].reduce(Bucket(networks[worker], worker + 1.0)) for worker in range(2)]  # type: ignore[arg-type]
        for mean in means:
            assert torch.equal(mean.wait(), torch.full((100,), 1.5, dtype=dtype))


def test_the_controller_sees_what_the_hook_does(switch: SwitchProcess, client: ControllerClient) -> None:
    client.create_job(2, BSP())
    networks: list[nn.Module] = [nn.Linear(10, 10, bias=False) for _ in range(2)]
    first, second = reducers(switch, networks)
    with first, second:

        def said(worker: int) -> dict[str, object]:
            return dict(client.job(0).workers[worker].report or {})

        late = first.reduce(Bucket(networks[0], 1.0))  # type: ignore[arg-type]
        until(lambda: said(0).get("state") == "waiting", "the first worker waits")
        second.reduce(Bucket(networks[1], 1.0)).wait()  # type: ignore[arg-type]
        late.wait()
        until(lambda: (said(0).get("state"), said(0).get("iteration")) == ("computing", 1), "it computes")
        observer = Observer()
        observer.note(0, said(0))
        second.reduce(Bucket(networks[1], 1.0))  # type: ignore[arg-type]
        first.reduce(Bucket(networks[0], 1.0)).wait()  # type: ignore[arg-type]
        until(lambda: said(0).get("iteration") == 2, "it has told of another iteration")
        observer.note(0, said(0))
        seen = observer.view(0, rounds=2, is_member=True, silent_s=0.0)
        told = (seen.iteration_s, seen.compute_s, seen.slowest_s, seen.waiting_share)
        assert None not in told, "an automatic strategy would be blind"
        waited = said(0)["waiting_s"]
        assert isinstance(waited, float)
        assert waited > 0
    until(lambda: said(0).get("state") == "finished", "it has finished")


@pytest.mark.parametrize("why", ["deleted", "float64"])
def test_an_error_is_raised_by_backward_as_what_it_is(
    switch: SwitchProcess, client: ControllerClient, tmp_path: Path, why: str
) -> None:
    """And again by the next one."""
    client.create_job(1, BSP())
    dtype = torch.float64 if why == "float64" else torch.float32

    def fail() -> None:
        network: nn.Module = nn.Sequential(*(nn.Linear(10, 10, bias=False, dtype=dtype) for _ in range(2)))
        model = nn.parallel.DistributedDataParallel(network, bucket_cap_mb=1e-4)
        reducer = SwitchReducer(network, worker=0, transport=switch.transport(0))
        model.register_comm_hook(reducer, reduce_bucket)
        if why == "deleted":
            client.delete_job(0)
            for _ in range(2):
                with pytest.raises(Refused, match="job 0 was deleted"):
                    model(torch.ones(1, 10)).sum().backward()
        else:
            with pytest.raises(SereneError, match="a gradient of float64: expected float32, float16 or bfloat16"):
                model(torch.ones(1, 10, dtype=dtype)).sum().backward()
        reducer.close(leave=False)

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        fail()
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("strategy", [BSP(), SSP(2), ASP()])
def test_parts_lose_nothing_across_swaps(switch: SwitchProcess, client: ControllerClient, strategy: object) -> None:
    """Parts of uneven sizes, in an order of each worker's own, while the strategy is changed between and within."""
    lanes, iterations, sizes = 320, 30, (700, 20, 320, 1000)
    first_slots = (0, 3, 4, 5)
    client.create_job(WORKERS, strategy)  # type: ignore[arg-type]

    def work(worker: int) -> np.ndarray:
        total = np.zeros(9 * lanes, np.float32)
        with Client(switch.transport(worker), 0, worker, 9 * lanes) as member:
            member.join()
            if (missed := member.catch_up()) is not None:  # under ASP the others may be far ahead, and in another epoch
                total += missed.delta
            with Parts(Session(member)) as parts:
                for iteration in range(iterations):
                    if worker == 0 and iteration in (10, 20):
                        client.set_strategy(0, [SSP(1), BSP()][iteration // 10 - 1])
                    order = np.random.default_rng((worker, iteration)).permutation(len(sizes))
                    results = {
                        part: parts.submit(first_slots[part], np.full(sizes[part], worker + 1, np.float32))
                        for part in order.tolist()
                    }
                    for part, result in results.items():
                        start = first_slots[part] * lanes
                        total[start : start + sizes[part]] += result.result(PATIENCE_S).delta
            assert member.leave_and_wait(30.0)
            total += member.pull().delta
            return total

    with ThreadPoolExecutor(WORKERS) as pool:
        totals = list(pool.map(work, range(WORKERS)))
    expected = np.zeros(9 * lanes, np.float32)
    for first, size in zip(first_slots, sizes, strict=True):
        expected[first * lanes : first * lanes + size] = iterations * sum(range(1, WORKERS + 1))
    for total in totals:
        assert np.array_equal(total, expected)


def test_parts_beyond_the_window_in_opposite_orders(switch: SwitchProcess, client: ControllerClient) -> None:
    """Each worker's window is full of what the others have not sent yet: none of them may wait for good."""
    lanes, slots, count = 320, 30, 4
    client.create_job(WORKERS, BSP())

    def work(worker: int) -> list[float]:
        with Client(switch.transport(worker), 0, worker, count * slots * lanes) as member:
            member.join()
            with Parts(Session(member)) as parts:
                order = range(count) if worker else reversed(range(count))
                results = [parts.submit(part * slots, np.full(slots * lanes, part + 1, np.float32)) for part in order]
                sums = [float(result.result(PATIENCE_S).delta.mean()) for result in results]
            member.leave()
            return sums if worker else sums[::-1]

    with ThreadPoolExecutor(WORKERS) as pool:
        assert list(pool.map(work, range(WORKERS))) == [[WORKERS * (part + 1) for part in range(count)]] * WORKERS


def test_a_part_that_does_not_fit(switch: SwitchProcess, client: ControllerClient) -> None:
    client.create_job(1, BSP())
    with Client(switch.transport(0), 0, 0, 640) as member:
        member.join()
        with Parts(Session(member)) as parts:
            for first, size in ((1, 400), (-1, 10), (0, 0), (2, 1)):
                with pytest.raises(SereneError, match=r"in the job.s 2 slots of 320 values"):
                    parts.submit(first, np.zeros(size, np.float32))
            assert parts.submit(1, np.ones(5, np.float32)).result(PATIENCE_S).delta.tolist() == [1.0] * 5


def test_closing_fails_what_is_under_way(switch: SwitchProcess, client: ControllerClient) -> None:
    client.create_job(2, BSP())
    with (
        ThreadPoolExecutor(2) as pool,
        Client(switch.transport(0), 0, 0, 320) as here,
        Client(switch.transport(1), 0, 1, 320) as other,
    ):
        list(pool.map(lambda member: member.join(), (here, other)))
        with Parts(Session(here)) as parts:
            waits_for_the_other = parts.submit(0, np.ones(320, np.float32))
        with pytest.raises(SereneError, match="closed"):
            waits_for_the_other.result(PATIENCE_S)


def test_a_module_without_parameters(switch: SwitchProcess) -> None:
    with pytest.raises(SereneError, match="no parameter"):
        SwitchReducer(nn.Tanh(), worker=0)
