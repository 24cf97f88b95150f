"""Two models of usual sizes: a ResNet-18 for small pictures, and GPT-2's smallest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from serene.workers.data import load

BATCH, CONTEXT = 4, 32  # of a worker: pictures; words of one text
WORDS, POSITIONS, WIDTH, HEADS, LAYERS = 50_257, 1024, 768, 12, 12


class Residual(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        stride = after // before
        self.convolved = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after),
        )  # fmt: skip
        around = [nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)] if stride > 1 else []
        self.around = nn.Sequential(*around)

    def forward(self, pictures: Tensor) -> Tensor:
        return nn.functional.relu(self.convolved(pictures) + self.around(pictures))


def resnet18() -> nn.Module:
    """For pictures of one colour and ten classes, with a first layer for small pictures, as for CIFAR-10."""
    first = [nn.Conv2d(1, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Residual(before, after) for before, after in pairwise(widths)]
    return nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Gpt2(nn.Module):
    """Texts, int64[n, CONTEXT], to logits, float32[n, WORDS, CONTEXT]. layers: GPT-2's smallest has 12."""

    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(WIDTH), enable_nested_tensor=False)

    def forward(self, texts: Tensor) -> Tensor:
        length = texts.shape[1]
        state = self.words(texts) + self.positions(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        state = self.layers(state, mask=mask, is_causal=True)
        return nn.functional.linear(state, self.words.weight).transpose(1, 2)


def pictures(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Of Fashion-MNIST, with their classes."""
    data = load("fashion-mnist")
    chosen = torch.randint(len(data.train_labels), (BATCH,), generator=generator)
    return data.train_images[chosen].reshape(BATCH, 1, 28, 28), data.train_labels[chosen]


def counting(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A text that counts from a random word on, with each word's successor."""
    text = (torch.randint(WORDS, (1, 1), generator=generator) + torch.arange(CONTEXT + 1)) % WORDS
    return text[:, :-1], text[:, 1:]


@dataclass(frozen=True)
class Large:
    """model: makes one of so many values. batch: inputs and labels."""

    values: int
    model: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], tuple[Tensor, Tensor]]


MODELS: Mapping[str, Large] = {
    "resnet18": Large(11_172_810, resnet18, pictures),
    "gpt2-4-layers": Large(67_736_832, lambda: Gpt2(4), counting),
    "gpt2": Large(124_439_808, Gpt2, counting),
}
