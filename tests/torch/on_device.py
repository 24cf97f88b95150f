"""One rank whose tensors are on an accelerator: python -m tests.torch.on_device DEVICE BACKEND, prints what it has.

DEVICE is ``standin`` (tests/torch/standin) or ``cuda``. Everything is computed from seeds, so that the lines of two
backends can be compared.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from serene.torch.replica import Named, Replica

if sys.argv[1] == "standin":
    import tests.torch.standin  # noqa: F401


def collectives(device: str, rank: int, size: int) -> dict[str, list[float]]:
    """Returns each collective's result for small tensors."""

    def own(dtype: torch.dtype = torch.float32) -> Tensor:
        return (torch.arange(4.0) + 10 * rank).to(dtype).to(device)

    places = ("all_reduce torch.float32", "all_reduce MAX", "broadcast")
    found = {**{place: own() for place in places}, "all_reduce torch.bfloat16": own(torch.bfloat16)}
    dist.all_reduce(found["all_reduce torch.float32"])
    dist.all_reduce(found["all_reduce torch.bfloat16"])
    dist.all_reduce(found["all_reduce MAX"], dist.ReduceOp.MAX)
    dist.broadcast(found["broadcast"], 1)
    strided = torch.stack([torch.zeros(4, device=device), own()], dim=1)
    # gloo sums what lies in memory from the column's beginning on, as if it were contiguous.
    column = strided[:, 1].clone() if dist.get_backend() == "gloo" else strided[:, 1]
    dist.all_reduce(column, dist.ReduceOp.AVG)
    strided[:, 1] = column
    each = [torch.empty(4, device=device) for _ in range(size)]
    dist.all_gather(each, own())
    found |= {"all_reduce of a column": strided, "all_gather": torch.stack(each)}
    found["reduce_scatter_tensor"] = torch.empty(2, device=device)
    dist.reduce_scatter_tensor(found["reduce_scatter_tensor"], own().repeat(2)[: 2 * size])
    found["all_gather_into_tensor"] = torch.empty(4 * size, device=device)
    dist.all_gather_into_tensor(found["all_gather_into_tensor"], own())
    if rank:
        dist.send(own(), 0)
    else:
        found["recv"] = torch.empty(4, device=device)
        dist.recv(found["recv"], 1)
    dist.barrier()
    return {what: tensor.float().cpu().reshape(-1).tolist() for what, tensor in found.items()}


def in_order(device: str, size: int) -> list[float]:
    """Asynchronous sums of what the stream fills only later, and what it computes from a sum."""
    from tests.torch.standin import fill_later

    tensors = [torch.zeros(1000, device=device) for _ in range(3)]
    works = []
    for number, tensor in enumerate(tensors):
        fill_later(tensor, number + 1.0, 0.2)
        works.append(dist.all_reduce(tensor, async_op=True))
        fill_later(torch.zeros(1, device=device), 0.0, 0.2)  # what the stream does meanwhile
    for work in works:
        assert work is not None
        work.wait()
    doubled = [tensor * 2 for tensor in tensors]
    assert all(bool((tensor.cpu() == tensor.cpu()[0]).all()) for tensor in doubled)
    return [tensor.cpu()[0].item() for tensor in doubled]


def losses(device: str, rank: int) -> list[float]:
    """Of DistributedDataParallel in several buckets."""
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 8)).to(device)
    model = DistributedDataParallel(module, bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    found = []
    for _ in range(5):
        points = torch.randn(16, 64, generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points.to(device)), points[:, :8].argmax(dim=1).to(device))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        found.append(round(loss.item(), 5))
    return found


def replica(device: str) -> tuple[int, list[float]]:
    """Of shared training: the last contribution's sum, and what the parameters have become."""
    torch.manual_seed(2)
    start = torch.randn(300)
    parameter = nn.Parameter(start.to(device))
    mine = Replica([Named("parameter", parameter)])
    mine.begin(2**20, 2**12)
    put, pinned = mine._copies.put, list[bool]()

    def noted(to: Tensor, values: Tensor) -> None:
        pinned.append(values.is_pinned())
        put(to, values)

    mine._copies.put = noted  # type: ignore[method-assign]
    for _ in range(3):
        with torch.no_grad():
            parameter.add_((torch.randn(300) * 0.001).to(device))
        mine.read(mine.sum.numpy() + 2 * mine.contribute(2))
        mine.take()
        mine.show()
    assert pinned == [True] * (0 if device == "cpu" else 3), "a copy to the device is from pinned memory"
    return int(mine.contribution.long().abs().sum()), parameter.detach().cpu().tolist()[:4]


def main() -> None:
    device, backend = sys.argv[1:3]
    on = "cpu" if backend == "gloo" else device  # gloo has no sums for the stand-in
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    for what, values in collectives(on, rank, size).items():
        print(f"{what}: {values}")
    if backend == "serene" and device == "standin":
        print(f"in order: {in_order(on, size)}")
    print(f"replica: {replica(on)}")
    print(f"losses: {losses(on, rank)}")
    dist.destroy_process_group()


main()
