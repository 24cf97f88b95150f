"""torchft: replicas die and come back while the others continue.

    torchft_lighthouse --min_replicas 2 --join_timeout_ms 1000
    TORCHFT_LIGHTHOUSE=http://localhost:29510 python examples/torchft_ddp.py --replica 0     one for each replica

A restarted replica gets the others' parameters.
"""

import argparse
import time

import torch
import torch.distributed as dist
from ddp import dataset, network
from torch import nn
from torchft import DistributedDataParallel, Manager, Optimizer

from serene.torch.torchft import ProcessGroupSerene


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replica", type=int, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of every step, as if the model were larger")
    arguments = parser.parse_args()

    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)  # of this replica alone
    model = network()
    own = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def state() -> dict[str, object]:
        return {"model": model.state_dict(), "optimiser": own.state_dict()}

    def load(state: dict[str, dict[str, object]]) -> None:
        model.load_state_dict(state["model"])
        own.load_state_dict(state["optimiser"])

    manager = Manager(
        pg=ProcessGroupSerene(),
        load_state_dict=load,
        state_dict=state,
        min_replica_size=2,
        replica_id=f"replica{arguments.replica}",
        store_addr="localhost",
        store_port=store.port,
        rank=0,
        world_size=1,
    )
    parallel, optimiser = DistributedDataParallel(manager, model), Optimizer(manager, own)
    points, labels = dataset().tensors
    generator = torch.Generator().manual_seed(arguments.replica)
    while manager.current_step() < arguments.steps:
        chosen = torch.randint(len(labels), (32,), generator=generator)
        optimiser.zero_grad()  # a quorum of the replicas that are there
        loss = nn.functional.cross_entropy(parallel(points[chosen]), labels[chosen])
        loss.backward()
        optimiser.step()  # unless a replica was lost in this step
        time.sleep(arguments.pause)
        total = sum(parameter.double().sum().item() for parameter in model.parameters())
        print(
            f"step {manager.current_step()}: loss {loss.item():.4f}, {manager.num_participants()} replicas, "
            f"sum of the parameters {total:.9f}",
            flush=True,
        )
    manager.shutdown()


if __name__ == "__main__":
    main()
