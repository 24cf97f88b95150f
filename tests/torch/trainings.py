"""Trainings that use a process group in PyTorch's own ways, and return their results for `tests.torch.collectives`.

Ranks alone import what takes PyTorch seconds to import: each process that collects the tests imports this module.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

STEPS = 8


class Branches(nn.Module):
    """A model with two branches of which each step uses one: the other's parameters have no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.common = nn.Linear(12, 12)
        self.branches = nn.ModuleList(nn.Linear(12, 4) for _ in range(2))
        self.step = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.step += 1
        result: Tensor = self.branches[self.step % 2](torch.tanh(self.common(inputs)))
        return result


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 4))


def batch(step: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1000 * dist.get_rank() + step)
    return torch.randn(16, 12, generator=generator), torch.randint(0, 4, (16,), generator=generator)


def loss_of(model: nn.Module, step: int) -> Tensor:
    inputs, labels = batch(step)
    return nn.functional.cross_entropy(model(inputs), labels)


def train(model: nn.Module, optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Trains the model, and returns the losses."""
    losses = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = loss_of(model, step)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.detach())
    return losses


def state(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def buckets(group: Any) -> list[Tensor]:
    """A training under DDP in which each layer has a bucket of its own."""
    model = DistributedDataParallel(network(), process_group=group, bucket_cap_mb=1e-4)
    return [*train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)), *state(model)]


def accumulation(group: Any) -> list[Tensor]:
    """A training that accumulates gradients: two of three backward passes exchange nothing. Clips the gradients'
    norm."""
    model = DistributedDataParallel(network(), process_group=group)
    # With Adam's own eps (1e-8) an update divides a small gradient by its size: a rounding error, which depends on the
    # processor's vector instructions, grows without bound. This eps bounds it by lr / eps times the error.
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, eps=0.01)
    for step in range(3 * STEPS):
        with model.no_sync() if step % 3 != 2 else contextlib.nullcontext():
            loss_of(model, step).backward()  # type: ignore[no-untyped-call]
        if step % 3 == 2:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimiser.step()
            optimiser.zero_grad()
    return state(model)


def unused(group: Any) -> list[Tensor]:
    model = DistributedDataParallel(Branches(), process_group=group, find_unused_parameters=True)
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.linspace(-0.3, 0.3, parameter.numel()).view_as(parameter) * (index + 1) / 6)
    return [*train(model, torch.optim.SGD(model.parameters(), lr=0.1)), *state(model)]


def buffers(group: Any) -> list[Tensor]:
    """Trainings with batch normalisation, whose statistics DDP broadcasts, and with its synchronised form."""
    torch.manual_seed(2)
    plain = nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    model = DistributedDataParallel(plain, process_group=group)
    losses = train(model, torch.optim.SGD(model.parameters(), lr=0.1))
    return [*losses, *state(model)]


def compressed(group: Any) -> list[Tensor]:
    """A training with PowerSGD, where the callback of one collective waits for the next."""
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

    model = DistributedDataParallel(network(), process_group=group)
    settings = PowerSGDState(group, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=0.5)
    model.register_comm_hook(settings, powerSGD_hook)
    return [*train(model, torch.optim.SGD(model.parameters(), lr=0.1)), *state(model)]


def uneven(group: Any, *, by_all: bool = True) -> list[Tensor]:
    """A training in which each rank has more steps than the one before it; the ranks that have ended join the others'
    collectives until all have. by_all: whether gradients are divided by the number of all ranks, or of those that have
    not ended."""
    model = DistributedDataParallel(network(), process_group=group)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join(divide_by_initial_world_size=by_all):
        for step in range(STEPS + dist.get_rank()):
            optimiser.zero_grad()
            loss_of(model, step).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return state(model)


def bfloat16(group: Any) -> list[Tensor]:
    """Gradients that are exchanged as bfloat16 numbers; compared to the nearest 0.05, as the backends round sums."""
    model = DistributedDataParallel(network().bfloat16(), process_group=group)
    inputs, labels = batch(0)
    nn.functional.cross_entropy(model(inputs.bfloat16()).float(), labels).backward()  # type: ignore[no-untyped-call]
    gradients = [parameter.grad.float() for parameter in model.parameters() if parameter.grad is not None]
    return [(torch.cat([g.reshape(-1) for g in gradients]) * 20).round() / 20]


def mesh_of(group: Any) -> DeviceMesh:
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

    return (
        DeviceMesh.from_group(group, "cpu") if group is not None else init_device_mesh("cpu", (dist.get_world_size(),))
    )


def sharded(group: Any) -> list[Tensor]:
    from torch.distributed.fsdp import fully_shard

    mesh = mesh_of(group)
    model = network()
    for layer in model:  # type: ignore[attr-defined]
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = train(model, torch.optim.Adam(model.parameters(), lr=0.01))
    return [*losses, *(parameter.full_tensor().detach() for parameter in model.parameters())]  # type: ignore[attr-defined]


def zero(group: Any) -> list[Tensor]:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    group = group or dist.group.WORLD
    model = DistributedDataParallel(network(), process_group=group)
    optimiser = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.Adam, process_group=group, lr=0.01
    )
    return [*train(model, optimiser), *state(model)]


def checkpointed(group: Any) -> list[Tensor]:
    """Trains half-way, saves a checkpoint in shards, and continues with a model loaded from it."""
    from torch.distributed.checkpoint.state_dict_loader import load
    from torch.distributed.checkpoint.state_dict_saver import save
    from torch.distributed.fsdp import fully_shard

    mesh = mesh_of(group)
    folder: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0, group=group)
    first, second = network(), network()
    for model in (first, second):
        fully_shard(model, mesh=mesh)
    train(first, torch.optim.SGD(first.parameters(), lr=0.1))
    save({"model": first.state_dict()}, checkpoint_id=folder[0], process_group=group)
    into = {"model": second.state_dict()}
    load(into, checkpoint_id=folder[0], process_group=group)
    second.load_state_dict(into["model"])
    losses = train(second, torch.optim.SGD(second.parameters(), lr=0.1))
    return [*losses, *(parameter.full_tensor().detach() for parameter in second.parameters())]  # type: ignore[attr-defined]


# The number: at least how many collectives go through the switch.
TRAININGS: dict[str, tuple[Callable[[Any], list[Tensor]], int]] = {
    "DDP, several buckets": (buckets, 3 * STEPS),
    "DDP, no_sync, Adam, clipping": (accumulation, STEPS),
    "DDP, unused parameters": (unused, STEPS),
    "DDP, buffers": (buffers, STEPS),
    "DDP, PowerSGD": (compressed, STEPS),
    "DDP, uneven inputs": (uneven, STEPS + 2),
    "DDP, uneven inputs, divided by those that have some": (partial(uneven, by_all=False), STEPS + 2),
    "DDP, bfloat16": (bfloat16, 1),
    "fully_shard": (sharded, 3 * STEPS),
    "ZeroRedundancyOptimizer": (zero, STEPS),
    "distributed.checkpoint": (checkpointed, 2 * STEPS),
}
