"""Measures the errors of sums of gradients between 1e-7 and 1e+4 in one model, for each block.

torchrun --nproc-per-node 4 -m serene.experiments.pytorch_study.magnitudes --losses errors.json

The model has a layer for each magnitude. The gradients of all layers go through one all-reduce, like a bucket of
DistributedDataParallel. For comparison, the same gradients are summed with the fixed scale of a job without a pool.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from serene.client.blocks import PIECES_PER_BLOCK
from serene.fixedpoint import FixedPoint
from serene.program import Program

MAGNITUDES = (1e-7, 1e-5, 1e-3, 1e-1, 1e1, 1e3, 1e4, 1e-7)  # the largest gradient of each layer, in their order
WIDTH, BATCH = 100, 32


def local_gradient(seed: int, rank: int) -> tuple[Tensor, list[int]]:
    """A rank's gradient of all layers, float32[n], and how many values each layer has. It follows from seed and rank,
    so that one process can compute all ranks' for the exact sum."""
    torch.manual_seed(seed)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in MAGNITUDES]
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    inputs = torch.randn(BATCH, WIDTH, generator=generator)
    wanted = torch.randn(BATCH, WIDTH, generator=generator)
    loss = torch.zeros(())
    for layer, magnitude in zip(layers, MAGNITUDES, strict=True):
        error = nn.functional.mse_loss(layer(inputs), wanted)
        (slope,) = torch.autograd.grad(error, layer.weight, retain_graph=True)
        loss = loss + error * (magnitude / float(slope.abs().max()))
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    flat = torch.cat([gradient.reshape(-1) for gradient in torch.autograd.grad(loss, parameters)])
    return flat, [sum(parameter.numel() for parameter in layer.parameters()) for layer in layers]


def fixed_sum(gradients: Iterable[np.ndarray], fixed: FixedPoint) -> np.ndarray:
    """The sum of the ranks' gradients, float32[n] each, in fixed point with one scale: float32[n]."""
    return fixed.dequantise(sum((fixed.quantise(gradient)[0] for gradient in gradients), np.int32(0)))


def segments(sizes: list[int], block: int) -> Iterator[tuple[slice, int, list[int]]]:
    """Divides blocks of so many values where one layer ends and the next begins. Yields for each segment its place in
    the gradient, its layer, and the other layers in its block. sizes: values in each layer."""
    ends = np.cumsum(sizes)
    layer_of = np.repeat(np.arange(len(sizes)), sizes)
    for start in range(0, int(ends[-1]), block):
        inside = [int(layer) for layer in np.unique(layer_of[start : start + block])]
        for layer in inside:
            first, last = max(start, int(ends[layer]) - sizes[layer]), min(start + block, int(ends[layer]))
            yield slice(first, last), layer, [other for other in inside if other != layer]


def relative_error(sums: np.ndarray, exact: np.ndarray) -> float:
    """The largest error of the sums, relative to the largest exact value."""
    return float(np.abs(sums - exact).max() / np.abs(exact).max())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="serene")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--losses", type=Path, required=True, help="a file for the errors")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    summed, sizes = local_gradient(arguments.seed, dist.get_rank())
    dist.all_reduce(summed)
    if dist.get_rank() == 0:
        ranks = range(dist.get_world_size())
        gradients = [local_gradient(arguments.seed, rank)[0].numpy() for rank in ranks]
        exact = np.stack(gradients).astype(np.float64).sum(axis=0)
        fixed = fixed_sum(gradients, FixedPoint())
        rows = []
        for place, layer, others in segments(sizes, PIECES_PER_BLOCK * Program.load().lanes):
            rows.append(
                {
                    "magnitude": MAGNITUDES[layer],
                    "beside": [MAGNITUDES[other] for other in others],
                    "values": place.stop - place.start,
                    "error": relative_error(summed.numpy()[place], exact[place]),
                    "fixed": relative_error(fixed[place], exact[place]),
                }
            )
        arguments.losses.write_text(json.dumps(rows))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
