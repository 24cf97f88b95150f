"""The study's models: a CNN for pictures, and a small transformer for text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BYTES = 256  # values that a byte may have
CONTEXT = 64  # bytes of text that the transformer sees


def cnn(channels: int = 1, classes: int = 10) -> nn.Module:
    """Two convolutions and a linear layer, for 28x28 pictures: 9,098 parameters."""
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 7 * 7, classes),
    )  # fmt: skip


class Transformer(nn.Module):
    """A transformer that predicts each byte from those before it: 2 layers of width 64, 137,000 parameters."""

    def __init__(self, width: int = 64, layers: int = 2) -> None:
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
