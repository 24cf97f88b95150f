"""A small transformer whose parameters, gradients and optimiser states are sharded over the ranks (`fully_shard`).

torchrun --nproc-per-node 4 examples/sharded.py
torchrun --nproc-per-node 4 examples/sharded.py --backend gloo --optimiser adam
"""

import argparse
import json

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

LENGTH, LETTERS, WIDTH = 24, 16, 64


class Transformer(nn.Module):
    """Predicts each letter from those before it: int64[batch, LENGTH] to logits, float32[batch, LENGTH, LETTERS]."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.out = nn.Linear(WIDTH, LETTERS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, text: Tensor) -> Tensor:
        state = self.letters(text) + self.positions
        for layer in self.layers:
            state = layer(state, src_mask=self.mask, is_causal=True)
        result: Tensor = self.out(state)
        return result


def batch(step: int) -> tuple[Tensor, Tensor]:
    """A rank's batch for a step: text, int64[16, LENGTH], and for each letter the next one. A letter follows from the
    two before it, but for one in ten, which is random."""
    generator = torch.Generator().manual_seed(1000 * dist.get_rank() + step)
    text = torch.randint(0, LETTERS, (16, LENGTH + 1), generator=generator)
    noise = torch.rand(text.shape, generator=generator) < 0.1
    for at in range(2, LENGTH + 1):
        rule = (3 * text[:, at - 1] + text[:, at - 2] + 1) % LETTERS
        text[:, at] = torch.where(noise[:, at], text[:, at], rule)
    return text[:, :-1], text[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="serene")
    parser.add_argument("--optimiser", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--losses", help="a file for the losses of all steps, averaged over the ranks")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(1)
    model = Transformer()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if arguments.optimiser == "sgd":
        optimiser = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=0.002)
    losses: list[float] = []
    for step in range(arguments.steps):
        text, following = batch(step)
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())
        loss.backward()
        optimiser.step()
        mean = loss.detach()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        losses.append(mean.item())
        if dist.get_rank() == 0 and len(losses) % 50 == 0:
            print(f"step {len(losses)}: loss {losses[-1]:.4f}", flush=True)
    if arguments.losses and dist.get_rank() == 0:
        with open(arguments.losses, "w") as file:
            json.dump(losses, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
