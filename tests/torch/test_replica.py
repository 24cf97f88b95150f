"""A worker's contributions and parameters: arithmetic alone, without a switch."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from serene.torch import replica
from serene.torch.replica import REACH, BadParameters, BadUpdate, Named, Replica, limit_for, scale_for
from tests.torch.small import residual_of

GPU = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU and PyTorch for CUDA")
)


def replica_of(*parameters: torch.Tensor) -> Replica:
    return Replica([Named(f"parameter {number}", parameter) for number, parameter in enumerate(parameters)])


def exchange(replicas: list[Replica], weight: int) -> None:
    """As the switch does it: every contribution is in the sum that all read."""
    total = sum(each.contribute(weight).astype(np.int64) for each in replicas)
    for each in replicas:
        summed = each.sum.numpy().astype(np.int64) + total
        each.read(summed.astype(np.int32))
        each.take()
        each.show()


def test_replica_keeps_its_device_whatever_the_default_device_is() -> None:
    """A program with accelerators may have set one of those."""
    parameter = torch.nn.Parameter(torch.zeros(3))
    with torch.device("meta"):
        each = replica_of(parameter)
        each.begin(2**20, 2**27)
        with torch.no_grad():
            parameter.add_(torch.tensor([1.0, -2.0, 0.5], device="cpu"))
        exchange([each], 1)
        assert torch.empty(0).is_meta
    assert parameter.tolist() == [1.0, -2.0, 0.5]


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("run", [4, replica.RUN])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_replicas_are_bit_identical_and_lose_nothing(
    dtype: torch.dtype, run: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three workers with different updates: what is not in the sum is in the residuals. run: how many values are
    computed at once."""
    monkeypatch.setattr(replica, "RUN", run)
    torch.manual_seed(0)
    start = torch.randn(7, 5).to(dtype).to(device)
    each_starts = [start, torch.zeros(3, device=device), start.t()]
    owned = [[torch.nn.Parameter(values.clone()) for values in each_starts] for _ in range(3)]
    assert not owned[0][2].is_contiguous()
    replicas = [replica_of(*parameters) for parameters in owned]
    wanted = torch.zeros(73, dtype=torch.float64)
    for each in replicas:
        each.begin(2**20, 2**12)
    for _ in range(50):
        for parameters in owned:
            before = torch.cat([parameter.detach().double().reshape(-1) for parameter in parameters])
            with torch.no_grad():
                for parameter in parameters:
                    parameter.add_(torch.randn(parameter.shape).to(parameter) * 0.01)
            after = torch.cat([parameter.detach().double().reshape(-1) for parameter in parameters])
            wanted += ((after - before) / 3).cpu()
        exchange(replicas, 3)
        for parameters in owned[1:]:
            for one, other in zip(parameters, owned[0], strict=True):
                assert torch.equal(one, other)
    held = sum(residual_of(each).cpu() for each in replicas) / 3
    moved = replicas[0].sum.double() / 2**20
    torch.testing.assert_close(moved + held, wanted, rtol=0, atol=1e-12)


def test_residual_is_exact_where_float32_does_not_hold_it() -> None:
    """Of no value, of few, of most, and of none again."""
    ours = replica_of(torch.nn.Parameter(torch.zeros(8)))
    for exceptions in (0, 3, 6, 0):
        values = torch.tensor([0.5, -0.0, 2.0**-140, -0.75, 3.0, 1.0, 0.0, -8.0], dtype=torch.float64)
        values[:exceptions] += 2.0**-40
        ours._set_residual(0, values)
        assert ours._residual(0).numpy().tobytes() == values.numpy().tobytes()
        assert len(ours._exceptions) == (exceptions > 0)


def test_shown_sum_has_no_memory_of_its_own_on_the_host() -> None:
    ours = replica_of(torch.nn.Parameter(torch.zeros(3)))
    ours.begin(2**20, 2**20)
    read = np.array([1, 2, 3], np.int32)
    ours.read(read)
    ours.take()
    ours.show()
    assert ours._shown.data_ptr() == ours.sum.data_ptr() == read.ctypes.data


def test_values_clipped_by_limit_are_sent_in_later_rounds() -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    ours = replica_of(parameter)
    ours.begin(2**10, 100)
    with torch.no_grad():
        parameter.add_(torch.tensor([0.25, -0.001]))
    seen = []
    for _ in range(4):
        seen.append(ours.contribute(1).tolist())
        ours.sum = ours.sum + ours.contribution
        ours.take()
        ours.show()
    assert seen == [[100, -1], [100, 0], [56, 0], [0, 0]]
    assert ours.clipped == 2
    assert parameter.tolist() == [0.25, -1 / 2**10]


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_resumed_replicas_lose_nothing(dtype: torch.dtype, workers: int) -> None:
    """Three workers save, and so many resume, with another unit: with the residuals the parameters are those of all
    updates. bfloat16 rounds off far more than a unit: without that part the parameters would be wrong by it."""
    torch.manual_seed(0)
    start = torch.randn(40).to(dtype)
    wanted = start.double()

    def train(count: int, values: torch.Tensor, unit: int) -> tuple[list[Replica], list[torch.nn.Parameter]]:
        nonlocal wanted
        owned = [torch.nn.Parameter(values.clone()) for _ in range(count)]
        replicas = [replica_of(parameter) for parameter in owned]
        for each, saved in zip(replicas, pending(count), strict=True):
            each.begin(unit, 2**12)
            each.set_pending([saved])
        for _ in range(20):
            for parameter in owned:
                before = parameter.detach().double()
                with torch.no_grad():
                    parameter.add_(torch.randn(40).to(dtype) * 0.01)
                wanted += (parameter.detach().double() - before) / count
            exchange(replicas, count)
        return replicas, owned

    states: list[torch.Tensor] = []

    def pending(count: int) -> list[torch.Tensor | None]:
        if not states:
            return [None] * count
        return [*states] if count == 3 else [torch.stack(states).mean(dim=0)] * count

    replicas, owned = train(3, start, 2**15)
    states = [part for each in replicas for part in each.pending()]
    replicas, owned = train(workers, owned[0].detach(), 2**13)
    missing = torch.stack([part for each in replicas for part in each.pending()]).mean(dim=0)
    torch.testing.assert_close(owned[0].detach().double() + missing, wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        owned[0].detach(), wanted.to(dtype), rtol=2**-6 if dtype is torch.bfloat16 else 0, atol=2**-12
    )


def test_outer_momentum_is_applied_to_the_mean_update() -> None:
    """Nesterov's; each worker applies it to its own updates."""
    torch.manual_seed(0)
    owned = [torch.nn.Parameter(torch.zeros(50)) for _ in range(3)]
    replicas = [Replica([Named("parameter", parameter)], outer=0.9) for parameter in owned]
    for each in replicas:
        each.begin(2**20, 2**24)
    expected, velocity = torch.zeros(2, 50, dtype=torch.float64)
    for _ in range(20):
        updates = 0.01 * torch.randn(3, 50)
        with torch.no_grad():
            for parameter, update in zip(owned, updates, strict=True):
                parameter.add_(update)
        exchange(replicas, 3)
        mean = updates.double().mean(dim=0)
        velocity = 0.9 * velocity + mean
        expected = expected + mean + 0.9 * velocity
        assert all(torch.equal(parameter, owned[0]) for parameter in owned[1:])
        torch.testing.assert_close(owned[0].double().detach(), expected, rtol=0, atol=1e-5)


def test_replica_keeps_full_own_update_until_its_sum_is_read() -> None:
    """A worker reset to a third of its own update, whose moments continue, would learn badly with many steps between
    exchanges."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    ours = replica_of(parameter)
    ours.begin(2**20, 2**20)
    with torch.no_grad():
        parameter.add_(0.75)
    contributed = ours.contribute(3)[0]
    ours.take(under_way=True)
    ours.show()
    assert contributed == 2**18 and parameter.item() == 0.75
    with torch.no_grad():
        parameter.add_(0.375)
    ours.sum = ours.sum + 2**18 + 2 * 2**17  # the own contribution, and the others'
    assert ours.contribute(3)[0] == 2**17
    ours.take()
    ours.show()
    assert parameter.item() == 0.5


def test_parameters_stay_within_their_reach() -> None:
    """The workers' contributions together may cross it: then a parameter may only come back."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    ours = replica_of(parameter)
    ours.begin(1, 2**20)
    for summed, update, contributed in (
        (REACH - 5, 100.0, 5),
        (REACH + 7, 100.0, 0),
        (REACH + 7, -(2.0**19), -(2**19)),
        (-REACH - 9, -1.0, 0),
        (-REACH + 3, -1000.0, -3),
    ):
        ours._set_residual(0, torch.zeros(1, dtype=torch.float64))
        ours.read(np.array([summed], np.int32))
        ours.take()
        ours.show()
        with torch.no_grad():
            parameter.add_(update)
        # float32 has no room for so small a change of so large a value: put it into the residual.
        ours._set_residual(0, torch.tensor([update - (parameter.item() - np.float32(summed))], dtype=torch.float64))
        assert ours.contribute(1).tolist() == [contributed]


@given(st.integers(1, 256), st.floats(1e-30, 1e30))
def test_scale_and_limit_keep_a_round_within_32_bits(workers: int, reach: float) -> None:
    scale, limit = scale_for(reach, workers), limit_for(workers)
    assert workers * limit * 8 <= REACH and math.log2(scale).is_integer() and math.log2(limit).is_integer()
    assert scale * workers < 2**31 and scale >= 1
    if 1 < scale < 2 ** (int(math.log2(2**31 // workers)) - 1):
        assert reach <= REACH / scale < 2 * reach


def test_reach_follows_from_the_first_update_and_values() -> None:
    parameter = torch.nn.Parameter(torch.full((3,), 0.5))
    ours = replica_of(parameter)
    assert ours.first_reach() == 128
    with torch.no_grad():
        parameter.add_(torch.tensor([0.0, -0.25, 0.125]))
    assert ours.first_reach() == 4096
    assert replica_of(torch.nn.Parameter(torch.zeros(1))).first_reach() == 256


def test_nonfinite_update_is_refused_and_changes_nothing() -> None:
    good, bad = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))
    ours = replica_of(good, bad)
    with torch.no_grad():
        bad[1] = math.inf
    with pytest.raises(BadUpdate, match=r"^the update of parameter 1 has 1 value not finite, the first is i"):
        ours.first_reach()
    ours.begin(2**20, 2**20)
    with torch.no_grad():
        good.add_(1)
    with pytest.raises(BadUpdate, match="the update of parameter 1"):
        ours.contribute(1)
    assert not ours.contribution.any() and not residual_of(ours).any() and not ours.contributing


@pytest.mark.parametrize("shape", [(5,), (1,), (2, 1)], ids=str)
def test_a_parameter_that_gets_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    """Else others' values would be written into it, or only a part of it would be shared."""
    changed, other = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))
    ours = replica_of(changed, other)
    ours.begin(2**20, 2**20)
    changed.data = torch.ones(shape)
    with pytest.raises(BadParameters, match=rf"^parameter 0 has now the shape {re.escape(str(list(shape)))}: expected"):
        ours.contribute(1)
    assert not ours.contribution.any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ([], "no trainable parameter"),
        ([torch.zeros(2, dtype=torch.complex64)], "parameter 0 is of complex64: expected float32, float16, bfloat16"),
        ([torch.zeros(2), torch.zeros(2, device="meta")], "parameter 1 is not a dense tensor"),
        ([torch.zeros(2).to_sparse()], "parameter 0 is not a dense tensor"),
        ([torch.zeros(0)], "parameter 0 has no values"),
    ],
)
def test_parameters_that_cannot_be_shared_are_refused(parameters: list[torch.Tensor], message: str) -> None:
    with pytest.raises(BadParameters, match=message):
        replica_of(*parameters)


def test_pending_that_is_set_again_changes_nothing() -> None:
    """In the midst of a training, where a parameter's type rounds off a part of what was read."""
    parameter = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    ours = Replica([Named("parameter", parameter)])
    ours.begin(2**20, 2**20)
    with torch.no_grad():
        parameter.add_(torch.tensor([0.25, -0.5, 0.125]))
    ours.contribute(3)
    ours.sum = ours.sum + ours.contribution
    ours.take()
    ours.show()
    assert ours._rounded_off(ours._runs[0]).any() and residual_of(ours).any()
    residual, pending = residual_of(ours), ours.pending()
    assert not torch.equal(pending[0], residual)
    ours.set_pending(pending)
    assert torch.equal(residual_of(ours), residual)
