"""The study's models: ResNet-18, and a transformer that predicts text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BYTES = 256  # values that a byte may have
CONTEXT = 64  # bytes of text that the transformer sees


class Block(nn.Module):
    """A residual block: two 3x3 convolutions, and a shortcut. channels, out: that come in and go out."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.residual(images) + self.shortcut(images))


def resnet18(channels: int = 1, classes: int = 10) -> nn.Module:
    """ResNet-18 (He et al., 2015) with its stem for large images, 7x7 with stride 2: 11.2 million parameters."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    before = 64
    for width in (64, 128, 256, 512):
        layers += [Block(before, width, 1 if width == 64 else 2), Block(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


class Transformer(nn.Module):
    """A transformer that predicts each byte from those before it: 4 layers of width 128, 0.87 million parameters."""

    def __init__(self, width: int = 128, layers: int = 4) -> None:
        super().__init__()
        self.bytes = nn.Embedding(BYTES, width)
        self.positions = nn.Parameter(0.02 * torch.randn(CONTEXT, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, BYTES)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, text: Tensor) -> Tensor:
        """Text, int64[n, CONTEXT], to the logits of each byte's successor, float32[n, BYTES, CONTEXT]."""
        state = self.bytes(text) + self.positions
        for layer in self.layers:
            state = layer(state, src_mask=self.mask, is_causal=True)
        logits: Tensor = self.out(self.norm(state))
        return logits.transpose(1, 2)
